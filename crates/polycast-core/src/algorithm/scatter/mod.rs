//! Scatter: everybody ends with a block of the root's.

pub mod binomial;
