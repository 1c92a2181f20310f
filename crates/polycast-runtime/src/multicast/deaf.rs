/// A rank's knowledge of nodes that do not hear multicast any more.
///
/// Whoever knows of such a node passes it on; a rank that does not know it yet may learn it at any
/// time. But that the ranks are to leave is told by a broadcast's root rank, with the data: in the
/// network by the protocol, on a node by the messages of its ranks. So every rank that is through
/// with that broadcast has been told, and all leave before the same call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deaf {
    /// True if some node does not hear multicast.
    pub is_known: bool,
    /// True if a root has told all ranks to leave multicast.
    pub is_told: bool,
}

/// Bits for both in the number of bytes that begins a stream on a node (decision 19): no broadcast
/// has so many.
const IS_KNOWN: u64 = 1 << 62;
const IS_TOLD: u64 = 1 << 63;

impl Deaf {
    /// Tells the ranks to leave, if a deaf node is known. The root does so as it begins a
    /// broadcast.
    pub fn tell(&mut self) {
        self.is_told |= self.is_known;
    }

    /// The number that is sent in place of `bytes`: it carries both bits.
    pub fn beside(self, bytes: u64) -> u64 {
        bytes | if self.is_known { IS_KNOWN } else { 0 } | if self.is_told { IS_TOLD } else { 0 }
    }

    /// Learns from a number that was sent, and returns the number of bytes.
    pub fn learn(&mut self, sent: u64) -> u64 {
        self.is_known |= sent & IS_KNOWN != 0;
        self.is_told |= sent & IS_TOLD != 0;
        sent & !(IS_KNOWN | IS_TOLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_learned_and_nothing_is_unlearned() {
        for [is_known, is_told] in [[false, false], [true, false], [true, true]] {
            let mut other = Deaf::default();
            assert_eq!(other.learn(Deaf { is_known, is_told }.beside(1 << 40)), 1 << 40);
            assert_eq!(other, Deaf { is_known, is_told });
            assert_eq!(other.learn(7), 7);
            assert_eq!(other, Deaf { is_known, is_told });
        }
    }
}
