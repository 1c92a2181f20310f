use crate::protocol::chain::Chain;
use crate::protocol::cut::Cut;
use crate::protocol::receiver::Receiver;
use crate::protocol::sender::Sender;
use crate::protocol::spec::Multicast;
use crate::units::Nanos;

/// When the root may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    At(Nanos),
    /// When the drawn receiver has said that it is there.
    Arrival,
}

/// The broadcast in progress.
#[derive(Debug)]
pub(super) struct Active {
    pub spec: Multicast,
    pub cut: Cut,
    /// 0 is the root.
    pub position: u32,
    pub receiver: Receiver,
    pub chain: Chain,
    /// The root only.
    pub sender: Option<Sender>,
    pub gate: Gate,
    pub root_waited: bool,
    /// This node has been drawn and has not told the root that it is there.
    pub arrival_is_due: bool,
    pub repaired: u32,
    pub sent_again: u64,
}

impl Gate {
    pub fn is_open(self, now: Nanos) -> bool {
        match self {
            Gate::Open => true,
            Gate::At(at) => at <= now,
            Gate::Arrival => false,
        }
    }
}
