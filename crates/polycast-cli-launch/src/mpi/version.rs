use std::fmt;

use super::Launcher;

/// A version as launchers print it; what is not printed is 0 (`2021.19` is 2021.19.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// `4` of 4.1.4.
    pub major: u32,
    /// `1` of 4.1.4.
    pub minor: u32,
    /// The last `4` of 4.1.4.
    pub patch: u32,
}

impl Version {
    /// `major.minor.patch`.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Version { major, minor, patch }
    }

    /// Reads the start of `text`: `4.1.4rc1` is 4.1.4, `2021.19` is 2021.19.0.
    fn read(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].split('.').filter(|part| !part.is_empty()).map(str::parse);
        let mut next = || numbers.next().transpose().ok();
        Some(Version { major: next()??, minor: next()?.unwrap_or(0), patch: next()?.unwrap_or(0) })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Recognises a launcher and its version by its output for `--version`; `None` for an unknown one.
pub(super) fn recognise(output: &str) -> Option<(Launcher, Version)> {
    let after = |marker: &str| output.split_once(marker).map(|(_, rest)| rest.trim_start());
    if let Some(rest) = after("(OpenRTE)") {
        return Version::read(rest).map(|version| (Launcher::Orte, version));
    }
    if let Some(rest) = after("(Open MPI)") {
        let version = Version::read(rest)?;
        return Some((if version.major < 5 { Launcher::Orte } else { Launcher::Prrte }, version));
    }
    if output.contains("Intel(R) MPI Library") {
        return Version::read(after("Version")?).map(|version| (Launcher::IntelHydra, version));
    }
    if output.contains("HYDRA build details") {
        return Version::read(after("Version:")?).map(|version| (Launcher::Hydra, version));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_recognised_by_their_own_words() {
        for (output, launcher, version) in [
            ("mpiexec.openmpi (OpenRTE) 4.1.4\n\nReport bugs to …", Launcher::Orte, Version::new(4, 1, 4)),
            ("mpiexec (Open MPI) 5.0.11\n", Launcher::Prrte, Version::new(5, 0, 11)),
            ("mpirun (Open MPI) 1.10.7\n", Launcher::Orte, Version::new(1, 10, 7)),
            (
                "HYDRA build details:\n    Version:                                 4.0.2\n    Release Date: …",
                Launcher::Hydra,
                Version::new(4, 0, 2),
            ),
            ("HYDRA build details:\n    Version:    5.1.0a1\n", Launcher::Hydra, Version::new(5, 1, 0)),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.19 Build 20260301 (id: …)\nCopyright …",
                Launcher::IntelHydra,
                Version::new(2021, 19, 0),
            ),
        ] {
            assert_eq!(recognise(output), Some((launcher, version)), "{output}");
        }
    }

    #[test]
    fn strangers_are_not_recognised() {
        for output in ["", "slurm 22.05", "HYDRA build details:\n", "mpiexec (Open MPI) soon"] {
            assert_eq!(recognise(output), None, "{output}");
        }
    }
}
