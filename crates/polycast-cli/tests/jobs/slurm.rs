//! The lines for Slurm in README.md and in `polycast run --help`, as they stand there, under a Slurm of one node that lives as
//! long as the test.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::cluster::{TOOL, output_within};
use crate::common::job::{LIMIT, wait_until};
use crate::common::{checkout, library_directory};
use crate::small;

/// The line of README.md, but for what stands for srun's own options.
const README_LINE: &str = "srun … env $(polycast run --print-env) ./a.out";

/// The MPIs, with the plugin by which Debian's Slurm starts their ranks.
const FAMILIES: [(&str, &str); 2] = [("openmpi", "pmix"), ("mpich", "pmi2")];

#[test]
#[ignore = "make test-all: needs root, and Slurm and munge"]
fn the_lines_for_slurm_work_as_they_stand() {
    let readme = fs::read_to_string(checkout().join("README.md")).unwrap();
    assert!(readme.contains(README_LINE), "README.md has another line for Slurm: test that");
    let slurm = Slurm::start();
    for (family, plugin) in FAMILIES {
        slurm.compile(family);
        let options = format!("--mpi={plugin} -n 3");
        for algorithm in ["chain:segment=8KiB", "k-nomial:radix=4", "multicast-push:parity=5%", "stock"] {
            slurm.serves(&README_LINE.replace('…', &options), algorithm, family);
        }
        let help =
            String::from_utf8(Command::new(TOOL).args(["run", "--help"]).output().unwrap().stdout).unwrap();
        let lines: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.contains("srun -n 64")).collect();
        assert_eq!(lines.len(), 3, "{help}");
        for line in lines {
            let line = line.split("   ").next().unwrap().replace("-n 64", &options);
            slurm.serves(&line, "chain:segment=8KiB", family);
        }
    }
}

#[test]
#[ignore = "make test-all: needs root, and Slurm and munge"]
fn in_an_allocation_of_slurm_no_number_of_ranks_is_needed() {
    let slurm = Slurm::start();
    for (family, _) in FAMILIES {
        slurm.compile(family);
        slurm.serves("salloc -n 3 polycast run -- ./a.out", "chain:segment=8KiB", family);
    }
}

/// `srun --polycast` serves, plain `srun` does not; the line is that of docs/install.md.
#[test]
#[ignore = "make test-all: needs root, Slurm, its headers and munge"]
fn the_plug_in_serves_who_asks_for_it() {
    let built = tempfile::tempdir().unwrap();
    let library = built.path().join("lib/polycast");
    fs::create_dir(built.path().join("lib")).unwrap();
    let copied = Command::new("cp").arg("-r").args([&library_directory(), &library]).status().unwrap();
    assert!(copied.success());
    let mut build = Command::new(checkout().join("packaging/slurm/build.sh"));
    let output = build.arg(&library).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let slurm = Slurm::start();
    let line = |options: &str| {
        let path = library.join("slurm/spank_polycast.so");
        fs::write(slurm.path().join("plugstack.conf"), format!("optional {} {options}\n", path.display()))
            .unwrap();
    };
    let report = |words: &str, family: &str| {
        let mut command = slurm.shell(words);
        command.env("POLYCAST_BCAST", "chain:segment=8KiB").env("POLYCAST_REPORT", "1");
        let output = output_within(&mut command, LIMIT);
        let all = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(all).unwrap();
        assert!(
            output.status.success() && said.contains("3 ranks, all bytes right"),
            "{family}: {words}: {said}"
        );
        said
    };
    for (family, plugin) in FAMILIES {
        slurm.compile(family);
        let srun = |option: &str| report(&format!("srun {option} --mpi={plugin} -n 3 ./a.out"), family);
        line("");
        assert!(srun("--polycast").contains("chain:segment=8KiB"), "{family}");
        assert!(!srun("").contains("polycast: report"), "{family}");
        line("default=on");
        assert!(srun("").contains("chain:segment=8KiB"), "{family}");
        assert!(!srun("--polycast=off").contains("polycast: report"), "{family}");
        // Where the library is missing the job runs, and says why it is not served.
        line("library=/nonexistent.so");
        let said = srun("--polycast");
        assert!(said.contains("cannot be read on this node") && !said.contains("polycast: report"), "{said}");
    }
}

/// `polycast cp` takes the job's nodes, and reaches them by srun: by a name that is not this host's, or it would not need it.
#[test]
#[ignore = "make test-all: needs root, and Slurm and munge"]
fn files_are_copied_to_the_nodes_of_a_job() {
    let slurm = Slurm::start_as("node-7");
    fs::write(slurm.path().join("file"), vec![7; 300_000]).unwrap();
    for options in ["", "--bootstrap"] {
        fs::create_dir_all(slurm.path().join("to/node-7")).unwrap();
        let line = format!("salloc -n 1 polycast cp --json {options} file to/%h/");
        let output = output_within(&mut slurm.shell(&line), LIMIT);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success() && said.contains("\"host\": \"node-7\""), "{line}: {said}");
        assert_eq!(fs::read(slurm.path().join("to/node-7/file")).unwrap(), vec![7; 300_000]);
        fs::remove_dir_all(slurm.path().join("to")).unwrap();
    }
}

/// A controller, a node and their authentication, all in one folder.
struct Slurm {
    folder: TempDir,
    daemons: Vec<Child>,
}

impl Slurm {
    /// Its node has this host's name.
    fn start() -> Slurm {
        Slurm::start_as(&host())
    }

    fn start_as(node: &str) -> Slurm {
        assert!(nix::unistd::geteuid().is_root(), "slurmd runs as root only: run this test as root");
        let mut slurm = Slurm { folder: tempfile::tempdir().unwrap(), daemons: Vec::new() };
        // munged trusts no path that others may write to; clients of other users read the socket's folder.
        fs::set_permissions(slurm.path(), Permissions::from_mode(0o755)).unwrap();
        // slurmctld listens on all interfaces: nobody else may know the key.
        let mut key = [0; 64];
        getrandom::fill(&mut key).unwrap();
        let key_file = slurm.path().join("key");
        fs::write(&key_file, key).unwrap();
        fs::set_permissions(&key_file, Permissions::from_mode(0o400)).unwrap();
        fs::write(slurm.path().join("slurm.conf"), configuration(slurm.path(), node)).unwrap();
        for name in ["state", "spool"] {
            fs::create_dir(slurm.path().join(name)).unwrap();
        }
        let file = |option: &str, name: &str| format!("--{option}={}", slurm.path().join(name).display());
        let munged = [
            "--foreground".to_owned(),
            file("key-file", "key"),
            file("socket", "munge"),
            file("pid-file", "munged.pid"),
            file("log-file", "munged.log"),
            file("seed-file", "munged.seed"),
        ];
        slurm.daemon("munged", &munged);
        let socket = slurm.path().join("munge");
        wait_until("munged listens", || socket.exists());
        slurm.daemon("slurmctld", &["-D".to_owned()]);
        slurm.daemon("slurmd", &["-D".to_owned()]);
        let is_idle = || {
            let said = slurm.shell("sinfo --noheader --format=%t").output().unwrap();
            String::from_utf8_lossy(&said.stdout).trim() == "idle"
        };
        wait_until("the node is idle", is_idle);
        slurm
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn daemon(&mut self, name: &str, arguments: &[String]) {
        let log = File::create(self.path().join(format!("{name}.out"))).unwrap();
        let mut command = Command::new(Path::new("/usr/sbin").join(name));
        command.args(arguments).env("SLURM_CONF", self.path().join("slurm.conf"));
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let daemon = command
            .spawn()
            .unwrap_or_else(|error| panic!("{name}: {error}: scripts/setup-all.sh installs it"));
        self.daemons.push(daemon);
    }

    /// A line for a shell in the folder, where `polycast` is on PATH.
    fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.path());
        let tool = Path::new(TOOL).parent().unwrap();
        command.env("PATH", format!("{}:{}", tool.display(), std::env::var("PATH").unwrap_or_default()));
        command.env("SLURM_CONF", self.path().join("slurm.conf")).env("POLYCAST_LIBDIR", library_directory());
        command
    }

    fn compile(&self, family: &str) -> PathBuf {
        let program = small::compile(family, self.path(), small::BROADCAST);
        let name = self.path().join("a.out");
        fs::rename(program, &name).unwrap();
        name
    }

    /// Runs a line with an algorithm forced; fails unless three ranks got the bytes, by that algorithm.
    fn serves(&self, line: &str, algorithm: &str, family: &str) {
        let mut command = self.shell(line);
        command.env("POLYCAST_BCAST", algorithm).env("POLYCAST_REPORT", "1");
        let output = output_within(&mut command, LIMIT);
        let (said, errors) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{family}: {line}: {}\n{said}{errors}", output.status);
        assert!(said.contains("3 ranks, all bytes right"), "{family}: {line}: {said}{errors}");
        let (name, _) = algorithm.split_once(':').unwrap_or((algorithm, ""));
        // Multicast on one node is served within the node by trees.
        let served = name.starts_with("multicast") || errors.contains(algorithm);
        assert!(served && errors.contains("polycast: report"), "{family}: {algorithm}: {line}: {errors}");
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        while let Some(mut daemon) = self.daemons.pop() {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(daemon.id() as i32),
                nix::sys::signal::Signal::SIGTERM,
            );
            let _ = daemon.wait();
        }
    }
}

fn host() -> String {
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    host.split('.').next().unwrap().to_owned()
}

fn configuration(folder: &Path, node: &str) -> String {
    let host = host();
    // Free a moment ago.
    let listener = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (one, other) = (listener(), listener());
    let port = |of: &std::net::TcpListener| of.local_addr().unwrap().port();
    let folder = folder.display();
    format!(
        "ClusterName=polycast\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmdPort={}\n\
         AuthType=auth/munge\nAuthInfo=socket={folder}/munge\nSlurmUser=root\n\
         StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
         SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
         SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.log\n\
         ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nSlurmdParameters=config_overrides\n\
         JobAcctGatherType=jobacct_gather/none\nReturnToService=2\n\
         NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN\n\
         PartitionName=all Nodes={node} Default=YES MaxTime=INFINITE State=UP\n",
        port(&one),
        port(&other)
    )
}
