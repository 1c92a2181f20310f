//! Many datagrams in one system call and one trip through the stack: thirty times less work for a message.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::message::SocketFacts;

/// Looks at what the probe's socket was granted.
pub fn check(socket: &SocketFacts, kernel: &str) -> Vec<Finding> {
    let missing = match (socket.can_segment, socket.can_coalesce) {
        (true, true) => {
            let found = "the kernel segments what is sent (GSO) and coalesces what arrives (GRO)";
            return vec![Finding::ok(Topic::Offload, found)];
        }
        (false, true) => "segment what is sent (UDP_SEGMENT, Linux 4.18)",
        (true, false) => "coalesce what arrives (UDP_GRO, Linux 5.0)",
        (false, false) => {
            "segment what is sent (UDP_SEGMENT, Linux 4.18) nor coalesce what arrives (UDP_GRO, Linux 5.0)"
        }
    };
    let found = format!(
        "kernel {kernel} does not {missing}: every datagram costs a trip through the stack, and from 1 Gb/s on the \
         processor is the limit"
    );
    let remedy = "a newer kernel; in a sandbox with its own network stack (gVisor), the host's network";
    vec![Finding::warning(Topic::Offload, found, remedy)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    #[test]
    fn what_is_missing_is_named() {
        let with = |can_segment, can_coalesce| {
            let facts = SocketFacts { datagram_bytes: 1472, receive_bytes: 0, can_segment, can_coalesce };
            check(&facts, "4.4.0").remove(0)
        };
        assert_eq!(with(true, true).level, Level::Ok);
        assert!(with(false, true).found.contains("4.4.0 does not segment"));
        assert!(with(true, false).found.contains("UDP_GRO"));
        assert!(with(false, false).found.contains("nor coalesce"));
    }
}
