//! All-to-all: everybody has a block for everybody.

pub mod pairwise;
