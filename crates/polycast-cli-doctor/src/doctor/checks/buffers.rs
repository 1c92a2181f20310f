//! Socket buffers: what arrives while nobody reads must fit.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::message::SocketFacts;
use crate::doctor::system::System;

/// The size of the receive buffer that polycast asks the kernel for.
pub const WANTED_BYTES: usize = 4 << 20;

/// The bytes of a receive buffer that a datagram of a full Ethernet frame occupies: 4 MiB, which
/// the kernel doubles, held 3,640 of them (measured on Linux 6.18, veth).
const OCCUPIED_BYTES: usize = 2 * WANTED_BYTES / 3_640;

/// Compares what was granted with what was asked for. The kernel doubles a request to cover its own book-keeping.
pub fn check(system: &System, socket: &SocketFacts) -> Vec<Finding> {
    let granted = socket.receive_bytes;
    let holds = granted / OCCUPIED_BYTES;
    if granted >= 2 * WANTED_BYTES {
        let found = format!(
            "the receive buffer has the {} MiB that polycast asks for: about {holds} datagrams",
            WANTED_BYTES >> 20
        );
        return [Finding::ok(Topic::Buffers, found)].into_iter().chain(send_limit(system)).collect();
    }
    let limit = system.number("/proc/sys/net/core/rmem_max");
    let limit = limit.map_or(String::new(), |bytes| format!(" (net.core.rmem_max is {bytes})"));
    let found = format!(
        "the receive buffer has {} KiB of {} KiB asked for{limit}: it holds about {holds} datagrams, and polycast paces itself to that",
        (granted / 2) >> 10,
        WANTED_BYTES >> 10
    );
    let finding = Finding::warning(Topic::Buffers, found, remedy("rmem_max"));
    [finding].into_iter().chain(send_limit(system)).collect()
}

/// The send buffer matters less: a full one makes the sender wait and loses nothing.
fn send_limit(system: &System) -> Option<Finding> {
    let limit = system.number("/proc/sys/net/core/wmem_max").filter(|bytes| *bytes < SEND_BYTES)?;
    let found = format!("net.core.wmem_max is {limit}: a sender sleeps more often than it must");
    Some(Finding::note(Topic::Buffers, found).with_remedy(remedy("wmem_max")))
}

/// The least send buffer without a finding: room for a few rows of segmented datagrams, 64 KiB
/// each.
const SEND_BYTES: u64 = 208 << 10;

fn remedy(limit: &str) -> String {
    format!(
        "sysctl -w net.core.{limit}={WANTED_BYTES}; to keep it: echo net.core.{limit}={WANTED_BYTES} > /etc/sysctl.d/60-polycast-{limit}.conf"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    fn levels(granted: usize, wmem_max: &str) -> Vec<Level> {
        let (_root, system) = fake::system(&[
            ("proc/sys/net/core/rmem_max", "212992\n"),
            ("proc/sys/net/core/wmem_max", wmem_max),
        ]);
        let socket = SocketFacts {
            datagram_bytes: 1472,
            receive_bytes: granted,
            can_segment: true,
            can_coalesce: true,
        };
        check(&system, &socket).iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn less_than_asked_for_is_a_warning() {
        assert_eq!(levels(2 * WANTED_BYTES, "212992"), [Level::Ok]);
        assert_eq!(levels(2 * WANTED_BYTES - 1, "212992"), [Level::Warning]);
        assert_eq!(levels(2 * 212_992, "65536"), [Level::Warning, Level::Note]);
    }
}
