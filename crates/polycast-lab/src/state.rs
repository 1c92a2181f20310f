//! State files: what is known of labs outside of them, one file per lab.
//!
//! A state file belongs to a keeper that is alive if a process with its pid exists *and* was started when the file says:
//! pids are used again.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use polycast_core::variables;
use polycast_system::{Beside, Status, remove_abandoned};
use serde::{Deserialize, Serialize};

use crate::error::at;
use crate::{LabError, Plan};

/// The lifetime of a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// The lab lives as long as the [`crate::Lab`] that made it, and not longer than its process,
    /// however that ends.
    Caller,
    /// The lab lives until [`crate::Lab::down`].
    UntilDown,
}

/// A lab as its state file has it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The lab's name.
    pub name: String,
    /// The process that keeps the lab alive.
    pub keeper_pid: i32,
    /// The time when that process started, in clock ticks after boot: tells it from a later one
    /// with the same pid.
    pub keeper_start_ticks: u64,
    /// True if the lab can be used; false while it is being made.
    pub ready: bool,
    /// The lifetime that the lab is made for.
    pub lifetime: Lifetime,
    /// The lab's directory. Hosts file and network namespaces are seen there from inside the lab
    /// only.
    pub directory: PathBuf,
    /// Hosts, switches, links.
    pub plan: Plan,
}

/// The longest name of a lab.
pub(crate) const MAX_NAME: usize = 64;

/// Checks a lab's name, which becomes a file name and so must be plain.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(plain) {
        return Ok(());
    }
    let expected = format!("a name of 1 to {MAX_NAME} letters, digits, - and _");
    Err(LabError::Value { key: "name", expected, found: name.into() })
}

/// The directory of the state files: the one that the environment names, else `/run/polycast/labs`
/// for root, else one under `XDG_RUNTIME_DIR`, unless that is somebody else's as after `su`, or
/// under `/tmp/polycast-UID`.
pub(crate) fn base_directory() -> Result<PathBuf, LabError> {
    let uid = nix::unistd::geteuid();
    let named = std::env::var_os(variables::LAB_DIRECTORY).filter(|path| !path.is_empty());
    let is_own =
        |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid.as_raw());
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(is_own);
    let base = match (named, runtime) {
        (Some(named), _) => std::path::absolute(&named).map_err(at("use", &named))?,
        (None, _) if uid.is_root() => "/run/polycast/labs".into(),
        (None, Some(path)) => path.join("polycast/labs"),
        (None, None) => own_directory(format!("/tmp/polycast-{uid}").into())?.join("labs"),
    };
    make_directory(&base)?;
    let owner = fs::metadata(&base).map_err(at("look at", &base))?.uid();
    if owner != uid.as_raw() {
        return Err(refused(base, format!("it belongs to user {owner}, not to {uid}")));
    }
    Ok(base)
}

fn make_directory(path: &Path) -> Result<(), LabError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at("create", path))
}

/// Makes a folder in /tmp, or checks that it is ours. Anybody could have made it before us, and who
/// may write to it can replace what is in it.
fn own_directory(path: PathBuf) -> Result<PathBuf, LabError> {
    make_directory(&path)?;
    let uid = nix::unistd::geteuid().as_raw();
    let meta = fs::symlink_metadata(&path).map_err(at("look at", &path))?;
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o022 != 0 {
        return Err(refused(path, format!("expected a folder of user {uid} that nobody else may write to")));
    }
    Ok(path)
}

fn refused(path: PathBuf, reason: String) -> LabError {
    let source = std::io::Error::new(ErrorKind::PermissionDenied, reason);
    LabError::Io { action: "use", path, source }
}

impl Summary {
    fn file_in(base: &Path, name: &str) -> PathBuf {
        base.join(format!("{name}.json"))
    }

    /// Writes a state file that did not exist.
    pub(crate) fn create(&self, base: &Path) -> Result<(), LabError> {
        let file = Summary::file_in(base, &self.name);
        // Of two callers one has the name.
        self.draft(&file)?.put_new().map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => LabError::NameTaken { name: self.name.clone() },
            _ => at("create", &file)(error),
        })
    }

    /// Replaces the state file.
    pub(crate) fn replace(&self, base: &Path) -> Result<(), LabError> {
        let file = Summary::file_in(base, &self.name);
        self.draft(&file)?.put().map_err(at("write", &file))
    }

    fn draft(&self, file: &Path) -> Result<Beside, LabError> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| at("write", file)(error.into()))?;
        let draft = Beside::create_as(file, 0o600, self.keeper_pid.unsigned_abs());
        let written = draft.and_then(|mut draft| draft.write_all(&text).map(|()| draft));
        written.map_err(at("write", file))
    }

    /// Reads the state file of `name`, if there is one.
    pub(crate) fn read(base: &Path, name: &str) -> Result<Option<Summary>, LabError> {
        let file = Summary::file_in(base, name);
        match fs::read(&file) {
            Ok(text) => {
                let hint = "; remove it if no `polycast lab keeper` of this name runs";
                let error = |e| std::io::Error::new(ErrorKind::InvalidData, format!("{e}{hint}"));
                serde_json::from_slice(&text).map(Some).map_err(|e| at("understand", &file)(error(e)))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at("read", &file)(error)),
        }
    }

    /// The names that have a state file or a directory, in order.
    pub(crate) fn names(base: &Path) -> Result<Vec<String>, LabError> {
        let mut names = Vec::new();
        for entry in fs::read_dir(base).map_err(at("read", base))? {
            let name = entry.map_err(at("read", base))?.file_name().to_string_lossy().into_owned();
            let name = name.strip_suffix(".json").unwrap_or(&name);
            names.extend(Some(name.to_owned()).filter(|name| check_name(name).is_ok()));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// True if `other` is the same lab, and not only one of the same name.
    pub(crate) fn has_keeper_of(&self, other: &Summary) -> bool {
        let keeper = |lab: &Summary| (lab.keeper_pid, lab.keeper_start_ticks);
        keeper(self) == keeper(other)
    }

    /// Whether the keeper is there.
    pub fn is_alive(&self) -> bool {
        start_ticks(self.keeper_pid) == Some(self.keeper_start_ticks)
    }
}

/// Removes what a lab leaves in the file system. A file that is not there is no error.
pub(crate) fn forget(base: &Path, name: &str) -> Result<(), LabError> {
    let directory = base.join(name);
    let file = Summary::file_in(base, name);
    for (path, result) in [(&directory, fs::remove_dir(&directory)), (&file, fs::remove_file(&file))] {
        match result {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(at("remove", path)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Removes drafts of state files whose keepers are dead.
pub(crate) fn remove_drafts(base: &Path) -> Result<(), LabError> {
    remove_abandoned(base, |keeper| start_ticks(keeper).is_none()).map_err(at("clean up", base))
}

/// The time when a process started, in clock ticks after boot; `None` if there is no such process
/// or it only waits to be buried.
pub(crate) fn start_ticks(pid: i32) -> Option<u64> {
    Status::read(pid).filter(|status| !status.has_ended).map(|status| status.process.start_ticks)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn summary(name: &str, pid: i32, ticks: u64) -> Summary {
        Summary {
            name: name.into(),
            keeper_pid: pid,
            keeper_start_ticks: ticks,
            ready: true,
            lifetime: Lifetime::UntilDown,
            directory: "/nowhere".into(),
            plan: Plan::one_switch(2, "20mbit".parse().unwrap()).unwrap(),
        }
    }

    #[test]
    fn a_name_is_given_once() {
        let base = tempfile::tempdir().unwrap();
        summary("a", 1, 1).create(base.path()).unwrap();
        assert!(matches!(summary("a", 2, 2).create(base.path()), Err(LabError::NameTaken { .. })));
        assert_eq!(Summary::names(base.path()).unwrap(), ["a"]);
        assert_eq!(Summary::read(base.path(), "a").unwrap().unwrap().keeper_pid, 1);
        forget(base.path(), "a").unwrap();
        forget(base.path(), "a").unwrap();
        assert!(Summary::read(base.path(), "a").unwrap().is_none());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_without_state_file_is_found_and_removed() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("left")).unwrap();
        assert_eq!(Summary::names(base.path()).unwrap(), ["left"]);
        forget(base.path(), "left").unwrap();
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn drafts_go_with_their_keepers() {
        let base = tempfile::tempdir().unwrap();
        let me = std::process::id() as i32;
        let [kept, left] = [me, i32::MAX].map(|keeper| {
            let draft = summary("a", keeper, 1).draft(&base.path().join("a.json")).unwrap();
            let path = draft.path().to_owned();
            // As whoever is killed leaves it.
            std::mem::forget(draft);
            path
        });
        fs::write(base.path().join(".profile"), "").unwrap();
        remove_drafts(base.path()).unwrap();
        assert!(kept.exists() && !left.exists());
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_is_damaged_is_named_with_what_to_do() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("x.json"), "{").unwrap();
        let error = Summary::read(base.path(), "x").unwrap_err().to_string();
        assert!(error.contains("x.json") && error.contains("remove it if"), "{error}");
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let base = tempfile::tempdir().unwrap();
        let (ours, open, link) = (base.path().join("a"), base.path().join("b"), base.path().join("c"));
        own_directory(ours.clone()).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        for path in [open, link] {
            let error = own_directory(path).unwrap_err().to_string();
            assert!(error.contains("nobody else may write"), "{error}");
        }
    }

    #[test]
    fn a_pid_that_is_used_again_is_not_the_keeper() {
        let me = std::process::id() as i32;
        let ticks = start_ticks(me).unwrap();
        assert!(summary("a", me, ticks).is_alive());
        assert!(!summary("a", me, ticks + 1).is_alive());
        assert!(!summary("a", i32::MAX, ticks).is_alive());
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["", "../x", "a/b", ".", "a.json", &"x".repeat(MAX_NAME + 1)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        assert!(check_name(&"x".repeat(MAX_NAME)).is_ok());
    }
}
