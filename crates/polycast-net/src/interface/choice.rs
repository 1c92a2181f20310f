//! Which interface to use: the user's words in NCCL's syntax, or the one that nearly always reaches all hosts.

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Interface;
use crate::Family;

/// The longest name of an interface in Linux: IFNAMSIZ without the final zero.
const MAX_NAME_BYTES: usize = 15;

/// The first letters of bridges and pairs that container and virtual machine software makes, which
/// end on this host. Taken only if nothing else is there.
const HOST_ONLY_PREFIXES: [&str; 7] = ["docker", "virbr", "br-", "veth", "cni", "podman", "lxcbr"];

/// The interfaces that may be used, as `POLYCAST_NET` says in NCCL's syntax:
///
/// ```text
/// eth          names that begin with eth        eth,ib      either; the first word that matches wins
/// =eth0        exactly eth0                     =eth0,eth1  either
/// ^docker      none that begin with docker      ^docker,br  neither
/// ^=eth0       not eth0
/// ```
///
/// The default, and the empty string, choose automatically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceChoice {
    names: Vec<String>,
    exact: bool,
    exclude: bool,
}

/// The text is no choice of interfaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}`: {found}; expected names of interfaces, like `eth` (begins with), `=eth0` (exactly), `^docker` (none of \
     these), several with commas"
)]
pub struct ParseInterfaceChoiceError {
    text: String,
    found: String,
}

impl FromStr for InterfaceChoice {
    type Err = ParseInterfaceChoiceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |found: String| ParseInterfaceChoiceError { text: text.to_owned(), found };
        let words = text.trim();
        if words.is_empty() {
            return Ok(InterfaceChoice::default());
        }
        let (exclude, words) = strip(words, '^');
        let (exact, words) = strip(words, '=');
        let names: Vec<String> = words.split(',').map(|name| name.trim().to_owned()).collect();
        for name in &names {
            if name.is_empty() {
                return Err(wrong("a name is missing".to_owned()));
            }
            if name.len() > MAX_NAME_BYTES {
                return Err(wrong(format!("`{name}` is longer than a name can be ({MAX_NAME_BYTES} bytes)")));
            }
            if let Some(odd) = name.chars().find(|c| c.is_whitespace() || "/^=".contains(*c)) {
                return Err(wrong(format!("`{odd}` inside a name")));
            }
        }
        Ok(InterfaceChoice { names, exact, exclude })
    }
}

fn strip(words: &str, mark: char) -> (bool, &str) {
    words.strip_prefix(mark).map_or((false, words), |rest| (true, rest))
}

impl fmt::Display for InterfaceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.names.is_empty() {
            return f.write_str("automatic");
        }
        let marks = format!("{}{}", if self.exclude { "^" } else { "" }, if self.exact { "=" } else { "" });
        write!(f, "{marks}{}", self.names.join(","))
    }
}

impl InterfaceChoice {
    /// The best of the interfaces that are allowed and usable for multicast of this family. Best is, in this order: the
    /// word it matches comes first in the list; it does not end on this host like a container's bridge; the default route leaves
    /// through it; it is the fastest; its index is the lowest.
    ///
    /// # Errors
    /// None is usable: the error lists all with the reason against each.
    pub fn choose(&self, among: &[Interface], family: Family) -> Result<Interface, InterfaceError> {
        self.choose_beside(among, family, &[])
    }

    /// Lists the usable interfaces, the best first, as [`InterfaceChoice::choose_beside`] has it.
    pub fn usable_beside(&self, among: &[Interface], family: Family, local: &[IpAddr]) -> Vec<Interface> {
        let mut left = among.to_vec();
        let mut usable = Vec::new();
        while let Ok(best) = self.choose_beside(&left, family, local) {
            left.retain(|interface| interface.index != best.index);
            usable.push(best);
        }
        usable
    }

    /// Chooses an interface as [`InterfaceChoice::choose`] does, but after the words of the list
    /// prefers one that has an address of `local`, the earlier the better: other connections of the
    /// same hosts begin there, so they are joined by that network.
    ///
    /// # Errors
    /// As of [`InterfaceChoice::choose`].
    pub fn choose_beside(
        &self,
        among: &[Interface],
        family: Family,
        local: &[IpAddr],
    ) -> Result<Interface, InterfaceError> {
        let place = |interface: &Interface| {
            let has = |address: &IpAddr| {
                [Family::V4, Family::V6].iter().any(|family| interface.address(*family) == Some(*address))
            };
            local.iter().position(has).unwrap_or(local.len())
        };
        among
            .iter()
            .filter(|interface| self.objection(interface, family).is_none())
            .min_by_key(|interface| {
                (
                    self.position(interface),
                    place(interface),
                    is_host_only(interface),
                    !interface.has_default_route,
                    Reverse(interface.bits_per_second),
                    interface.index,
                )
            })
            .cloned()
            .ok_or_else(|| InterfaceError {
                choice: self.to_string(),
                family,
                found: among
                    .iter()
                    .filter_map(|i| Some((i.name.clone(), self.objection(i, family)?)))
                    .collect(),
            })
    }

    /// Returns the position of the first name that matches the interface; automatic and excluding
    /// choices have no preference.
    fn position(&self, interface: &Interface) -> usize {
        if self.exclude { 0 } else { self.matches(interface).unwrap_or(0) }
    }

    fn matches(&self, interface: &Interface) -> Option<usize> {
        self.names.iter().position(|name| {
            if self.exact { interface.name == *name } else { interface.name.starts_with(name.as_str()) }
        })
    }

    /// Returns the objection to this interface, if any.
    fn objection(&self, interface: &Interface, family: Family) -> Option<Objection> {
        let is_named = self.matches(interface).is_some();
        let wanted = !self.exclude && is_named;
        if !self.names.is_empty() && is_named == self.exclude {
            return Some(Objection::NotAllowed);
        }
        // Within one host multicast serves tests only: who wants that says so.
        if interface.is_loopback && !wanted {
            return Some(Objection::Loopback);
        }
        if !interface.is_up {
            return Some(Objection::Down);
        }
        if !interface.can_multicast && !interface.is_loopback {
            return Some(Objection::NoMulticast);
        }
        if interface.address(family).is_none() {
            return Some(Objection::NoAddress(family));
        }
        None
    }
}

fn is_host_only(interface: &Interface) -> bool {
    HOST_ONLY_PREFIXES.iter().any(|prefix| interface.name.starts_with(prefix))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objection {
    NotAllowed,
    Loopback,
    Down,
    NoMulticast,
    NoAddress(Family),
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Objection::NotAllowed => f.write_str("not among those allowed"),
            Objection::Loopback => f.write_str("loopback"),
            Objection::Down => f.write_str("down or without carrier"),
            Objection::NoMulticast => f.write_str("cannot multicast"),
            Objection::NoAddress(Family::V4) => f.write_str("no IPv4 address"),
            Objection::NoAddress(Family::V6) => f.write_str("no link-local IPv6 address"),
        }
    }
}

/// The error that no interface can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceError {
    choice: String,
    family: Family,
    found: Vec<(String, Objection)>,
}

impl std::error::Error for InterfaceError {}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no interface for {} multicast (choice: {}); found ", self.family, self.choice)?;
        if self.found.is_empty() {
            f.write_str("none at all")?;
        }
        for (index, (name, objection)) in self.found.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} ({objection})")?;
        }
        f.write_str("; name another with POLYCAST_NET=NAME, or see `ip -br address`")
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
