//! A call that is to be served, and who serves it.

use polycast_core::policy::{self, Choice, Epoch};
use polycast_core::units::Rank;

/// A call that is to be served.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub of: policy::Call,
    /// Without meaning where there is none.
    pub root: Rank,
    /// It may be served now in one way and then in another: the result is the same to the last bit.
    pub may_be_compared: bool,
    /// Contributions are to be combined in the order of ranks.
    pub is_ordered: bool,
    /// They are combined by the program's own operation.
    pub is_own: bool,
}

/// What serves a call, and its epoch, for ranks may have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    pub choice: Choice,
    pub(crate) epoch: Epoch,
    /// It is not waited for, so how long it takes says nothing.
    pub(crate) is_ahead: bool,
}

/// Who serves a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// The MPI.
    Left,
    /// The MPI, and [`Communicator::end_of_left`] is to be called when it has done it.
    LeftAndTimed,
    /// [`Communicator::start`], in this way.
    Served(Chosen),
}

impl Decision {
    /// Of a rank that does not know what the others do: its call gives the error.
    pub const UNKNOWN: Decision = {
        let chosen = Chosen { choice: Choice::Stock, epoch: Epoch::FIRST, is_ahead: false };
        Decision::Served(chosen)
    };
}
