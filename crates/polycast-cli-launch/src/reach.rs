//! Where commands run, and the way there: this machine, other hosts, or the hosts of a lab.
//!
//! ```text
//!   Reach::Here            program words…
//!   Reach::Remote(agent)   ssh -T … HOST 'program' 'words'…       for a shell, which reads the words again
//!                          srun … --nodelist HOST program words…  without one
//!   Reach::Lab(lab)        polycast lab exec LAB HOST -- program words…
//! ```
//! A job's mpiexec starts on this machine, or on a host of the lab, where the lab's program stands in for ssh.

use std::borrow::Cow;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use polycast_core::topology::{is_same_name, without_domain};
use polycast_lab::{Lab, LabError, LabSpec, Lifetime};

use crate::hosts::{self, UnknownHosts};
use crate::mpi::{Launch, Mpi};

/// The ssh command with options that make it behave: no question that nobody answers, no endless
/// wait, no terminal.
const SSH: [&str; 6] = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];

/// Slurm's command for a step of one task on one node, beside the steps that run.
const SRUN: [&str; 6] = ["srun", "--overlap", "--quiet", "--nodes=1", "--ntasks=1", "--nodelist"];

/// The words in front of a host's name that bring a command there: ssh with its options, srun, or what
/// the user has put in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    program: String,
    options: Vec<String>,
}

impl Agent {
    /// ssh.
    pub fn ssh() -> Agent {
        Agent::of(SSH)
    }

    /// srun, in a job of Slurm's.
    pub fn srun() -> Agent {
        Agent::of(SRUN)
    }

    /// The agent that the user has named by `option`.
    ///
    /// # Errors
    /// There is no word, or a quote has no end.
    pub fn named(option: &str, text: &str) -> Result<Agent, String> {
        let mut words = shell_words::split(text).map_err(|error| format!("{option}: {error}"))?.into_iter();
        let program = words.next().ok_or_else(|| format!("{option}: expected a command"))?;
        Ok(Agent { program, options: words.collect() })
    }

    fn of([program, options @ ..]: [&str; 6]) -> Agent {
        Agent { program: program.to_owned(), options: options.map(str::to_owned).to_vec() }
    }

    /// True if a shell on the host reads the words, as behind ssh. srun starts the program itself.
    fn has_shell(&self) -> bool {
        Path::new(&self.program).file_name().is_none_or(|name| name != "srun")
    }

    fn to(&self, host: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.options).arg(host);
        command
    }

    /// The command that runs these words on a host.
    pub fn command(&self, host: &str, words: &[&str]) -> Command {
        let quoted = |word| if self.has_shell() { shell_words::quote(word) } else { Cow::Borrowed(word) };
        let mut command = self.to(host);
        command.args(words.iter().map(|word| quoted(word).into_owned()));
        command
    }

    /// The command that runs a shell's script on a host.
    pub fn script(&self, host: &str, script: &str) -> Command {
        let mut command = self.to(host);
        if !self.has_shell() {
            command.args(["sh", "-c"]);
        }
        command.arg(script);
        command
    }

    /// The line by which a user can try the agent.
    pub fn line_to(&self, host: &str) -> String {
        let words = std::iter::once(&self.program).chain(&self.options);
        format!("{} {host} true", shell_words::join(words))
    }
}

/// The way to the hosts on which commands run.
pub enum Reach {
    /// This machine only.
    Here,
    /// This machine, and hosts behind an agent.
    Remote(Agent),
    /// The hosts of a lab.
    Lab(Lab),
}

impl Reach {
    /// The way to the lab of this name, or to a lab that is made as `text` says and lives as long as
    /// this process.
    pub fn lab_of(text: &str) -> Result<Reach, LabError> {
        if text.contains('=') { Reach::new_lab(&text.parse()?) } else { Ok(Reach::Lab(Lab::open(text)?)) }
    }

    /// The way to a lab that is made, and lives as long as this process.
    pub fn new_lab(spec: &LabSpec) -> Result<Reach, LabError> {
        Ok(Reach::Lab(Lab::up(&spec.plan()?, spec.name.as_deref(), Lifetime::Caller)?))
    }

    /// The lab, if the hosts are a lab's.
    pub fn lab(&self) -> Option<&Lab> {
        if let Reach::Lab(lab) = self { Some(lab) } else { None }
    }

    /// What brings a command to this host, if it is another machine.
    pub fn agent_to(&self, host: &str) -> Option<&Agent> {
        match self {
            Reach::Remote(agent) if !is_here(host) => Some(agent),
            _ => None,
        }
    }

    /// The command that runs a program with these words on a host.
    pub fn command_on(&self, host: &str, program: &Path, words: &[&str]) -> Result<Command, Box<dyn Error>> {
        let mut command = match (self, self.agent_to(host)) {
            (_, Some(agent)) => {
                let name = program.to_str();
                let name = name.ok_or_else(|| format!("{}: expected a path in UTF-8", program.display()))?;
                return Ok(agent.command(host, &[&[name], words].concat()));
            }
            (Reach::Lab(lab), None) => lab.command_on(host, program)?,
            (_, None) => Command::new(program),
        };
        command.args(words);
        Ok(command)
    }

    /// Fails, with their names, if there are hosts of a job that its launcher cannot look up.
    pub fn require_known_hosts(&self, launch: &Launch) -> Result<(), UnknownHosts> {
        match self {
            Reach::Here | Reach::Remote(_) if !launch.has_own_agent() => {
                hosts::require_known(launch.hosts.iter().map(|(host, _)| &host[..]))
            }
            _ => Ok(()),
        }
    }

    /// The command that starts a job: mpiexec on this machine, or on the job's first host in the lab.
    pub fn job(&self, mpi: &Mpi, launch: Launch, program: &[OsString]) -> Result<Command, LabError> {
        let (Reach::Lab(lab), Some((first, _))) = (self, launch.hosts.first().cloned()) else {
            return Ok(mpi.command(&launch, program));
        };
        let (agent, interface) = (Some(lab.agent()), Some(lab.interface().to_owned()));
        let mut command =
            lab.launch_on(&first, &mpi.command(&Launch { agent, interface, ..launch }, program))?;
        // In the lab of an ordinary user everybody is root, but can do no more than that user.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Ok(command)
    }
}

/// True if a name is this machine's, with or without its domain.
pub fn is_here(host: &str) -> bool {
    names_machine(host, &host_name())
}

fn names_machine(host: &str, here: &str) -> bool {
    is_same_name(host, "localhost")
        || is_same_name(host, here)
        || !host.contains('.') && is_same_name(host, without_domain(here))
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &Command) -> Vec<String> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_domain_may_be_left_out() {
        assert!(
            names_machine("n1", "n1.site.org")
                && names_machine("n1.site.org", "n1.site.org")
                && names_machine("LocalHost", "n1")
                && names_machine("N1", "n1.site.org")
                && names_machine("N1.Site.org", "n1.site.org")
        );
        assert!(!names_machine("n", "n1.site.org") && !names_machine("n1.site.org", "n1"));
        assert!(!names_machine("n2", "n1"));
    }

    #[test]
    fn this_machine_is_not_logged_into() {
        let tool = Path::new("/opt/my tools/polycast");
        for reach in [Reach::Here, Reach::Remote(Agent::ssh())] {
            let command = reach.command_on(&host_name(), tool, &["doctor-agent"]).unwrap();
            assert_eq!(line(&command), ["/opt/my tools/polycast", "doctor-agent"]);
        }
    }

    #[test]
    fn a_shell_on_the_way_reads_each_word_as_one() {
        let words = ["/opt/my tools/polycast", "cp-agent"];
        let by_ssh = line(&Agent::ssh().command("far", &words));
        assert_eq!(by_ssh[0], "ssh");
        assert_eq!(by_ssh[by_ssh.len() - 3..], ["far", "'/opt/my tools/polycast'", "cp-agent"]);
        // No shell takes the quotes away behind srun, whatever its path and options are.
        for agent in [Agent::srun(), Agent::named("--launcher", "/opt/bin/srun -n1").unwrap()] {
            let by_srun = line(&agent.command("far", &words));
            assert_eq!(by_srun[by_srun.len() - 3..], ["far", "/opt/my tools/polycast", "cp-agent"]);
            let script = line(&agent.script("far", "a && b"));
            assert_eq!(script[script.len() - 4..], ["far", "sh", "-c", "a && b"]);
        }
        assert_eq!(
            line(&Agent::named("--launcher", "rsh").unwrap().script("far", "a && b")),
            ["rsh", "far", "a && b"]
        );
    }

    #[test]
    fn an_agent_has_a_word() {
        for (text, problem) in [("", "--launcher: expected a command"), ("'a", "--launcher: ")] {
            let error = Agent::named("--launcher", text).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
        assert_eq!(Agent::named("--launcher", "a 'b c'").unwrap().line_to("h"), "a 'b c' h true");
    }
}
