use std::fmt;
use std::ops::BitOr;

/// A set of capabilities: those that a communicator has, or that a way to serve a call needs. There
/// will be more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities(u8);

impl Capabilities {
    /// No capability: what the MPI below needs.
    pub const NONE: Capabilities = Capabilities(0);
    /// A communicator of polycast's own, on which its messages meet no others.
    pub const PRIVATE: Capabilities = Capabilities(1);
    /// A network between the nodes that carries multicast.
    pub const MULTICAST: Capabilities = Capabilities(1 << 1);
    /// Memory that the ranks of each node share.
    pub const SHARED: Capabilities = Capabilities(1 << 2);
    /// All capabilities, which a communicator is assumed to have until they have been tried.
    pub const ALL: Capabilities = Capabilities(Self::PRIVATE.0 | Self::MULTICAST.0 | Self::SHARED.0);

    /// Each capability alone, with its name.
    const NAMES: [(Capabilities, &str); 3] = [
        (Self::PRIVATE, "a communicator of its own"),
        (Self::MULTICAST, "a network with multicast"),
        (Self::SHARED, "memory that the ranks of a node share"),
    ];

    /// Returns the set as bits, for messages between ranks.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// Undoes [`Capabilities::bits`]. `None` if a bit stands for no capability.
    pub(super) fn from_bits(bits: u8) -> Option<Capabilities> {
        (bits & !Self::ALL.0 == 0).then_some(Capabilities(bits))
    }

    /// Whether all of `needed` are here.
    pub const fn has(self, needed: Capabilities) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Returns the set without those that are in `lost`.
    #[must_use]
    pub const fn without(self, lost: Capabilities) -> Capabilities {
        Capabilities(self.0 & !lost.0)
    }
}

impl BitOr for Capabilities {
    type Output = Capabilities;

    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}

impl fmt::Display for Capabilities {
    /// Writes the names for sentences: `a network with multicast`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Capabilities::NAMES.into_iter().filter(|(one, _)| self.has(*one));
        f.pad(&names.map(|(_, name)| name).collect::<Vec<_>>().join(" and "))
    }
}
