//! Algorithms turn (ranks, root, bytes, this rank) into a schedule; they only describe, nothing here sends.
//!
//! One algorithm is one file below the collective it serves, and its name is its address: `chain` is
//! `broadcast/chain.rs`.

pub mod broadcast;
