//! Workers of ours on hosts: how they are started, and what to do where one does not answer.

use std::path::PathBuf;
use std::process::Command;

use polycast_lab::{Lab, LabError, own_program};

use crate::reach::{Agent, Reach, host_name};

/// The advice where nothing is between here and a worker.
const BY_HAND: &str = "run polycast there by hand and see what it says";

/// The hosts on which workers are started.
pub struct Fleet {
    /// The names of the hosts.
    hosts: Vec<String>,
    reach: Reach,
    /// polycast on hosts behind an agent; elsewhere it is this program.
    tool: Option<PathBuf>,
}

impl Fleet {
    /// A fleet of this machine only.
    pub fn here() -> Fleet {
        Fleet { hosts: vec![host_name()], reach: Reach::Here, tool: None }
    }

    /// A fleet of hosts in the order of their names on the command line. `tool` says where polycast is
    /// on the hosts, if not where it is here.
    pub fn remote(hosts: Vec<String>, agent: Option<Agent>, tool: Option<PathBuf>) -> Fleet {
        Fleet { hosts, reach: Reach::Remote(agent.unwrap_or_else(Agent::ssh)), tool }
    }

    /// A fleet of the hosts of the lab of this name, or of a lab that is made as `lab` says and
    /// lives as long as this process.
    pub fn emulated(lab: &str) -> Result<Fleet, LabError> {
        let reach = Reach::lab_of(lab)?;
        let hosts = reach.lab().map_or(&[][..], Lab::hosts).iter().map(|host| host.name.clone()).collect();
        Ok(Fleet { hosts, reach, tool: None })
    }

    /// The hosts' names.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The way to the hosts.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// True if the hosts share this machine, so that its own settings say nothing about them.
    pub fn is_emulated(&self) -> bool {
        self.reach.lab().is_some()
    }

    /// The command that starts a worker of this hidden verb on a host.
    pub fn worker_on(&self, host: &str, verb: &str) -> Result<Command, Box<dyn std::error::Error>> {
        self.reach.command_on(host, &self.tool_on(host)?, &[verb])
    }

    fn tool_on(&self, host: &str) -> std::io::Result<PathBuf> {
        match &self.tool {
            Some(tool) if self.reach.agent_to(host).is_some() => Ok(tool.clone()),
            _ => own_program(),
        }
    }

    /// The advice on a worker that does not answer; `code` is what it ended with, if it did.
    pub fn remedy_for(&self, host: &str, code: Option<i32>) -> String {
        let Reach::Remote(agent) = &self.reach else {
            return BY_HAND.to_owned();
        };
        match code {
            Some(126 | 127) => format!(
                "install polycast on {host} as {} (a folder that all hosts share is best), or say where it is: --remote-tool FILE",
                self.tool_on(host).unwrap_or_else(|_| "polycast".into()).display()
            ),
            // An older polycast does not know the worker's verb and ends with status 2.
            Some(2) => self.remedy_for_version(host),
            _ => format!("make this work without a password: {}", agent.line_to(host)),
        }
    }

    /// The advice on a worker of another version.
    pub fn remedy_for_version(&self, host: &str) -> String {
        match self.reach {
            Reach::Remote(_) => {
                format!("install version {} of polycast on {host}", env!("CARGO_PKG_VERSION"))
            }
            Reach::Here | Reach::Lab(_) => BY_HAND.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_this_program_or_the_one_over_there() {
        let here = host_name();
        let tool = Some("/opt/my tools/polycast".into());
        let fleet = Fleet::remote(vec![here.clone(), "far".into()], None, tool);
        let own = fleet.worker_on(&here, "doctor-agent").unwrap();
        assert_eq!(own.get_program(), std::env::current_exe().unwrap());
        let far = fleet.worker_on("far", "doctor-agent").unwrap();
        let words: Vec<_> = far.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words[words.len() - 3..], ["far", "'/opt/my tools/polycast'", "doctor-agent"]);
        assert!(fleet.remedy_for("far", Some(127)).contains("far as /opt/my tools/polycast (a folder"));
        assert!(fleet.remedy_for("far", Some(127)).contains("--remote-tool"));
        assert!(fleet.remedy_for("far", Some(255)).ends_with("far true"));
        assert!(fleet.remedy_for("far", Some(2)).starts_with("install version"));
        assert!(fleet.remedy_for_version("far").starts_with("install version"));
    }
}
