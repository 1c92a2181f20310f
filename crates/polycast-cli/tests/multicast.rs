//! Multicast in jobs: real MPI programs on the hosts of a lab.
//!
//! A job counts only when polycast's report says that multicast carried broadcasts: else it proves nothing.

#[path = "lab/cluster.rs"]
mod cluster;
mod common;
#[path = "multicast/faults.rs"]
mod faults;
#[path = "multicast/job.rs"]
mod job;
#[path = "multicast/killed.rs"]
mod killed;
#[path = "multicast/programs.rs"]
mod programs;
#[path = "multicast/settings.rs"]
mod settings;

/// Both forms of the protocol.
const FORMS: [&str; 2] = ["multicast-pull", "multicast-push"];
