//! Measured parameters of a network, and the models that are made of them.
//!
//! ```text
//! measure ──▶ Parameters ──▶ file ──parse──▶ Parameters ──class──▶ ClassParameters ──▶ Curve::at(bytes)
//!                                                                        └──fit──▶ Line, LogGp, Hockney
//! ```
//!
//! Every parameter is a function of the message's size, for protocol switches of MPI libraries make a single line wrong
//! (extended P-LogP, Patarasuk et al. 2008, §4.2), and is known per *link class*: ranks on the same node, below the same switch, across
//! switches. What ranks of a node share through its memory is known per collective and number of ranks. All times are in nanoseconds, as `f64`, because they are means.

mod class;
mod curve;
mod fit;
mod parameters;
mod sharing;
mod text;

pub use class::{CURVE_NAMES, ClassParameters, LinkClass, ParseLinkClassError};
pub use curve::{Curve, CurveError, MAX_BYTES, MAX_NS, MAX_POINTS, Point};
pub use fit::{Hockney, Line, LogGp};
pub use parameters::{MAX_NOTE_BYTES, MAX_TEXT_BYTES, Parameters, ParametersError, Provenance};
pub use sharing::{MAX_SHARING, Sharing};
