//! Quantities that must not be mixed up, with the way they are written on command lines and in tables.

mod bytes;
mod rank;

pub use bytes::{Bytes, ParseBytesError};
pub use rank::Rank;
