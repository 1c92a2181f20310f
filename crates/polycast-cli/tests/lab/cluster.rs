//! The labs of one test.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::common::cannot_run;
use crate::common::job::wait_until;

/// The tool under test.
pub const TOOL: &str = env!("CARGO_BIN_EXE_polycast");

/// A directory of state files; what is in it is removed at the end of the test, also of one that fails.
pub struct Labs {
    directory: TempDir,
}

impl Labs {
    pub fn new() -> Labs {
        Labs { directory: tempfile::tempdir().unwrap() }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// `polycast lab WORDS`.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command.arg("lab").args(words).env("POLYCAST_LAB_DIRECTORY", self.directory());
        command
    }

    /// Makes a lab. Fails where the kernel allows none; false if such tests may be left out.
    pub fn up(&self, words: &[&str]) -> bool {
        let output = self.command(&[&["up"], words].concat()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        if forbids_namespaces(&errors) {
            return false;
        }
        assert!(output.status.success(), "lab up {words:?}: {errors}");
        true
    }

    /// What a shell script prints on a host.
    pub fn exec(&self, lab: &str, host: &str, script: &str) -> String {
        self.succeeds(&["exec", lab, host, "--", "sh", "-c", script])
    }

    /// A script where the switches of a lab are.
    pub fn on_switches(&self, lab: &str, script: &str) -> ExitStatus {
        let keeper = self.wait_for_keeper(lab).to_string();
        // The lab has a user namespace of its own where root made none.
        let is_root = nix::unistd::geteuid().is_root();
        let namespaces: &[&str] =
            if is_root { &["--net"] } else { &["--user", "--preserve-credentials", "--net"] };
        let mut command = Command::new("nsenter");
        command.args(["--target", &keeper]).args(namespaces).args(["sh", "-c", script]).status().unwrap()
    }

    pub fn succeeds(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "lab {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn fails(&self, words: &[&str], with: &str) {
        let output = self.command(words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && errors.contains(with),
            "lab {words:?}: expected {with:?}, found {errors}"
        );
    }

    /// Waits until a lab is ready; the process that keeps it.
    pub fn wait_for_keeper(&self, lab: &str) -> i32 {
        let file = self.directory().join(format!("{lab}.json"));
        let state = || serde_json::from_slice::<serde_json::Value>(&fs::read(&file).ok()?).ok();
        wait_until("the lab is ready", || state().is_some_and(|state| state["ready"] == true));
        state().unwrap()["keeper_pid"].as_i64().unwrap().try_into().unwrap()
    }

    /// Fails if a lab has left something.
    pub fn are_gone(&self) {
        let left = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let left: Vec<String> =
            fs::read_dir(self.directory()).unwrap().map(|entry| left(entry.unwrap())).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Labs {
    fn drop(&mut self) {
        let _ = self.command(&["down", "--all"]).output();
    }
}

/// Whether a message says that this system lets its user make no namespaces, and such tests may be left out; otherwise it fails.
pub fn forbids_namespaces(errors: &str) -> bool {
    let forbidden = errors.contains("user namespaces are off") || errors.contains("unshare failed");
    if forbidden {
        cannot_run(errors.trim());
    }
    forbidden
}

/// Whether a process exists and does more than wait to be buried.
pub fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

pub fn kill(pid: i32) {
    let pid = nix::unistd::Pid::from_raw(pid);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    wait_until("the process is gone", || !is_alive(pid.as_raw()));
}

/// The output of a command, which is killed and fails the test, with what it has said, if it takes longer.
pub fn output_within(command: &mut Command, limit: Duration) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let (done, waiting) = std::sync::mpsc::channel();
    thread::spawn(move || done.send(child.wait_with_output()));
    match waiting.recv_timeout(limit) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            kill(pid);
            // What it has started may go on, and hold the pipes open.
            let said = waiting.recv_timeout(Duration::from_secs(10));
            panic!("{command:?} took longer than {limit:?}: {said:?}")
        }
    }
}
