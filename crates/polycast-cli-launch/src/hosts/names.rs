//! The check that hosts exist, as far as this machine can say, before a launcher tries to reach
//! them one by one.

use std::net::ToSocketAddrs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use polycast_core::topology::hostlist;

/// A name server that does not answer keeps a question for seconds; so many are asked at once.
const QUESTIONS_AT_ONCE: usize = 32;

/// Hosts that nobody knows.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "hosts: expected names or addresses that this machine can look up, found none for {}; correct the names (`getent hosts \
     {}` asks the system), or add the hosts to /etc/hosts or to ~/.ssh/config",
    hostlist(.names), .names[0]
)]
pub struct UnknownHosts {
    /// The names of the unknown hosts, at least one.
    names: Vec<String>,
}

/// Looks up all of them; the error names those that have no address, neither for the system nor by ssh's configuration.
pub fn require_known<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), UnknownHosts> {
    let names: Vec<&str> = names.collect();
    let next = AtomicUsize::new(0);
    let unknown = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..names.len().min(QUESTIONS_AT_ONCE) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !is_known(name) {
                        unknown.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(*name);
                    }
                }
            });
        }
    });
    let unknown = unknown.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    // As they were written, each once.
    let mut in_order: Vec<String> = Vec::new();
    for name in names.iter().filter(|name| unknown.contains(name)) {
        if !in_order.iter().any(|known| known == name) {
            in_order.push((*name).to_owned());
        }
    }
    if in_order.is_empty() { Ok(()) } else { Err(UnknownHosts { names: in_order }) }
}

fn is_known(name: &str) -> bool {
    let host = name.rsplit_once('@').map_or(name, |(_user, host)| host);
    has_address(host) || name_for_ssh(host).is_some_and(|other| other != host && has_address(&other))
}

fn has_address(host: &str) -> bool {
    (host, 0).to_socket_addrs().is_ok_and(|mut addresses| addresses.next().is_some())
}

/// The name that `~/.ssh/config` puts in the place of this one.
fn name_for_ssh(host: &str) -> Option<String> {
    let said =
        Command::new("ssh").args(["-G", "--", host]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let said = String::from_utf8_lossy(&said.ok()?.stdout).into_owned();
    said.lines().find_map(|line| line.strip_prefix("hostname ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_are_unknown_are_named_at_once() {
        let names = ["127.0.0.1", "n0.invalid", "localhost", "b3.invalid", "n0.invalid", "me@127.0.0.1"];
        let error = require_known(names.into_iter()).unwrap_err();
        assert_eq!(error.names, ["n0.invalid", "b3.invalid"]);
        assert!(error.to_string().contains("none for n0.invalid,b3.invalid"), "{error}");
        assert_eq!(require_known(["127.0.0.1", "localhost"].into_iter()), Ok(()));
    }
}
