//! `polycast cp` between processes of this machine that stand for nodes: a launcher that only leaves out the host's name.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::cannot_run;
use crate::common::job::{self, wait_until};
use crate::common::lease::hold;

mod again;
mod in_common;
mod silence;

const TOOL: &str = env!("CARGO_BIN_EXE_polycast");

/// A folder with sources, and a folder for each node that notes its process there.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(nodes: &[&str]) -> Site {
        let site = Site { folder: tempfile::tempdir().unwrap() };
        for node in nodes {
            fs::create_dir_all(site.at("out").join(node)).unwrap();
        }
        let launcher = site.at("launcher");
        let pids = site.at("pids");
        fs::create_dir(&pids).unwrap();
        let script = format!("#!/bin/sh\necho $$ > {}/$1\nshift\neval exec \"$@\"\n", pids.display());
        fs::write(&launcher, script).unwrap();
        fs::set_permissions(&launcher, fs::Permissions::from_mode(0o755)).unwrap();
        site
    }

    /// The agent of a node is started by these words.
    fn start_through(&self, node: &str, words: &str) {
        let script = format!(
            "#!/bin/sh\nhost=$1\nshift\neval \"set -- $*\"\n[ $host != {node} ] || set -- {words} \"$@\"\nexec \"$@\"\n"
        );
        fs::write(self.at("launcher"), script).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn out(&self, name: &str) -> PathBuf {
        self.at("out").join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command.args(["cp", "--launcher", self.at("launcher").to_str().unwrap()]).args(words);
        command.current_dir(self.folder.path()).env_remove("SLURM_JOB_NODELIST");
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The exit status and the report.
    fn report(&self, words: &[&str]) -> (Option<i32>, Value) {
        report(self.run(&[&["--json"], words].concat()))
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(&[&["--json"], words].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The process that stands for a node.
    fn process(&self, node: &str) -> Pid {
        let file = self.at("pids").join(node);
        wait_until("the node notes its process", || {
            fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
        });
        Pid::from_raw(fs::read_to_string(file).unwrap().trim().parse().unwrap())
    }

    /// What a node has written down of its way.
    fn journal(&self, node: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(self.out(node)).ok()?.flatten();
        let journals = entries.map(|entry| entry.path().join("journal"));
        journals.into_iter().find(|journal| journal.exists())
    }

    fn leftovers(&self, node: &str) -> usize {
        let entries = fs::read_dir(self.out(node)).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".polycast")).count()
    }
}

fn report(output: Output) -> (Option<i32>, Value) {
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), value)
}

/// Waits until a copy has brought something about; fails with what it has said if it has ended before.
fn wait_for(copy: &mut Child, is_so: impl Fn() -> bool) {
    if !job::wait_for(copy, is_so) {
        let said = copy.stdout.take().map(std::io::read_to_string);
        let errors = copy.stderr.take().map(std::io::read_to_string);
        panic!("the copy has ended too early: {said:?} {errors:?}");
    }
}

fn node<'a>(report: &'a Value, host: &str) -> &'a Value {
    report["nodes"].as_array().unwrap().iter().find(|node| node["host"] == host).unwrap()
}

/// Bytes that no two places share.
fn contents(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// Lines that are much alike.
fn lines(count: usize) -> String {
    (0..count).map(|line| format!("line {line}: of a text that becomes shorter\n")).collect()
}

fn assert_same(left: &Path, right: &Path) {
    let status = Command::new("diff").args(["-r", "--no-dereference"]).args([left, right]).status().unwrap();
    assert!(status.success(), "{} and {} differ", left.display(), right.display());
}

#[test]
fn a_folder_is_the_same_on_all_nodes() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let source = site.at("source");
    fs::create_dir_all(source.join("below/empty")).unwrap();
    fs::write(source.join("big"), contents(300_000)).unwrap();
    fs::write(source.join("below/none"), "").unwrap();
    fs::write(source.join("below/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(source.join("below/run"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(source.join("below/empty"), fs::Permissions::from_mode(0o555)).unwrap();
    // Links are copied as links, wherever they lead.
    symlink("/nowhere/../../etc", source.join("link")).unwrap();
    fs::hard_link(source.join("big"), source.join("second-name")).unwrap();
    let holes = fs::File::create(source.join("holes")).unwrap();
    holes.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&holes, b"in the middle", 5 << 20).unwrap();
    drop(holes);
    let (code, said) = site.report(&["-r", "-p", "--hosts", "n[0-2]", "source", "out/%h/copy"]);
    assert_eq!(code, Some(0), "{said:#}");
    for host in ["n0", "n1", "n2"] {
        let copy = site.out(host).join("copy");
        assert_same(&source, &copy);
        let (was, is) = (fs::metadata(source.join("below/run")), fs::metadata(copy.join("below/run")));
        let (was, is) = (was.unwrap(), is.unwrap());
        assert_eq!((is.mode(), is.mtime(), is.mtime_nsec()), (was.mode(), was.mtime(), was.mtime_nsec()));
        let folders = [&source, &copy].map(|at| fs::metadata(at.join("below/empty")).unwrap());
        assert_eq!(folders[0].mode(), folders[1].mode());
        assert_eq!(folders[0].mtime_nsec(), folders[1].mtime_nsec());
        assert!(fs::metadata(copy.join("holes")).unwrap().blocks() * 512 < 4 << 20, "holes stay holes");
        assert_eq!(fs::metadata(copy.join("second-name")).unwrap().nlink(), 2);
        assert_eq!(site.leftovers(host), 0);
        assert_eq!(node(&said, host)["has_all"], true);
    }
    // Into a folder that is there, a tree in place of the chain; and nothing is replaced unasked.
    let words = ["-r", "-F", "2", "--hosts", "n[0-2]", "source", "launcher", "out/%h"];
    assert_eq!(site.report(&words).0, Some(0));
    assert_same(&source, &site.out("n1").join("source"));
    let (code, said) = site.report(&words);
    assert_eq!(code, Some(1));
    let reason = node(&said, "n2")["reason"].as_str().unwrap();
    assert!(reason.ends_with("exists; -f replaces it"), "{reason}");
    assert_eq!(site.report(&[&["-f"], &words[..]].concat()).0, Some(0));
}

#[test]
fn what_becomes_shorter_travels_compressed() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let source = site.at("source");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("text"), lines(20_000)).unwrap();
    fs::write(source.join("random"), contents(300_000)).unwrap();
    let holes = fs::File::create(source.join("holes")).unwrap();
    holes.set_len(8 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&holes, lines(1_000).as_bytes(), 5 << 20).unwrap();
    drop(holes);
    let words = ["-r", "-f", "--hosts", "n[0-2]", "source", "out/%h/"];
    for fanout in ["1", "2"] {
        let (code, said) = site.report(&[&["-C", "-F", fanout], &words[..]].concat());
        assert_eq!(code, Some(0), "{said:#}");
        let [bytes, sent] = ["bytes", "compressed_bytes"].map(|key| said[key].as_u64().unwrap());
        // The random file stays as it is.
        assert!(sent > 300_000 && sent - 300_000 < (bytes - 300_000) / 2, "{said:#}");
        for host in ["n0", "n1", "n2"] {
            assert_same(&source, &site.out(host).join("source"));
            let blocks = fs::metadata(site.out(host).join("source/holes")).unwrap().blocks();
            assert!(blocks * 512 < 4 << 20, "holes stay holes");
        }
    }
    for words in [&["-C=none"][..], &[]].map(|asked| [asked, &words[..]].concat()) {
        assert!(site.report(&words).1["compressed_bytes"].is_null());
    }
    let (code, said) = site.report(&["-C", "--hosts", "n0", "source/random", "out/%h/"]);
    assert_eq!(code, Some(0));
    // No block of it, and the list of files as it is.
    assert!((300_000..300_100).contains(&said["compressed_bytes"].as_u64().unwrap()), "{said:#}");
}

/// A node that goes on takes what is compressed from one that has it on disk only, and looks at all of it in the end.
#[test]
fn a_compressed_copy_goes_on_after_an_interruption() {
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("first"), lines(20_000)).unwrap();
    fs::write(site.at("second"), lines(9_000)).unwrap();
    let words = ["-C", "-s", "4KiB", "--hosts", "n[0-1]", "first", "second", "out/%h/"];
    let second = hold(&site.at("second"));
    let mut child = site.start(&[&["-t", "600"], &words[..]].concat());
    wait_for(&mut child, || site.journal("n0").is_some());
    kill(site.process("n0"), Signal::SIGKILL).unwrap();
    drop(second);
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{said:#}");
    assert!(has_both(&site, "n1"), "{said:#}");
    let (code, said) = site.report(&[&["-f"], &words[..]].concat());
    assert_eq!(code, Some(0), "{said:#}");
    assert!(node(&said, "n0")["resumed_bytes"].as_u64().unwrap() > 0, "{said:#}");
    ["n0", "n1"].iter().for_each(|host| assert_both_same(&site, host));
}

#[test]
fn what_is_wrong_on_one_node_is_told_of_that_one() {
    let site = Site::new(&["n0", "n1", "n2"]);
    fs::write(site.at("file"), contents(100_000)).unwrap();
    fs::remove_dir(site.out("n1")).unwrap();
    fs::create_dir(site.out("n2").join("file")).unwrap();
    let output = site.run(&["--hosts", "n[0-2]", "file", "out/%h/file"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("on 2 of 3 nodes"), "{text}");
    assert!(text.contains("n1: failed: ") && text.contains("there is no folder"), "{text}");
    for copy in [site.out("n0").join("file"), site.out("n2").join("file/file")] {
        assert_eq!(fs::read(copy).unwrap(), contents(100_000));
    }
    // Through a link no folder is copied, for it leads elsewhere.
    fs::create_dir_all(site.at("tree/below")).unwrap();
    fs::write(site.at("tree/below/x"), "x").unwrap();
    fs::create_dir_all(site.out("n0").join("tree")).unwrap();
    fs::create_dir(site.at("elsewhere")).unwrap();
    symlink(site.at("elsewhere"), site.out("n0").join("tree/below")).unwrap();
    let (code, said) = site.report(&["-r", "-f", "--hosts", "n0", "tree", "out/%h"]);
    assert_eq!(code, Some(1));
    assert!(node(&said, "n0")["reason"].as_str().unwrap().contains("is a link"), "{said:#}");
    assert_eq!(fs::read_dir(site.at("elsewhere")).unwrap().count(), 0);
    assert_eq!(site.leftovers("n0"), 0);
    // What is no source at all is told before anything begins.
    for (words, status, expected) in [
        (vec!["--hosts", "n0", "tree", "out/%h"], 1, "is a folder; -r copies it"),
        (vec!["--hosts", "n0", "nothing", "out/%h"], 1, "No such file"),
        (vec!["--hosts", "n0", "file", "out/%x"], 2, "expected %h or %%"),
        (vec!["--hosts", "n0", "--topology", "no.conf", "file", "out/%h"], 1, "no.conf"),
        (vec!["--hostfile", "no.hosts", "file", "out/%h"], 1, "no.hosts"),
    ] {
        let output = site.run(&words);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && text.contains(expected), "{text}");
    }
}

/// A copy that stands still after the first of two files, and words for it.
fn halfway(site: &Site) -> (Child, fs::File) {
    fs::write(site.at("first"), contents(600 << 10)).unwrap();
    fs::write(site.at("second"), contents(400 << 10)).unwrap();
    let second = hold(&site.at("second"));
    (site.start(&["-t", "600", "-s", "4KiB", "--hosts", "n[0-2]", "first", "second", "out/%h/"]), second)
}

fn assert_both_same(site: &Site, host: &str) {
    ["first", "second"].iter().for_each(|name| assert_same(&site.at(name), &site.out(host).join(name)));
}

fn has_both(site: &Site, host: &str) -> bool {
    ["first", "second"].iter().all(|name| site.out(host).join(name).exists())
}

#[test]
fn a_killed_node_is_gone_around_and_goes_on_in_the_next_run() {
    let site = Site::new(&["n0", "n1", "n2", "n3"]);
    let (mut child, second) = halfway(&site);
    wait_for(&mut child, || site.journal("n0").is_some());
    kill(site.process("n0"), Signal::SIGKILL).unwrap();
    drop(second);
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{said:#}");
    assert!(node(&said, "n0")["reason"].as_str().unwrap().contains("signal: 9"), "{said:#}");
    assert!(has_both(&site, "n1") && has_both(&site, "n2"), "{said:#}");
    assert_eq!(site.leftovers("n0"), 1);
    // Somebody has changed what was left: from there on it is not used, nor given to who comes behind.
    let left = site.journal("n0").unwrap().with_file_name("tree").join("first");
    let folder = left.parent().unwrap().parent().unwrap().to_owned();
    let kept = site.at("kept");
    assert!(Command::new("cp").arg("-a").args([&folder, &kept]).status().unwrap().success());
    let mut bad = fs::read(&left).unwrap();
    bad[300_000] ^= 1;
    fs::write(&left, bad).unwrap();
    let (code, said) = site.report(&["-s", "4KiB", "--hosts", "n0,n3", "first", "second", "out/%h/"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert!((200_000..300_000).contains(&node(&said, "n0")["resumed_bytes"].as_u64().unwrap()), "{said:#}");
    ["n0", "n3"].iter().for_each(|host| assert_both_same(&site, host));
    assert_eq!(site.leftovers("n0") + site.leftovers("n3"), 0);
    // As it was left, all of it is gone on with.
    ["first", "second"].iter().for_each(|name| fs::remove_file(site.out("n0").join(name)).unwrap());
    assert!(Command::new("cp").arg("-a").args([&kept, &folder]).status().unwrap().success());
    let (code, said) = site.report(&["-s", "4KiB", "--hosts", "n0", "first", "second", "out/%h/"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert!(node(&said, "n0")["resumed_bytes"].as_u64().unwrap() >= 512 << 10, "{said:#}");
    assert_both_same(&site, "n0");
    assert_eq!(site.leftovers("n0"), 0);
}

/// What one node cannot do is told of it in words; the others have the file.
#[test]
fn a_node_without_room_or_rights_is_told_and_delays_nobody() {
    if !nix::unistd::geteuid().is_root() {
        return cannot_run("mounts and capabilities are for root");
    }
    for (words, expected) in [
        // As root without what lets root write everywhere.
        ("setpriv --bounding-set=-dac_override --inh-caps=-dac_override", "Permission denied"),
        (&in_mount("-o size=64k"), "300000 bytes are to come, and "),
        (&in_mount("-o ro"), "Read-only file system"),
        // Nobody can tell before how much fits.
        ("prlimit --fsize=100000 env --ignore-signal=XFSZ", "File too large"),
    ] {
        let site = Site::new(&["n0", "n1", "n2"]);
        fs::write(site.at("file"), contents(300_000)).unwrap();
        let mode = if words.starts_with("setpriv") { 0o555 } else { 0o755 };
        fs::set_permissions(site.out("n1"), fs::Permissions::from_mode(mode)).unwrap();
        site.start_through("n1", words);
        let (code, said) = site.report(&["-t", "600", "--hosts", "n[0-2]", "file", "out/%h/"]);
        assert_eq!(code, Some(1), "{words}: {said:#}");
        let reason = node(&said, "n1")["reason"].as_str().unwrap();
        assert!(reason.contains(expected) && reason.contains("/out/n1"), "{words}: {reason}");
        assert_eq!(fs::read_dir(site.out("n1")).unwrap().count(), 0, "{words}: what there is goes");
        for host in ["n0", "n2"] {
            assert_same(&site.at("file"), &site.out(host).join("file"));
        }
    }
}

/// With a file system of its own in the place of n1's folder.
fn in_mount(options: &str) -> String {
    let mount = format!("mount -t tmpfs {options} none out/n1 && exec \"$@\"");
    format!("unshare --mount sh -c '{mount}' sh")
}

#[test]
fn a_name_that_is_too_long_is_told_by_the_nodes() {
    let site = Site::new(&["n0"]);
    fs::write(site.at("file"), "x").unwrap();
    let (code, said) = site.report(&["--hosts", "n0", "file", &format!("out/%h/{}", "n".repeat(256))]);
    assert_eq!(code, Some(1));
    assert!(node(&said, "n0")["reason"].as_str().unwrap().contains("File name too long"), "{said:#}");
    assert_eq!(site.leftovers("n0"), 0);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_on_no_node() {
    for (bytes, expected) in
        [(&b"changed"[..], "changed while it was read"), (b"", "became shorter while it was read")]
    {
        let site = Site::new(&["n0", "n1", "n2"]);
        let (mut child, mut second) = halfway(&site);
        wait_for(&mut child, || site.journal("n2").is_some());
        // Looked at, and not read yet.
        second.set_len(if bytes.is_empty() { 0 } else { 400 << 10 }).unwrap();
        second.write_all(bytes).unwrap();
        drop(second);
        let (code, said) = report(child.wait_with_output().unwrap());
        assert_eq!(code, Some(1), "{said:#}");
        let left_out = &said["left_out"][0];
        assert!(left_out["file"].as_str().unwrap().ends_with("/second"), "{said:#}");
        assert_eq!(left_out["reason"], expected);
        for host in ["n0", "n1", "n2"] {
            assert_same(&site.at("first"), &site.out(host).join("first"));
            assert!(!site.out(host).join("second").exists(), "{host}");
            assert_eq!((site.leftovers(host), &node(&said, host)["has_all"]), (0, &false.into()));
        }
    }
}

/// The words of a launcher are read by a shell on the other side, as ssh has it.
#[test]
fn the_tool_is_brought_along_and_leaves_nothing() {
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("file"), contents(100_000)).unwrap();
    fs::create_dir(site.at("tmp")).unwrap();
    let script = format!("#!/bin/sh\nshift\nTMPDIR={} exec sh -c \"$*\"\n", site.at("tmp").display());
    fs::write(site.at("launcher"), script).unwrap();
    let (code, said) = site.report(&["--bootstrap", "--hosts", "n[0-1]", "file", "out/%h/"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert_eq!(fs::read(site.out("n1").join("file")).unwrap(), contents(100_000));
    assert_eq!(fs::read_dir(site.at("tmp")).unwrap().count(), 0, "the tool is gone");
}

/// Two names of a host, and a daemon that lives as long as its network.
#[test]
#[ignore = "make test-all: needs root and an ssh daemon"]
fn nodes_are_reached_by_ssh() {
    let site = Site::new(&["127.0.0.2", "127.0.0.3"]);
    fs::write(site.at("a file"), contents(300_000)).unwrap();
    fs::create_dir_all("/run/sshd").unwrap();
    let script = "set -e; ip link set lo up; ssh-keygen -q -t ed25519 -N '' -f key
        /usr/sbin/sshd -D -f /dev/null -p 2222 -h $PWD/key -o AuthorizedKeysFile=$PWD/key.pub \
            -o StrictModes=no -o PidFile=none -o UsePAM=no 2>&1 &
        trap \"kill $!\" EXIT
        options=\"-p 2222 -i $PWD/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null\"
        until ssh $options 127.0.0.2 true; do sleep 0.1; done
        for more in '' --bootstrap; do
            $TOOL cp -f --quiet $more --launcher \"ssh $options\" --hosts 127.0.0.2,127.0.0.3 'a file' out/%h/
        done";
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", script]).current_dir(site.folder.path()).env("TOOL", TOOL);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for host in ["127.0.0.2", "127.0.0.3"] {
        assert_same(&site.at("a file"), &site.out(host).join("a file"));
        assert_eq!(site.leftovers(host), 0);
    }
}
