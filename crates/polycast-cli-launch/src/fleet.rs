//! Hosts on which a worker of ours is started, and how it gets there.

use std::path::{Path, PathBuf};
use std::process::Command;

use polycast_core::topology::{is_same_name, without_domain};
use polycast_lab::{Lab, LabError, LabSpec, Lifetime, own_program};

/// The ssh command with options that make it behave: no question that nobody answers, no endless
/// wait, no terminal.
const SSH: [&str; 6] = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];

/// The advice where nothing is between here and a worker.
const BY_HAND: &str = "run polycast there by hand and see what it says";

/// The hosts on which workers are started.
pub enum Fleet {
    /// On this machine only.
    Here {
        /// The name it is shown by.
        name: String,
    },
    /// On hosts that are reached by ssh.
    Remote {
        /// The names of the hosts.
        hosts: Vec<String>,
        /// The name of this machine, on which a worker is started without ssh.
        here: String,
        /// ssh with its options, or what stands for it.
        agent: Vec<String>,
        /// polycast on those hosts.
        tool: PathBuf,
    },
    /// On the hosts of a lab.
    Emulated(Lab),
}

impl Fleet {
    /// A fleet of this machine only.
    pub fn here() -> Fleet {
        Fleet::Here { name: host_name() }
    }

    /// A fleet of hosts in the order of their names on the command line. `agent` stands in for ssh;
    /// `tool` says where polycast is on the hosts, if not where it is here.
    pub fn remote(
        hosts: Vec<String>,
        agent: Option<Vec<String>>,
        tool: Option<PathBuf>,
    ) -> std::io::Result<Fleet> {
        let tool = tool.map_or_else(own_program, Ok)?;
        let agent = agent.unwrap_or_else(|| SSH.map(str::to_owned).to_vec());
        Ok(Fleet::Remote { hosts, here: host_name(), agent, tool })
    }

    /// A fleet of the hosts of the lab of this name, or of a lab that is made as `lab` says and
    /// lives as long as this process.
    pub fn emulated(lab: &str) -> Result<Fleet, LabError> {
        if !lab.contains('=') {
            return Ok(Fleet::Emulated(Lab::open(lab)?));
        }
        let spec: LabSpec = lab.parse()?;
        Ok(Fleet::Emulated(Lab::up(&spec.plan()?, spec.name.as_deref(), Lifetime::Caller)?))
    }

    /// The hosts' names.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Fleet::Here { name } => vec![name.clone()],
            Fleet::Remote { hosts, .. } => hosts.clone(),
            Fleet::Emulated(lab) => lab.hosts().iter().map(|host| host.name.clone()).collect(),
        }
    }

    /// True if the hosts share this machine, so that its own settings say nothing about them.
    pub fn is_emulated(&self) -> bool {
        matches!(self, Fleet::Emulated(_))
    }

    /// The command that starts a worker of this hidden verb on a host.
    pub fn worker_on(&self, host: &str, verb: &str) -> Result<Command, Box<dyn std::error::Error>> {
        let own_tool = own_program()?;
        let local = |tool: &Path| {
            let mut command = Command::new(tool);
            command.arg(verb);
            command
        };
        Ok(match self {
            Fleet::Here { .. } => local(&own_tool),
            Fleet::Remote { here, .. } if is_here(host, here) => local(&own_tool),
            Fleet::Remote { agent, tool, .. } => {
                let (program, options) = agent.split_first().ok_or("expected a command in place of ssh")?;
                let tool =
                    tool.to_str().ok_or_else(|| format!("{}: expected a path in UTF-8", tool.display()))?;
                let mut command = Command::new(program);
                // The far side's shell reads the words again.
                command.args(options).arg(host).arg(shell_words::quote(tool).as_ref()).arg(verb);
                command
            }
            Fleet::Emulated(lab) => {
                let mut command = lab.command_on(host, own_tool)?;
                command.arg(verb);
                command
            }
        })
    }

    /// The advice on a worker that does not answer; `code` is what it ended with, if it did.
    pub fn remedy_for(&self, host: &str, code: Option<i32>) -> String {
        let Fleet::Remote { agent, tool, .. } = self else {
            return BY_HAND.to_owned();
        };
        match code {
            Some(126 | 127) => format!(
                "install polycast on {host} as {} (a folder that all hosts share is best), or say where it is: --remote-tool FILE",
                tool.display()
            ),
            // An older polycast does not know the worker's verb and ends with status 2.
            Some(2) => self.remedy_for_version(host),
            _ => format!("make this work without a password: {} {host} true", shell_words::join(agent)),
        }
    }

    /// The advice on a worker of another version.
    pub fn remedy_for_version(&self, host: &str) -> String {
        match self {
            Fleet::Remote { .. } => {
                format!("install version {} of polycast on {host}", env!("CARGO_PKG_VERSION"))
            }
            _ => BY_HAND.to_owned(),
        }
    }
}

/// True if a name is this machine's, with or without its domain.
pub fn is_here(host: &str, here: &str) -> bool {
    is_same_name(host, "localhost")
        || is_same_name(host, here)
        || !host.contains('.') && is_same_name(host, without_domain(here))
}

/// The name of this machine.
pub fn host_name() -> String {
    nix::unistd::gethostname().map_or("localhost".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_may_be_left_out() {
        assert!(
            is_here("n1", "n1.site.org")
                && is_here("n1.site.org", "n1.site.org")
                && is_here("LocalHost", "n1")
                && is_here("N1", "n1.site.org")
                && is_here("N1.Site.org", "n1.site.org")
        );
        assert!(!is_here("n", "n1.site.org") && !is_here("n1.site.org", "n1") && !is_here("n2", "n1"));
    }

    #[test]
    fn this_machine_is_not_logged_into() {
        let here = host_name();
        let fleet =
            Fleet::remote(vec![here.clone(), "far".into()], None, Some("/opt/my tools/polycast".into()))
                .unwrap();
        assert_eq!(
            fleet.worker_on(&here, "doctor-agent").unwrap().get_program(),
            std::env::current_exe().unwrap()
        );
        let far = fleet.worker_on("far", "doctor-agent").unwrap();
        let words: Vec<_> = far.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(far.get_program(), "ssh");
        assert_eq!(words[words.len() - 3..], ["far", "'/opt/my tools/polycast'", "doctor-agent"]);
        assert!(fleet.remedy_for("far", Some(127)).contains("--remote-tool"));
        assert!(fleet.remedy_for("far", Some(255)).ends_with("far true"));
        assert!(fleet.remedy_for("far", Some(2)).starts_with("install version"));
        assert!(fleet.remedy_for_version("far").starts_with("install version"));
    }
}
