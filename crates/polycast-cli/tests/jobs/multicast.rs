//! Multicast in jobs: real MPI programs on the hosts of a lab.
//!
//! A job counts only when polycast's report says that multicast carried broadcasts: else it proves nothing.

mod died;
mod faults;
mod flooded;
mod killed;
mod one_group;
mod programs;
mod replayed;
mod settings;
