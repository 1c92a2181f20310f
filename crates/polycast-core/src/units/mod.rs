//! Quantities that must not be mixed up, with the way they are written on command lines and in tables.

mod bytes;
mod nanos;
mod rank;

pub use bytes::{Bytes, ParseBytesError};
pub use nanos::Nanos;
pub use rank::Rank;
