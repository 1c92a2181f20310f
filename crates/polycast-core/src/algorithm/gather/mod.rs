//! Gather: the root ends with everybody's block.

pub mod binomial;
