//! What is to be measured, and how the measuring program is told.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use polycast_core::units::Bytes;

use super::arrival::{Arrival, Pattern, Root};
use super::operation::Operation;
use super::variant::Variant;

/// How the clocks of ranks are brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ClockMethod {
    /// Ranks under one kernel share its clock; kernels are compared by ping-pongs
    Auto,
    /// Compare every rank by ping-pongs, to see how good they are where the truth is known
    Pingpong,
}

/// What a time is; see bench/rounds.h.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Method {
    /// Of one call, by deadlines on a common clock
    #[default]
    Clock,
    /// The mean of calls in a row, as many programs measure it: misleading, for comparison
    Loop,
    /// Of one broadcast or scatter, by the receivers' answers, without a common clock (Nupairoj 1998, §3.3.2)
    Responder,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Method::Clock => "clock",
            Method::Loop => "loop",
            Method::Responder => "responder",
        }
    }
}

/// The plan of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The operation.
    pub operation: Operation,
    /// Message sizes, one after the other.
    pub sizes: Vec<Bytes>,
    /// Communicators of the first so many ranks, one after the other; none: all ranks of the job.
    pub rank_counts: Vec<usize>,
    /// The variants, alternated repetition by repetition.
    pub variants: Vec<Variant>,
    /// The time for each size and variant, over all launches.
    pub time: Duration,
    /// Jobs that are started.
    pub launches: u32,
    /// The times at which ranks call.
    pub arrival: Arrival,
    /// The root, or that it rotates.
    pub root: Root,
    /// The method that defines a time.
    pub method: Method,
    /// Caches are emptied before each repetition.
    pub cold: bool,
    /// The common clock.
    pub clock: ClockMethod,
    /// A rank that damages its data before it is checked: a test of the check.
    pub corrupt: Option<u32>,
}

/// The facts known about the network of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The hosts' interface to this network; without one the kernel's route to a multicast group
    /// decides.
    pub interface: Option<String>,
    /// The rate of the slowest link, in bits per second.
    pub rate_bits_per_second: Option<u64>,
}

impl Plan {
    /// Returns the number of communicators that are measured.
    pub fn communicators(&self) -> usize {
        self.rank_counts.len().max(1)
    }

    /// True if polycast must be preloaded.
    pub fn needs_polycast(&self) -> bool {
        self.variants.iter().any(|variant| variant.needs_polycast())
    }

    /// The measuring program with its arguments, for one launch over `links`.
    pub fn program(&self, program: &Path, links: &Links) -> Vec<OsString> {
        let milliseconds = (self.time / self.launches.max(1)).as_millis().max(1);
        let mut words: Vec<OsString> = vec![program.into()];
        let mut push = |key: &str, value: String| words.push(format!("{key}={value}").into());
        push("collective", self.operation.name().to_owned());
        self.sizes.iter().for_each(|size| push("size", size.0.to_string()));
        self.variants.iter().for_each(|variant| push("variant", variant.to_string()));
        self.rank_counts.iter().for_each(|ranks| push("ranks", ranks.to_string()));
        push("time-ms", milliseconds.to_string());
        push(
            "root",
            if self.operation.collective().has_root() { self.root.to_string() } else { "0".to_owned() },
        );
        push("arrival", self.arrival.pattern.to_string());
        if let Some(delay) = self.arrival.delay.filter(|_| self.arrival.pattern != Pattern::None) {
            push("delay-ns", delay.as_nanos().to_string());
        }
        if let Some(file) = &self.arrival.file {
            push("arrival-file", file.display().to_string());
        }
        push("method", self.method.name().to_owned());
        if self.cold {
            push("cold", "1".to_owned());
        }
        push("clock", if self.clock == ClockMethod::Auto { "auto" } else { "pingpong" }.to_owned());
        if let Some(rank) = self.corrupt {
            push("corrupt", rank.to_string());
        }
        if self.variants.contains(&Variant::Blast) {
            links.interface.iter().for_each(|name| push("interface", name.clone()));
            links.rate_bits_per_second.iter().for_each(|rate| push("rate", rate.to_string()));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(variants: &str) -> Plan {
        Plan {
            operation: Operation::Bcast,
            sizes: vec![Bytes(1024)],
            rank_counts: vec![16, 2],
            variants: crate::bench::variant::parse_for(&[Operation::Bcast], variants).unwrap().remove(0),
            time: Duration::from_secs(3),
            launches: 2,
            arrival: "root-last:2ms".parse().unwrap(),
            root: Root::Rotate,
            method: Method::Clock,
            cold: false,
            clock: ClockMethod::Auto,
            corrupt: None,
        }
    }

    fn words(plan: &Plan) -> String {
        let links = Links { interface: Some("e0".into()), rate_bits_per_second: Some(1_000_000) };
        plan.program(Path::new("p"), &links).join(&OsString::from(" ")).into_string().unwrap()
    }

    #[test]
    fn the_time_is_shared_by_the_launches() {
        let plan = plan("stock,chain:segment=8KiB,ready");
        assert_eq!(
            words(&plan),
            "p collective=bcast size=1024 variant=stock variant=chain:segment=8KiB,ready ranks=16 ranks=2 time-ms=1500 root=rotate \
             arrival=root-last delay-ns=2000000 method=clock clock=auto"
        );
        assert!(plan.needs_polycast());
    }

    #[test]
    fn only_a_blast_asks_for_the_network() {
        let plan = plan("stock,blast");
        assert!(words(&plan).ends_with(" interface=e0 rate=1000000"), "{}", words(&plan));
        assert!(!plan.needs_polycast());
    }
}
