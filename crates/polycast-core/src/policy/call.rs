use super::Collective;
use crate::units::Bytes;

/// A collective call, as far as all ranks know the same of it before they have chosen; [`crate::collective::Call`] says how it is
/// carried out, and has what only some ranks know (in place) or what must not decide (who is the root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub collective: Collective,
    /// The call's bytes in all.
    pub bytes: Bytes,
}
