use std::fmt::Write;

use polycast_core::units::Nanos;
use polycast_protocol::message::{self, Body};

/// A log of a run, one line per event; empty unless it was asked for.
#[derive(Default)]
pub(super) struct Timeline(pub Option<String>);

impl Timeline {
    pub fn say(&mut self, now: Nanos, node: u32, what: impl FnOnce() -> String) {
        if let Some(text) = &mut self.0 {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{:>14}  node {node:<3} {}", now.to_string(), what());
        }
    }

    pub fn message(&mut self, now: Nanos, node: u32, what: std::fmt::Arguments<'_>, bytes: &[u8]) {
        self.say(now, node, || {
            let Some((header, body)) = message::decode(bytes) else { return format!("{what}: unreadable") };
            let runs = |runs: message::Runs<'_>| {
                let runs = runs.iter().map(|run| match run.count {
                    1 => run.first.to_string(),
                    count => format!("{}-{}", run.first, run.first.saturating_add(count - 1)),
                });
                runs.collect::<Vec<_>>().join(",")
            };
            let body = match body {
                Body::Fragments(list, _) => format!("fragments {}", runs(list)),
                Body::Request(list) => format!("request {}", runs(list)),
                Body::End => "end".to_owned(),
                Body::Done => "done".to_owned(),
                Body::Bye => "bye".to_owned(),
                Body::Failed => "failed".to_owned(),
                Body::LossProbe => "loss probe".to_owned(),
                Body::Deaf => "deaf".to_owned(),
                Body::Arrived(report) => format!("arrived {report:?}"),
            };
            format!("{what}: {body}, operation {}", header.operation)
        });
    }
}
