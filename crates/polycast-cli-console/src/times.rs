//! The times of messages that an optimal tree is planned for, as `tree`, `explain` and `predict` tell them.

use std::fmt;
use std::sync::Arc;

use polycast_core::algorithm::broadcast::{Origin, Planner, Sent};
use polycast_core::model::Parameters;
use polycast_core::tree::Site;
use polycast_core::units::Bytes;
use serde::Serialize;

use crate::terminal::nanoseconds;

/// The times, and where they come from.
#[derive(Serialize)]
pub struct Times {
    hold_ns: u64,
    end_ns: u64,
    /// The time between the beginnings of sends over different ports, where it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_ns: Option<u64>,
    /// The origin of the times: `given`, `measured`, `derived` from `L(m)` and `g(m)`, or
    /// `assumed`.
    from: &'static str,
    /// The ranks between which the times were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    /// The size of the messages, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
}

impl From<Sent> for Times {
    fn from(Sent { times, interval, origin }: Sent) -> Times {
        let (from, at) = match origin {
            Origin::Given => ("given", None),
            Origin::Measured(class, bytes) => ("measured", Some((class, bytes))),
            Origin::Derived(class, bytes) => ("derived", Some((class, bytes))),
            Origin::Assumed => ("assumed", None),
        };
        Times {
            hold_ns: times.hold.0,
            end_ns: times.end.0,
            interval_ns: interval.map(|interval| interval.0),
            from,
            class: at.map(|(class, _)| class.name()),
            bytes: at.map(|(_, bytes)| bytes.0),
        }
    }
}

impl Times {
    /// True if nobody has measured any times.
    pub fn is_assumed(&self) -> bool {
        self.from == "assumed"
    }

    /// Says where the time comes from: `measured for same-node`.
    pub fn origin(&self) -> String {
        match (self.from, self.class) {
            ("derived", Some(class)) => format!("derived from L and g for {class}"),
            ("assumed", _) => "assumed times: nobody measured any".to_owned(),
            (from, Some(class)) => format!("{from} for {class}"),
            (from, None) => from.to_owned(),
        }
    }

    /// Says where the time comes from, with its size if there is one: `measured for same-node,
    /// 8KiB`.
    pub fn source(&self) -> String {
        let size = self.bytes.map_or(String::new(), |bytes| format!(", {}", Bytes(bytes)));
        self.origin() + &size
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |ns: u64| nanoseconds(ns as f64);
        write!(f, "t_hold {}, t_end {}", ns(self.hold_ns), ns(self.end_ns))?;
        if let Some(interval) = self.interval_ns {
            write!(f, ", t_int {}", ns(interval))?;
        }
        write!(f, " ({})", self.source())
    }
}

/// Returns the planner that a job makes its trees with.
pub fn planner(site: Site, parameters: Option<&Parameters>) -> Planner {
    match parameters {
        Some(parameters) => Planner::new(site).measured(Arc::new(parameters.clone())),
        None => Planner::new(site),
    }
}
