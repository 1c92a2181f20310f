//! Running `ip`, `tc` and `nft` on a batch, with errors that name the line and the remedy.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use polycast_core::variables;

use crate::LabError;
use crate::error::at;

/// A program of the system that labs are made with.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    name: &'static str,
    path: PathBuf,
    batch_arguments: &'static [&'static str],
}

/// The programs a lab needs.
pub(crate) struct Tools {
    pub ip: Tool,
    pub tc: Tool,
    /// Only labs with faults need it.
    pub nft: Option<Tool>,
}

/// The directories of Debian's programs for administrators; a user's PATH lacks them.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/usr/sbin", "/sbin"];

impl Tools {
    /// Finds the programs, or says which package has the first one that is missing.
    pub fn find(with_rules: bool) -> Result<Tools, LabError> {
        let path = env::var_os("PATH").unwrap_or_default();
        let directories: Vec<PathBuf> =
            env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from)).collect();
        Tools::find_in(&directories, with_rules)
    }

    fn find_in(directories: &[PathBuf], with_rules: bool) -> Result<Tools, LabError> {
        let find = |name, package, batch_arguments| {
            let path =
                directories.iter().map(|directory| directory.join(name)).find(|path| is_executable(path));
            path.map(|path| Tool { name, path, batch_arguments })
                .ok_or(LabError::ToolMissing { tool: name, package })
        };
        Ok(Tools {
            ip: find("ip", "iproute2", &["-batch", "-"])?,
            tc: find("tc", "iproute2", &["-batch", "-"])?,
            nft: if with_rules { Some(find("nft", "nftables", &["-f", "-"])?) } else { None },
        })
    }
}

impl Tools {
    /// Runs an `nft` script, if there is one, in the network namespace of this process.
    pub fn apply(&self, rules: Option<String>) -> Result<(), LabError> {
        match (rules, &self.nft) {
            (Some(script), Some(nft)) => nft.run(&script),
            (Some(_), None) => Err(LabError::ToolMissing { tool: "nft", package: "nftables" }),
            (None, _) => Ok(()),
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

impl Tool {
    /// Runs a batch in the network namespace of this process.
    pub fn run(&self, batch: &str) -> Result<(), LabError> {
        let mut child = Command::new(&self.path)
            .args(self.batch_arguments)
            // Messages are searched for what they mean.
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(at("start", &self.path))?;
        // A tool that stops at an error closes its input early; its message says more than our failure to write.
        let _ = child.stdin.take().map(|mut stdin| stdin.write_all(batch.as_bytes()));
        let output = child.wait_with_output().map_err(at("wait for", &self.path))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(self.explain(batch, &said))
    }

    fn explain(&self, batch: &str, said: &str) -> LabError {
        // iproute2 ends with "Command failed -:LINE".
        let line_number =
            said.lines().rev().find_map(|line| line.strip_prefix("Command failed -:")?.parse::<usize>().ok());
        let command =
            line_number.and_then(|n| batch.lines().nth(n - 1)).unwrap_or(batch.lines().next().unwrap_or(""));
        let message: Vec<&str> = said.lines().filter(|line| !line.starts_with("Command failed")).collect();
        LabError::ToolFailed {
            tool: self.name,
            command: command.into(),
            message: message.join("; "),
            hint: missing_feature(command, said),
        }
    }
}

/// Kernel features, each with the words of a specification that need it.
const FEATURES: [(&str, &str, &str); 4] = [
    (" type bridge", "bridge", "CONFIG_BRIDGE"),
    (" type veth", "veth", "CONFIG_VETH"),
    (" tbf ", "sch_tbf", "CONFIG_NET_SCH_TBF"),
    ("table bridge", "nft_numgen", "CONFIG_NF_TABLES_BRIDGE, CONFIG_NFT_NUMGEN"),
];

fn missing_feature(command: &str, said: &str) -> String {
    let unknown = [
        "Unknown device type",
        "qdisc kind is unknown",
        "Operation not supported",
        "No such file or directory",
    ];
    if said.contains("Operation not permitted") {
        return "; this process may not change networks in its own namespaces: is it confined by a container or seccomp?".into();
    }
    let feature = FEATURES.iter().find(|(words, ..)| command.contains(words));
    match feature {
        Some((_, module, option)) if unknown.iter().any(|text| said.contains(text)) => {
            format!("; the kernel lacks {module} ({option}): load it as root with `modprobe {module}`")
        }
        _ => String::new(),
    }
}

/// The program that is executed again for keeper, entered commands and probes: this one, or `POLYCAST_TOOL`.
pub(crate) fn own_tool() -> Result<PathBuf, LabError> {
    match env::var_os(variables::TOOL).filter(|path| path.as_os_str() != OsStr::new("")) {
        Some(path) => Ok(path.into()),
        None => own_program().map_err(at("find the program file of", "this process")),
    }
}

/// The file of this program. If that was replaced since, as by an upgrade, the one in its place.
pub fn own_program() -> io::Result<PathBuf> {
    env::current_exe().map(in_its_place)
}

/// The bytes that Linux adds to the path of a file that is gone.
const GONE: &[u8] = b" (deleted)";

fn in_its_place(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(GONE) {
        Some(before) if !path.exists() => OsStr::from_bytes(before).into(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(script: &str) -> Tool {
        let batch_arguments: &'static [&'static str] =
            Box::leak(Box::new(["-c", Box::leak(script.to_owned().into_boxed_str())]));
        Tool { name: "ip", path: "/bin/sh".into(), batch_arguments }
    }

    #[test]
    fn a_program_that_was_replaced_is_found_at_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let named_so = folder.path().join("tool (deleted)");
        assert_eq!(in_its_place(named_so.clone()), folder.path().join("tool"));
        std::fs::write(&named_so, "").unwrap();
        assert_eq!(in_its_place(named_so.clone()), named_so);
        assert_eq!(in_its_place("/bin/tool".into()), PathBuf::from("/bin/tool"));
    }

    #[test]
    fn a_missing_tool_names_its_package() {
        let error = Tools::find_in(&[], false).err().unwrap().to_string();
        assert!(error.contains("ip was not found") && error.contains("apt-get install iproute2"), "{error}");
    }

    #[test]
    fn an_error_names_the_line_and_the_missing_feature() {
        let tool = failing(
            "cat >/dev/null; echo 'Error: Unknown device type.' >&2; echo 'Command failed -:2' >&2; exit 1",
        );
        let error = tool.run("link set lo up\nlink add name sw0 type bridge x 1\n").unwrap_err().to_string();
        assert!(
            error.contains("link add name sw0 type bridge") && error.contains("modprobe bridge"),
            "{error}"
        );
    }

    #[test]
    fn a_tool_that_reads_nothing_is_still_explained() {
        let tool = failing("echo 'RTNETLINK answers: Operation not permitted' >&2; exit 2");
        let error = tool.run(&"link set lo up\n".repeat(100_000)).unwrap_err().to_string();
        assert!(error.contains("not permitted") && error.contains("container"), "{error}");
    }
}
