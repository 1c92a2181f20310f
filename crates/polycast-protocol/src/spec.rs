use super::root_sync::RootSync;

/// What the ring does beside the multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Every node forwards every fragment at once: nobody waits for anybody, and everything travels twice.
    Push,
    /// Every node asks for what it misses: the wire carries the message once, and a node waits for its successor.
    Pull,
}

/// A multicast broadcast with its parameters.
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

impl From<Form> for Multicast {
    /// In its simplest way.
    fn from(form: Form) -> Multicast {
        Multicast { form, sync: RootSync::default(), parity: false }
    }
}
