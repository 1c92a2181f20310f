//! Running a program on a host of a lab.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, sethostname};
use polycast_core::topology::is_same_name;

use crate::LabError;
use crate::error::{at, kernel};
use crate::keeper::{network_file, show_hosts_file, temporary_directory};
use crate::launcher_words::LauncherWords;
use crate::namespace::{join_network, join_process, make_mounts_private, mount_virtual, open};
use crate::state::Summary;

/// Names the folder for temporary files to programs.
const TMPDIR: &str = "TMPDIR";

/// Runs a program on a host and returns its exit status (128 + signal if one killed it), as a shell does.
/// Signals that this process gets are passed on. The calling process must have one thread.
/// Of a launcher's standard error, noise is left out.
pub(crate) fn run_on(
    lab: &Summary,
    host: &str,
    program: &[OsString],
    is_launcher: bool,
) -> Result<ExitCode, LabError> {
    let host_index = lab.host_index(host)?;
    let working_directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
    join_process(lab.keeper_pid)?;
    become_host(&lab.directory, host_index, host)?;
    // Joining a mount namespace moves to its root.
    let _ = std::env::set_current_dir(&working_directory);

    let passed_on = SigSet::from_iter([
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGCHLD,
    ]);
    let mut before = SigSet::empty();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&passed_on), Some(&mut before))
        .map_err(kernel("block signals"))?;
    // Where our caller ignores it, we would never hear of the program's end.
    // SAFETY: no handler is installed.
    unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) }.map_err(kernel("watch signals"))?;
    let mut said = is_launcher.then(std::io::pipe).transpose().map_err(at("make a pipe on", host))?;
    // SAFETY: this process has one thread, so no lock can be held by another one at the time of the fork.
    match unsafe { fork() }.map_err(kernel("fork"))? {
        ForkResult::Child => {
            // If we are killed in a way that cannot be passed on, the program must not stay.
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
            let said = said.take().map(|(_, write)| write);
            let error = execute(program, &lab.directory, said.map(Into::into));
            eprintln!("polycast: {error}");
            std::process::exit(
                if matches!(&error, LabError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
                {
                    127
                } else {
                    126
                },
            )
        }
        ForkResult::Parent { child } => {
            // The end that is written to is the child's alone, so that it ends with it.
            let said = said.take().map(|(read, _)| read);
            pass_signals_until_exit(child, &passed_on, said)
        }
    }
}

/// Stands in for ssh: `[options] HOST command…`, in a process that runs in the lab. Does not return if it succeeds.
pub(crate) fn agent(directory: &Path, arguments: &[OsString]) -> Result<Infallible, LabError> {
    let (host, command) = split_ssh_arguments(arguments)?;
    let hosts = fs::read_to_string(directory.join(crate::keeper::HOSTS_FILE))
        .map_err(at("read hosts of", directory))?;
    let index = host_index_in(&hosts, &host).ok_or_else(|| LabError::UnknownHost {
        lab: directory.file_name().unwrap_or_default().to_string_lossy().into(),
        host: host.clone(),
        known: "in /etc/hosts".into(),
    })?;
    become_host(directory, index, &host)?;
    let error = remote_shell(&command, directory).exec();
    Err(at("start a shell on", &host)(error))
}

/// Makes this process a process of the host: its network, its name, its view of /sys and /etc/hosts.
fn become_host(directory: &Path, index: usize, name: &str) -> Result<(), LabError> {
    join_network(&open(&network_file(directory, index))?)?;
    unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)
        .map_err(kernel("make the namespaces of a host"))?;
    make_mounts_private()?;
    // /sys shows the network of whoever mounted it, and UCX looks for interfaces there. Containers that hide parts of
    // /sys forbid this; then only programs that look there miss something.
    let _ = mount_virtual("sysfs", Path::new("/sys"));
    show_hosts_file(directory)?;
    sethostname(name).map_err(kernel("set the host name"))
}

fn execute(program: &[OsString], directory: &Path, stderr: Option<Stdio>) -> LabError {
    let Some((name, arguments)) = program.split_first() else {
        return LabError::Value { key: "command", expected: "a program".into(), found: String::new() };
    };
    let mut command = Command::new(name);
    command.args(arguments).env(TMPDIR, temporary_directory(directory));
    if let Some(stderr) = stderr {
        command.stderr(stderr);
    }
    let error = command.exec();
    at("start", PathBuf::from(name))(error)
}

/// Passes signals on to a program, and what it says in `said`, until it has ended.
fn pass_signals_until_exit(
    child: Pid,
    signals: &SigSet,
    mut said: Option<PipeReader>,
) -> Result<ExitCode, LabError> {
    let arrivals = SignalFd::new(signals).map_err(kernel("watch signals"))?;
    let mut words = LauncherWords::default();
    if let Some(said) = &said {
        fcntl(said, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(kernel("read what a program says"))?;
    }
    loop {
        let mut sources = vec![PollFd::new(arrivals.as_fd(), PollFlags::POLLIN)];
        sources.extend(said.iter().map(|said| PollFd::new(said.as_fd(), PollFlags::POLLIN)));
        match poll(&mut sources, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(kernel("watch a program")(error)),
        }
        let has_signal = sources[0].any().unwrap_or(true);
        // Also what it has said before it ended. A daemon that it leaves behind may hold the pipe for longer.
        if let Some(pipe) = &mut said
            && words.pass_on(pipe, &mut io::stderr()).unwrap_or(true)
        {
            said = None;
        }
        if !has_signal {
            continue;
        }
        let signal = arrivals.read_signal().map_err(kernel("watch signals"))?;
        let Some(signal) = signal else { continue };
        if signal.ssi_signo != Signal::SIGCHLD as u32 {
            // What the terminal sends, it sends to the whole process group: the child has it already.
            let from_terminal = signal.ssi_code == libc::SI_KERNEL;
            if !from_terminal && let Ok(signal) = Signal::try_from(signal.ssi_signo as i32) {
                let _ = kill(child, signal);
            }
            continue;
        }
        let status =
            match waitpid(child, Some(WaitPidFlag::WNOHANG)).map_err(kernel("wait for the program"))? {
                WaitStatus::Exited(_, status) => status as u8,
                WaitStatus::Signaled(_, signal, _) => 128 + signal as u8,
                _ => continue,
            };
        if let Some(pipe) = &mut said {
            let _ = words.pass_on(pipe, &mut io::stderr());
        }
        words.end(&mut io::stderr());
        return Ok(ExitCode::from(status));
    }
}

/// Options of ssh that take a word after them.
const SSH_OPTIONS_WITH_VALUE: &str = "BbcDEeFIiJLlmOopQRSWw";

/// Finds host and command behind ssh's options, which say nothing here.
fn split_ssh_arguments(arguments: &[OsString]) -> Result<(String, Vec<OsString>), LabError> {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        match text.strip_prefix('-') {
            Some(option) => {
                let takes_next = option.len() == 1 && SSH_OPTIONS_WITH_VALUE.contains(option);
                if takes_next {
                    rest.next();
                }
            }
            None => {
                let host = text.rsplit_once('@').map_or(&*text, |(_user, host)| host);
                return Ok((host.to_owned(), rest.cloned().collect()));
            }
        }
    }
    Err(LabError::Value { key: "agent", expected: "[ssh options] HOST command".into(), found: String::new() })
}

/// The line of a host in the hosts file, counted from 0 without the two lines of localhost.
fn host_index_in(hosts: &str, name: &str) -> Option<usize> {
    // By number: a host may be called so, too.
    let names = hosts.lines().skip(2);
    names
        .map(|line| line.split_once(' '))
        .position(|line| line.is_some_and(|(address, host)| is_same_name(host, name) || address == name))
}

/// True for a variable of the environment that a login over the network keeps. The rest would tell
/// the far side things that are true here only (with `PMIX_HOSTNAME`, every daemon takes itself for
/// the first one).
fn survives_login(name: &OsStr) -> bool {
    let kept = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LD_LIBRARY_PATH", "TZ"];
    kept.iter().any(|kept| name == *kept) || name.as_bytes().starts_with(b"LC_")
}

/// The command that runs these words in the user's shell as one line, as sshd does.
fn remote_shell(words: &[OsString], directory: &Path) -> Command {
    let shell = std::env::var_os("SHELL")
        .filter(|shell| Path::new(shell).is_file())
        .unwrap_or_else(|| "/bin/sh".into());
    let kept: Vec<_> = std::env::vars_os().filter(|(name, _)| survives_login(name)).collect();
    let mut command = Command::new(shell);
    command.arg("-c").arg(words.join(OsStr::new(" "))).env_clear().envs(kept);
    command.env(TMPDIR, temporary_directory(directory));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn ssh_options_are_skipped() {
        for text in
            ["h3 cmd -x a", "-x h3 cmd -x a", "-q -o Batch=yes -p 22 me@h3 cmd -x a", "-l me -x h3 cmd -x a"]
        {
            let (host, command) = split_ssh_arguments(&words(text)).unwrap();
            assert_eq!((host.as_str(), command), ("h3", words("cmd -x a")), "{text}");
        }
        assert!(split_ssh_arguments(&words("-x -p")).is_err());
    }

    #[test]
    fn hosts_are_found_by_name_and_address() {
        let plan = crate::Plan::one_switch(3, "20mbit".parse().unwrap()).unwrap();
        let hosts = crate::batch::hosts_file(&plan);
        assert_eq!(host_index_in(&hosts, "h2"), Some(2));
        assert_eq!(host_index_in(&hosts, "10.77.0.1"), Some(0));
        assert_eq!(host_index_in(&hosts, "h3"), None);
        assert_eq!(host_index_in(&hosts, "localhost"), None);
        let hosts = hosts.replace("h0", "localhost");
        assert_eq!(host_index_in(&hosts, "localhost"), Some(0));
        assert_eq!(host_index_in(&hosts, "h1"), Some(1));
    }

    #[test]
    fn identity_of_the_near_side_does_not_travel() {
        for (name, kept) in
            [("PATH", true), ("LC_ALL", true), ("PMIX_HOSTNAME", false), ("OMPI_COMM_WORLD_RANK", false)]
        {
            assert_eq!(survives_login(OsStr::new(name)), kept, "{name}");
        }
    }
}
