//! Why does multicast not work here, and would polycast use it?
//!
//! ```text
//!   polycast doctor ─┬─ worker on h0   polycast doctor-agent: examines its host, then sends and counts datagrams
//!                    ├─ worker on h1   reached by the lab, by ssh, or as a child process;
//!                    └─ worker on h2   questions on its standard input, answers on its standard output, a line each
//! ```
//!
//! What is wrong on one host a worker finds by itself ([`checks`]); what is wrong between hosts only the probe shows
//! ([`probe`]): a switch that forgets who wants a group, a firewall, a smaller MTU on the way all look alike from a host.

pub mod agent;
mod blast;
pub mod checks;
mod crew;
pub mod examination;
pub mod finding;
pub mod host_list;
mod message;
mod page;
mod probe;
mod rates;
pub mod report;
mod system;
mod worker;
