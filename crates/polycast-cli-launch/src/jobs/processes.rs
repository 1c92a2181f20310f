//! A launcher's processes on this machine: ssh or what stands for it, daemons, ranks; in a lab all of them.

use std::collections::HashSet;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polycast_system::{Process, Status};

/// Processes, each known by its number and by when it started, because numbers are used again.
#[derive(Debug, Default)]
pub struct Processes(HashSet<Process>);

impl Processes {
    /// Adds the processes that `root` or a known process has started, and those that they have
    /// started, and so on. A daemon that was known before its parent ended stays known.
    pub fn look(&mut self, root: i32) {
        let all: Vec<Status> = Status::all().collect();
        // The number of one that has ended may be a stranger's by now.
        let known = all.iter().map(|status| status.process).filter(|process| self.0.contains(process));
        let mut new: Vec<i32> = known.map(|process| process.pid).chain([root]).collect();
        while let Some(parent) = new.pop() {
            for Status { process, .. } in all.iter().filter(|status| status.parent == parent) {
                if self.0.insert(*process) {
                    new.push(process.pid);
                }
            }
        }
    }

    /// Kills the known processes that are still there.
    pub fn kill(&self) {
        for process in &self.0 {
            if Status::read(process.pid).is_some_and(|now| now.process == *process) {
                // It may end at this moment.
                let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn children_of_a_stranger_with_a_used_number_are_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let me = Status::read(std::process::id() as i32).unwrap().process;
        let child_here = Status::read(child.id() as i32).unwrap().process;
        let mut processes = Processes([Process { start_ticks: me.start_ticks + 1, ..me }].into());
        processes.look(child_here.pid);
        assert!(!processes.0.contains(&child_here));
        processes.0 = [me].into();
        processes.look(child_here.pid);
        assert!(processes.0.contains(&child_here));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_daemon_does_not_escape() {
        // The grandchild ignores what asks it to end, and outlives its parent.
        let script = "sh -c 'trap \"\" TERM HUP; echo $$; while :; do sleep 1; done' & read stay";
        let mut command = Command::new("sh");
        let mut child =
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let daemon: i32 = line.trim().parse().unwrap();
        let mut processes = Processes::default();
        processes.look(child.id() as i32);
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(Status::read(daemon).is_some(), "it ended with its parent");
        processes.kill();
        // Whoever inherited it may take a while to bury it.
        while Status::read(daemon).is_some_and(|status| !status.has_ended) {
            std::thread::yield_now();
        }
    }
}
