use super::Collective;
use crate::units::Bytes;

/// A collective call, as far as all ranks know the same of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The operation.
    pub collective: Collective,
    /// Its bytes in all.
    pub bytes: Bytes,
}
