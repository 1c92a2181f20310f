use super::Collective;
use crate::collective::{self, CombinationOrder};
use crate::units::Bytes;

/// A collective call, as far as all ranks know the same of it before they have chosen; [`crate::collective::Call`] says how it is
/// carried out, and has what only some ranks know (in place) or what must not decide (who is the root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub collective: Collective,
    /// The call's bytes in all.
    pub bytes: Bytes,
    /// True if the bits of the result depend on the order in which contributions are combined, as
    /// those of floating-point sums do.
    pub is_sum: bool,
}

impl Call {
    /// A call whose result has the same bits in any order.
    pub const fn new(collective: Collective, bytes: Bytes) -> Call {
        Call { collective, bytes, is_sum: false }
    }

    /// A reduction whose bits depend on the order.
    pub const fn of_sum(collective: Collective, bytes: Bytes) -> Call {
        Call { collective, bytes, is_sum: true }
    }
}

impl From<&collective::Call> for Call {
    /// The call as it was chosen by, if its way keeps an order where that matters.
    fn from(call: &collective::Call) -> Call {
        Call { collective: call.collective, bytes: call.bytes, is_sum: call.order != CombinationOrder::Any }
    }
}
