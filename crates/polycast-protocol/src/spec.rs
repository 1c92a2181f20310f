use std::fmt;
use std::str::FromStr;

use super::root_sync::RootSync;

/// What the ring does beside the multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Every node forwards every fragment at once: nobody waits for anybody, and everything travels twice.
    Push,
    /// Every node asks for what it misses: the wire carries the message once, and a node waits for its successor.
    Pull,
}

/// A multicast broadcast with its parameters: `multicast-push:parity`, `multicast-pull:sync=random`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multicast {
    /// What the ring does.
    pub form: Form,
    /// How the root waits for receivers.
    pub sync: RootSync,
    /// One more datagram, from which a receiver restores any one that it misses. Where thousands receive, somebody always
    /// misses one.
    pub parity: bool,
}

/// The names.
pub const MULTICAST_NAMES: [&str; 2] = ["multicast-push", "multicast-pull"];

/// Why a multicast broadcast could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseMulticastError {
    /// Another name.
    #[error("unknown algorithm {0:?}, expected one of {names}", names = MULTICAST_NAMES.join(", "))]
    UnknownName(String),
    /// There is no such parameter, or it has no such value.
    #[error("{found}: expected sync=none, sync=50us (a delay), sync=random, sync=adaptive or parity")]
    UnknownParameter {
        /// What stood there.
        found: String,
    },
}

impl FromStr for Multicast {
    type Err = ParseMulticastError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameters) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let form = match name {
            "multicast-push" => Form::Push,
            "multicast-pull" => Form::Pull,
            _ => return Err(ParseMulticastError::UnknownName(name.to_owned())),
        };
        let mut spec = Multicast { form, sync: RootSync::default(), parity: false };
        for parameter in parameters.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let unknown = || ParseMulticastError::UnknownParameter { found: parameter.to_owned() };
            match parameter.split_once('=').unwrap_or((parameter, "")) {
                ("sync", value) => spec.sync = value.parse().map_err(|()| unknown())?,
                ("parity", "" | "yes") => spec.parity = true,
                ("parity", "no") => spec.parity = false,
                _ => return Err(unknown()),
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for Multicast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.form {
            Form::Push => MULTICAST_NAMES[0],
            Form::Pull => MULTICAST_NAMES[1],
        };
        let sync = (self.sync != RootSync::default()).then(|| format!("sync={}", self.sync));
        let parity = self.parity.then(|| "parity".to_owned());
        let parameters: Vec<String> = [sync, parity].into_iter().flatten().collect();
        let separator = if parameters.is_empty() { "" } else { ":" };
        f.pad(&format!("{name}{separator}{}", parameters.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_back() {
        for text in [
            "multicast-push",
            "multicast-pull:sync=none",
            "multicast-pull:sync=50us,parity",
            "multicast-push:sync=random",
        ] {
            assert_eq!(text.parse::<Multicast>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_say_what_was_expected() {
        let error = |text: &str| text.parse::<Multicast>().unwrap_err().to_string();
        assert!(error("multicast").contains("multicast-push, multicast-pull"));
        assert!(error("multicast-pull:sync=late").contains("sync=random"));
        assert!(error("multicast-pull:segment=8KiB").contains("segment=8KiB: expected sync"));
    }
}
