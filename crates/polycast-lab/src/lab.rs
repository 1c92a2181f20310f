use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polycast_core::topology::is_same_name;

use crate::batch::HOST_INTERFACE;
use crate::error::{at, kernel};
use crate::keeper::{AGENT, Order, Reply, TOPOLOGY_FILE};
use crate::state::{Lifetime, Summary, base_directory, check_name, forget, remove_drafts};
use crate::tools::own_tool;
use crate::{Host, LabError, Plan};

/// A lab that exists.
#[derive(Debug)]
pub struct Lab {
    summary: Summary,
    base: PathBuf,
    tool: PathBuf,
    /// Our end of the pipe that the keeper of a lab with [`Lifetime::Caller`] watches; held, never written.
    _lifeline: Option<ChildStdin>,
}

/// The longest time that the kernel may take to end the processes of a lab.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

impl Lab {
    /// Makes a lab. Without a name it gets the first free one of lab0, lab1, …
    ///
    /// With [`Lifetime::Caller`] the lab is removed when the value is dropped or this process ends, however it ends.
    pub fn up(plan: &Plan, name: Option<&str>, lifetime: Lifetime) -> Result<Lab, LabError> {
        let base = base_directory()?;
        // One lab is made at a time: between a look at the names and the use of one, nobody else takes it.
        let _lock = lock(&base)?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => free_name(&base)?,
        };
        check_name(&name)?;
        match Summary::read(&base, &name)? {
            Some(found) if found.is_alive() => return Err(LabError::NameTaken { name }),
            Some(_) => forget(&base, &name)?,
            None => {}
        }
        let tool = own_tool()?;
        let order = Order { name, plan: plan.clone(), lifetime, base: base.clone(), tool: tool.clone() };
        let (summary, lifeline) = start_keeper(&order)?;
        Ok(Lab { summary, base, tool, _lifeline: Some(lifeline).filter(|_| lifetime == Lifetime::Caller) })
    }

    /// A lab that somebody made.
    pub fn open(name: &str) -> Result<Lab, LabError> {
        let base = base_directory()?;
        let summary = Summary::read(&base, name)?.filter(|lab| lab.ready && lab.is_alive());
        let summary = summary.ok_or_else(|| unknown(name))?;
        Ok(Lab { summary, base, tool: own_tool()?, _lifeline: None })
    }

    /// All labs of this user that have a state file, also those that are dead ([`Summary::is_alive`]), and what is wrong
    /// with a file.
    pub fn all() -> Result<Vec<Result<Summary, LabError>>, LabError> {
        let base = base_directory()?;
        let names = Summary::names(&base)?.into_iter();
        Ok(names.filter_map(|name| Summary::read(&base, &name).transpose()).collect())
    }

    /// The names of [`Lab::all`], also of those whose state file cannot be understood.
    pub fn all_names() -> Result<Vec<String>, LabError> {
        Summary::names(&base_directory()?)
    }

    /// Removes drafts of state files that killed keepers have left.
    pub fn sweep() -> Result<(), LabError> {
        let base = base_directory()?;
        let _lock = lock(&base)?;
        remove_drafts(&base)
    }

    /// Removes the lab of this name and what is left of a dead one.
    pub fn down_named(name: &str) -> Result<(), LabError> {
        let base = base_directory()?;
        let _lock = lock(&base)?;
        if !Summary::names(&base)?.iter().any(|known| known == name) {
            return Err(unknown(name));
        }
        if let Some(summary) = Summary::read(&base, name)? {
            end_keeper(&summary)?;
        }
        forget(&base, name)
    }

    /// Removes this lab.
    pub fn down(self) -> Result<(), LabError> {
        remove(&self.base, &self.summary)
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.summary.name
    }

    /// The lab's hosts, in the order of their addresses.
    pub fn hosts(&self) -> &[Host] {
        &self.summary.plan.hosts
    }

    /// The contents of the lab's state file.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The lab's hosts, switches and links.
    pub fn plan(&self) -> &Plan {
        &self.summary.plan
    }

    /// The name of every host's interface on the emulated network.
    pub fn interface(&self) -> &'static str {
        HOST_INTERFACE
    }

    /// A file with the lab's hosts, switches and links, as `Topology::parse` reads it; `None` if
    /// the lab has but one switch. The file exists inside of the lab only.
    pub fn topology_file(&self) -> Option<PathBuf> {
        (self.plan().switches.len() > 1).then(|| self.summary.directory.join(TOPOLOGY_FILE))
    }

    /// A program that stands in for ssh (`AGENT [options] HOST command…`). The file exists inside
    /// of the lab only, for an mpiexec that was started by [`Lab::command_on`].
    pub fn agent(&self) -> PathBuf {
        self.summary.directory.join(AGENT)
    }

    /// The command that runs `program` on a host, in the current directory, with this process's environment.
    /// Its exit status is the program's, and signals to it are passed on.
    pub fn command_on(&self, host: &str, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        self.enter(&[], host, program)
    }

    fn enter(&self, options: &[&str], host: &str, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        self.summary.host_index(host)?;
        let mut command = Command::new(&self.tool);
        command.args(["lab", "exec"]).args(options).args([&self.summary.name, host, "--"]).arg(program);
        Ok(command)
    }

    /// The command that runs a verb of the tool on a host.
    pub(crate) fn tool_on(&self, host: &str, verb: &[&str]) -> Result<Command, LabError> {
        let mut command = self.command_on(host, &self.tool)?;
        command.args(verb);
        Ok(command)
    }

    /// The command that runs a launcher, `command`, on a host: program, arguments, environment and working
    /// directory are taken over. What the launcher says of the emulation is left out of its standard error.
    pub fn launch_on(&self, host: &str, command: &Command) -> Result<Command, LabError> {
        let mut moved = self.enter(&["--launcher"], host, command.get_program())?;
        moved.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => moved.env(name, value),
                None => moved.env_remove(name),
            };
        }
        if let Some(directory) = command.get_current_dir() {
            moved.current_dir(directory);
        }
        Ok(moved)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.summary.lifetime == Lifetime::Caller && self._lifeline.is_some() {
            // Dropping cannot fail; what stays is found by `polycast lab down --all`.
            let _ = remove(&self.base, &self.summary);
        }
    }
}

impl Summary {
    /// The position of a host, or an error that names the hosts there are.
    pub(crate) fn host_index(&self, host: &str) -> Result<usize, LabError> {
        let hosts = &self.plan.hosts;
        hosts.iter().position(|candidate| is_same_name(&candidate.name, host)).ok_or_else(|| {
            LabError::UnknownHost {
                lab: self.name.clone(),
                host: host.into(),
                known: match (hosts.first(), hosts.last()) {
                    (Some(first), Some(last)) => format!("{} … {}", first.name, last.name),
                    _ => "none".into(),
                },
            }
        })
    }
}

fn lock(base: &Path) -> Result<Flock<File>, LabError> {
    let directory = File::open(base).map_err(at("open", base))?;
    Flock::lock(directory, FlockArg::LockExclusive)
        .map_err(|(_, error)| kernel(format!("lock {}", base.display()))(error))
}

fn free_name(base: &Path) -> Result<String, LabError> {
    let taken = Summary::names(base)?;
    let mut candidates = (0..).map(|number| format!("lab{number}"));
    // Of infinitely many names finitely many are taken.
    Ok(candidates.find(|name| !taken.contains(name)).unwrap_or_default())
}

fn unknown(name: &str) -> LabError {
    let names =
        Lab::all().unwrap_or_default().into_iter().flatten().filter(Summary::is_alive).map(|lab| lab.name);
    let names = names.collect::<Vec<_>>().join(", ");
    let known = if names.is_empty() {
        "there is none; make one with `polycast lab up`".into()
    } else {
        format!("there are {names}")
    };
    LabError::UnknownLab { name: name.into(), known }
}

fn start_keeper(order: &Order) -> Result<(Summary, ChildStdin), LabError> {
    let mut child = Command::new(&order.tool)
        .args(["lab", "keeper", &order.name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(at("start", &order.tool))?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(LabError::Keeper("the keeper of the lab has no pipes".into()));
    };
    let mut text = serde_json::to_vec(order).map_err(|e| at("write", "the order for a lab")(e.into()))?;
    text.push(b'\n');
    // If the keeper is dead already, its answer says more than our failure to write.
    let _ = stdin.write_all(&text);
    let mut answer = String::new();
    BufReader::new(stdout).read_line(&mut answer).map_err(at("read", "the answer of the keeper"))?;
    // The process we started has forked and ended.
    child.wait().map_err(at("wait for", &order.tool))?;
    match serde_json::from_str::<Reply>(&answer) {
        Ok(Ok(summary)) => Ok((summary, stdin)),
        Ok(Err(message)) => Err(LabError::Keeper(message)),
        Err(_) => Err(LabError::Keeper("the keeper of the lab ended without an answer".into())),
    }
}

/// Ends a lab. Its name may belong to another lab by now: the files of that one are left alone.
/// While the lock is held, the name cannot change hands.
fn remove(base: &Path, lab: &Summary) -> Result<(), LabError> {
    end_keeper(lab)?;
    let _lock = lock(base)?;
    match Summary::read(base, &lab.name)? {
        Some(found) if !found.has_keeper_of(lab) => Ok(()),
        _ => forget(base, &lab.name),
    }
}

/// Ends the keeper, and with it the lab.
fn end_keeper(lab: &Summary) -> Result<(), LabError> {
    let began = Instant::now();
    while lab.is_alive() {
        match kill(Pid::from_raw(lab.keeper_pid), Signal::SIGKILL) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => return Err(kernel(format!("end the keeper of lab {}", lab.name))(error)),
        }
        if began.elapsed() > REMOVAL_LIMIT {
            let message = format!("the keeper of lab {} (process {}) does not end", lab.name, lab.keeper_pid);
            return Err(LabError::Keeper(message));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::summary;

    #[test]
    fn a_lab_that_has_the_name_by_now_is_left_alone() {
        let base = tempfile::tempdir().unwrap();
        let (former, present) = (summary("lab0", i32::MAX, 1), summary("lab0", i32::MAX, 2));
        present.create(base.path()).unwrap();
        std::fs::create_dir(base.path().join("lab0")).unwrap();
        remove(base.path(), &former).unwrap();
        assert!(Summary::read(base.path(), "lab0").unwrap().is_some());
        assert!(base.path().join("lab0").exists());
        remove(base.path(), &present).unwrap();
        remove(base.path(), &present).unwrap();
        assert!(Summary::names(base.path()).unwrap().is_empty());
    }
}
