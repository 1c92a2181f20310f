//! A cluster in a box: hosts are network namespaces, switches are bridges, links are veth pairs with a rate.
//!
//! ```no_run
//! use polycast_lab::{Lab, LabSpec, Lifetime};
//!
//! # fn main() -> Result<(), polycast_lab::LabError> {
//! let spec: LabSpec = "hosts=16,rate=20mbit".parse()?;      // or topology=FILE, burst=64KiB, loss=1%, block=h3, name=x
//! let lab = Lab::up(&spec.plan()?, spec.name.as_deref(), Lifetime::Caller)?;
//! for host in lab.hosts() {                                 // name, address, switch, rate
//!     let status = lab.command_on(&host.name, "hostname")?.status();
//! }
//! let agent = lab.agent();                                  // stands in for ssh, for mpiexec started in the lab
//! # Ok(()) }                                                // dropped: everything is gone
//! ```
//!
//! # How a lab lives
//!
//! One process, the *keeper*, owns a mount, a PID and a network namespace (and a user namespace, if the caller is not root).
//! All bridges, links, host namespaces and processes of a lab live inside of these, so that the death of the keeper, in
//! whatever way, makes the kernel remove all of them. What can stay behind is a state file (see [`Lab::all`]).
//!
//! The keeper of a lab with [`Lifetime::Caller`] ends itself when the process that made the lab is gone, also by SIGKILL.
//!
//! # What the process that uses this library must provide
//!
//! Keeper, entered commands and probes are the program itself, executed again with `lab keeper`, `lab exec`, `lab agent`,
//! `lab probe`: see [`hidden`]. The `polycast` tool does so; a test names the tool with `POLYCAST_TOOL`.

mod batch;
mod calibrate;
mod carried;

mod enter;
mod error;
mod keeper;
mod lab;
mod launcher_words;
mod namespace;
mod offload;
mod plan;
mod probe;

mod quantity;
mod rules;
mod spec;
mod state;
mod tools;

pub mod hidden;

pub use calibrate::{Calibration, CalibrationOptions, Load, Transfer, wire_time};
pub use carried::Carried;
pub use error::LabError;
pub use lab::Lab;
pub use plan::{Host, MAX_HOSTS, Plan, Switch, Uplink};
pub use polycast_core::units::Rate;
pub use quantity::{DEFAULT_BUCKET_BYTES, MAX_BUCKET_BYTES, MIN_BUCKET_BYTES, parse_bucket_bytes};
pub use spec::{LabSpec, parse_loss_per_million};
pub use state::{Lifetime, Summary};
pub use tools::own_program;
