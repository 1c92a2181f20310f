//! Algorithms turn (ranks, root, bytes, this rank) into a schedule; they only describe, nothing here sends.
//!
//! One algorithm is one file below the collective it serves, and its name is its address: `chain` is
//! `broadcast/chain.rs`. An algorithm cuts the data into `pieces` and lists who gets which of them from whom; the
//! `plan` makes a schedule of that list and finds out by itself what each send has to wait for.

pub mod broadcast;
mod pieces;
mod plan;
