//! `polycast cp` by multicast, between the hosts of labs.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::cluster::{Labs, TOOL};
use crate::common::job::wait_until;
use crate::common::lease::hold;

/// A lab of five, and a folder with sources and a folder for each host.
struct Site {
    labs: Labs,
    folder: TempDir,
}

impl Site {
    fn new(options: &[&str]) -> Option<Site> {
        let site = Site { labs: Labs::new(), folder: tempfile::tempdir().unwrap() };
        for host in HOSTS {
            fs::create_dir_all(site.out(host)).unwrap();
        }
        site.labs.up(&[&["box", "--hosts", "5"], options].concat()).then_some(site)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn out(&self, host: &str) -> PathBuf {
        self.at("out").join(host)
    }

    /// Multicast is named, so it is waited for however slow the machine is.
    fn start(&self, multicast: &str, sources: &[&str]) -> Child {
        let mut command = Command::new(TOOL);
        command.args(["cp", "--json", "-t", "600", "--lab", "box"]).args(sources).arg("out/%h/");
        command.current_dir(self.folder.path()).env("POLYCAST_LAB_DIRECTORY", self.labs.directory());
        command.env("POLYCAST_MULTICAST", multicast).stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What holds a node's folder open.
    fn agent(&self, host: &str) -> Option<Pid> {
        let folder = self.out(host);
        let holds = |process: &Path| {
            let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            files.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file.starts_with(&folder))
        };
        let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found = processes.into_iter().find(|process| holds(process))?;
        found.file_name()?.to_str()?.parse().ok().map(Pid::from_raw)
    }

    /// A node has written something down.
    fn is_halfway(&self, host: &str) -> bool {
        let mut entries = fs::read_dir(self.out(host)).unwrap().flatten();
        entries.any(|entry| entry.path().join("journal").exists())
    }
}

const HOSTS: [&str; 4] = ["h1", "h2", "h3", "h4"];

fn report(child: Child) -> (Option<i32>, Value) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

fn contents(bytes: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(5);
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// Text, then what does not become shorter, then text: segments of many lengths.
fn mixed() -> Vec<u8> {
    let text: String =
        (0..100_000).map(|line| format!("line {line}: of a text that becomes shorter\n")).collect();
    [text.as_bytes(), &contents(1_000_000), text.as_bytes()].concat()
}

/// In each of these ways; the second word is what the report calls it. Compressed it takes so many bytes, if that is asked for.
fn all_get_it(site: &Site, bytes: Vec<u8>, ways: &[(&str, &str)], compressed: Option<Range<u64>>) {
    fs::write(site.at("file"), &bytes).unwrap();
    for (multicast, method) in ways {
        let words = if compressed.is_some() { ["-C", "-f", "file"] } else { ["-C=none", "-f", "file"] };
        let (code, said) = report(site.start(multicast, &words));
        assert_eq!(code, Some(0), "{said:#}");
        assert_eq!(said["method"], *method, "{said:#}");
        if let Some(expected) = &compressed {
            assert!(expected.contains(&said["compressed_bytes"].as_u64().unwrap()), "{said:#}");
        }
        for host in HOSTS {
            assert!(fs::read(site.out(host).join("file")).unwrap() == bytes, "{host}");
            fs::remove_file(site.out(host).join("file")).unwrap();
        }
    }
}

/// All hosts of a lab see one file system.
#[test]
fn a_folder_that_hosts_share_is_written_once() {
    let Some(site) = Site::new(&[]) else { return };
    let file = contents((1 << 20) + 12_345);
    fs::write(site.at("file"), &file).unwrap();
    let mut command = Command::new(TOOL);
    command.args(["cp", "-t", "600", "--lab", "box", "file", "out/shared"]).current_dir(site.folder.path());
    let output = command.env("POLYCAST_LAB_DIRECTORY", site.labs.directory()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("h1, h2, h3, h4 have DEST in common (same file system): copied once"), "{text}");
    assert!(fs::read(site.at("out/shared")).unwrap() == file);
    let names = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut left: Vec<String> = fs::read_dir(site.at("out")).unwrap().flatten().map(names).collect();
    left.sort();
    assert_eq!(left, ["h1", "h2", "h3", "h4", "shared"]);
}

#[test]
fn files_go_by_multicast() {
    let Some(site) = Site::new(&[]) else { return };
    let ways = [("ipv4", "multicast")];
    all_get_it(&site, contents((1 << 20) + 12_345), &ways, None);
    all_get_it(&site, mixed(), &ways, Some(1_000_000..5_000_000));
}

#[test]
#[ignore = "make test-all: takes 10 s"]
fn files_go_by_multicast_though_datagrams_get_lost() {
    let Some(site) = Site::new(&["--loss", "2%"]) else { return };
    let ways = [("ipv4", "multicast"), ("off", "chain"), ("ipv6", "multicast")];
    all_get_it(&site, contents((3 << 20) + 12_345), &ways, None);
    all_get_it(&site, mixed(), &ways, Some(1_000_000..5_000_000));
}

/// Of five nodes one stops and one dies while the source stands still: the others have everything before these do anything.
#[test]
#[ignore = "make test-all: takes 10 s"]
fn a_ring_goes_on_without_those_that_stop() {
    let Some(site) = Site::new(&[]) else { return };
    let first = contents(10 << 20);
    fs::write(site.at("first"), &first).unwrap();
    fs::write(site.at("second"), &first[..5 << 20]).unwrap();
    let second = hold(&site.at("second"));
    let copy = site.start("ipv4", &["first", "second"]);
    wait_until("all are halfway", || HOSTS.iter().all(|host| site.is_halfway(host)));
    let [stopped, killed] = ["h2", "h4"].map(|host| site.agent(host).unwrap());
    kill(stopped, Signal::SIGSTOP).unwrap();
    kill(killed, Signal::SIGKILL).unwrap();
    drop(second);
    let has_all = |host: &str| site.out(host).join("second").exists();
    wait_until("the others have everything", || has_all("h1") && has_all("h3"));
    assert!(!has_all("h2") && !has_all("h4"));
    kill(stopped, Signal::SIGCONT).unwrap();
    let (code, said) = report(copy);
    assert_eq!(code, Some(1), "{said:#}");
    assert_eq!(said["method"], "multicast");
    let node =
        |host: &str| said["nodes"].as_array().unwrap().iter().find(|node| node["host"] == host).unwrap();
    assert_eq!(node("h2")["set_aside"], "silent", "{said:#}");
    // As a shell has it: lab exec passes it on.
    assert!(node("h4")["reason"].as_str().unwrap().contains("exit status: 137"), "{said:#}");
    for host in ["h1", "h2", "h3"] {
        assert!(fs::read(site.out(host).join("first")).unwrap() == first, "{host}");
        assert!(fs::read(site.out(host).join("second")).unwrap() == first[..5 << 20], "{host}");
    }
}
