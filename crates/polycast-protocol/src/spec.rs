use super::root_sync::RootSync;

/// The two forms of multicast, by what the ring does beside it.
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
    /// The form: what the ring does.
    pub form: Form,
    /// The method by which the root waits for receivers.
    pub sync: RootSync,
    /// True for one more datagram, from which a receiver restores any fragment that alone it
    /// misses. Where thousands receive, some node always misses one.
    pub parity: bool,
}

impl From<Form> for Multicast {
    /// The form with the default root synchronisation and no parity.
    fn from(form: Form) -> Multicast {
        Multicast { form, sync: RootSync::default(), parity: false }
    }
}
