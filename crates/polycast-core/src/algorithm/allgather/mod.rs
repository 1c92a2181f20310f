//! Allgather: everybody ends with everybody's block.

pub mod ring;
