//! Quantities that must not be mixed up, with the way they are written on command lines and in tables.
#![forbid(unsafe_code)]

mod bytes;
mod nanos;
pub mod quantity;
mod rank;
mod rate;
pub mod statistics;
mod written;

pub use bytes::{Bytes, ParseBytesError};
pub use nanos::{Nanos, ParseNanosError};
pub use rank::Rank;
pub use rate::{ParseRateError, Rate};
