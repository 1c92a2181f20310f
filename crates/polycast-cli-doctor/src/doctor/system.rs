//! The parts of a system that a check may look at: files of the kernel, and programs that only
//! list.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The system of this process, or a folder that looks like one.
pub struct System {
    root: PathBuf,
}

/// The result of running a program that only lists.
pub enum Listing {
    /// The output of the program.
    Text(String),
    /// The program is not installed.
    Missing,
    /// The program ended with an error, and said this.
    Refused(String),
}

/// The folders of administrators' programs, which are not on everybody's PATH.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

impl System {
    /// The system that this process runs on.
    pub fn here() -> System {
        System { root: "/".into() }
    }

    /// A folder with copies of the files that matter.
    #[cfg(test)]
    pub fn below(root: &std::path::Path) -> System {
        System { root: root.into() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file without white space around it; `None` if it cannot be read, which in /proc and /sys means that
    /// the kernel has nothing to say.
    pub fn read(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that holds a number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.read(path)?.parse().ok()
    }

    /// True if there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The names in a folder, in order; none if there is no such folder.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The last part of what a symbolic link points to.
    pub fn link(&self, path: &str) -> Option<String> {
        let target = fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Runs a program that lists something. Its messages are in English.
    pub fn list(&self, program: &str, arguments: &[&str]) -> Listing {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let directories = std::env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from));
        let Some(file) = directories.map(|directory| directory.join(program)).find(|file| file.is_file())
        else {
            return Listing::Missing;
        };
        run(file.as_os_str(), arguments)
    }
}

fn run(program: &OsStr, arguments: &[&str]) -> Listing {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => {
            Listing::Text(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Listing::Refused(
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().trim().to_owned(),
        ),
        Err(error) => Listing::Refused(error.to_string()),
    }
}
