//! Reduce: the root ends with the combination of everybody's data.

pub mod binomial;
