//! Barrier: nobody ends before all have begun.

pub mod dissemination;
