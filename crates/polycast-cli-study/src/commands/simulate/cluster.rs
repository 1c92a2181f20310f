//! The network of the nodes of `simulate --scaling` and `--collective`: a cluster of round numbers,
//! or one of the user's own.

use std::path::PathBuf;

use polycast_core::files::FileKind;
use polycast_core::model::{LinkClass, Parameters};
use polycast_core::units::{Nanos, Rate};
use polycast_sim::protocol::Cluster;

use crate::terminal::{digits, nanoseconds};
use crate::topology_input::Input;

/// Options that say what it is.
#[derive(clap::Args)]
#[group(skip)]
pub struct Args {
    /// What the nodes are joined by [--scaling, --collective]
    #[arg(long, value_name = "CLUSTER", value_enum, default_value = "gigabit", conflicts_with_all = ["protocol", "root_sync", "network", "figure"])]
    cluster: Joined,
    /// Links of this rate in place of the cluster's: 40gbit [--scaling, --collective]
    #[arg(long, value_name = "RATE", conflicts_with_all = ["protocol", "root_sync", "network", "figure"])]
    rate: Option<Rate>,
    /// From port to port, in place of the cluster's: 8us [--scaling, --collective]
    #[arg(long, value_name = "TIME", conflicts_with_all = ["protocol", "root_sync", "network", "figure"])]
    latency: Option<Nanos>,
    /// L, o and G of a file that `polycast measure` wrote, in place of all of these [--scaling, --collective]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cluster", "rate", "latency", "protocol", "root_sync", "network", "figure"])]
    params: Option<PathBuf>,
}

/// A cluster of round numbers; docs/simulation.md has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Joined {
    Gigabit,
    FastEthernet,
    Infiniband,
    #[value(name = "10gbe")]
    TenGigabit,
    #[value(name = "25gbe")]
    TwentyFiveGigabit,
    #[value(name = "100gbe")]
    HundredGigabit,
}

impl Args {
    /// The cluster.
    ///
    /// # Errors
    /// What is wrong with the file of parameters.
    pub fn cluster(&self) -> Result<Cluster, Box<dyn std::error::Error>> {
        let mut cluster = match (&self.params, self.cluster) {
            (Some(file), _) => measured(file)?,
            (None, Joined::Gigabit) => Cluster::gigabit(),
            (None, Joined::FastEthernet) => Cluster::fast_ethernet(),
            (None, Joined::Infiniband) => Cluster::infiniband(),
            (None, Joined::TenGigabit) => Cluster::ten_gigabit(),
            (None, Joined::TwentyFiveGigabit) => Cluster::twenty_five_gigabit(),
            (None, Joined::HundredGigabit) => Cluster::hundred_gigabit(),
        };
        cluster.hardware.ns_per_byte = self.rate.map_or(cluster.hardware.ns_per_byte, Rate::ns_per_byte);
        cluster.latency = self.latency.unwrap_or(cluster.latency);
        Ok(cluster)
    }
}

/// The cluster of a parameter file, by the times of messages between hosts of one switch.
fn measured(file: &std::path::Path) -> Result<Cluster, Box<dyn std::error::Error>> {
    let input = Input::read(file, FileKind::Parameters)?;
    let parameters = Parameters::parse_all(&input.text, &input.name)?;
    let class = parameters.class(LinkClass::SameSwitch);
    let overhead_ns = class.log_gp().overhead_ns;
    // As Kielmann et al. 2000 turn their parameters into LogGP's: G is that of the longest message, L what the shortest one takes without o.
    let longest = class.gap.points().last().map_or(1, |point| point.bytes.max(1));
    let gap_per_byte_ns = class.gap.at(longest) / longest as f64;
    let latency_ns = (class.hop_ns(1) - 2.0 * overhead_ns).max(0.0);
    if gap_per_byte_ns.is_nan() || gap_per_byte_ns <= 0.0 {
        return Err(format!(
            "{}: expected messages that take longer the longer they are, found g({longest}) = {}: measure again on a machine without other work",
            input.name,
            nanoseconds(class.gap.at(longest)),
        )
        .into());
    }
    let mut cluster = Cluster::gigabit();
    let overhead = Nanos(overhead_ns.round() as u64);
    (cluster.hardware.send_overhead, cluster.hardware.receive_overhead) = (overhead, overhead);
    cluster.hardware.ns_per_byte = gap_per_byte_ns;
    // The headers are within what was measured of each byte.
    cluster.hardware.frame_bytes = 0;
    cluster.latency = Nanos(latency_ns.round() as u64);
    Ok(cluster)
}

/// The cluster in the terms of LogGP, for people: `G = 8 ns per byte (1000 Mb/s), o = 5.00 µs, L =
/// 25.0 µs`.
pub fn told(cluster: &Cluster) -> String {
    let hardware = &cluster.hardware;
    let megabits = (8e3 / hardware.ns_per_byte).round();
    format!(
        "G = {} ns per byte ({megabits} Mb/s), o = {}, L = {}",
        digits(hardware.ns_per_byte),
        nanoseconds(hardware.send_overhead.0 as f64),
        nanoseconds(cluster.latency.0 as f64)
    )
}

/// The line under the title of a picture.
pub fn note(cluster: &Cluster) -> String {
    format!("Simulated by polycast {}: {}", env!("CARGO_PKG_VERSION"), told(cluster))
}
