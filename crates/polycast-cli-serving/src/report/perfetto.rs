//! Trace-event JSON, which Perfetto and other viewers read: a process for each host, a thread for each rank, slices for calls and for
//! the waits in them.

use std::io::{self, Write};

use polycast_trace::{Call, Part};
use serde_json::{Value, json};

use super::load::Traced;
use super::summary::collective_name;
use crate::operation::capitalised;

/// Writes all calls.
pub fn write(traced: &Traced, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    let job = &traced.job;
    let mut hosts: Vec<&str> = job.traces.iter().map(|trace| &trace.host[..]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let process = |host: &str| hosts.binary_search(&host).unwrap_or(0);
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut is_first = true;
    let mut event = |value: Value| {
        let comma = if std::mem::take(&mut is_first) { "\n" } else { ",\n" };
        write!(out, "{comma}{value}")
    };
    for (number, host) in hosts.iter().enumerate() {
        event(json!({ "ph": "M", "name": "process_name", "pid": number, "args": { "name": host } }))?;
    }
    for trace in &job.traces {
        let (pid, tid, name) = (process(&trace.host), trace.rank, format!("rank {}", trace.rank));
        event(json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": { "name": name } }))?;
        let order = json!({ "sort_index": trace.rank });
        event(json!({ "ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": order }))?;
    }
    for call in &traced.calls {
        for part in &call.parts {
            let trace = &job.traces[part.trace as usize];
            let place = (process(&trace.host), trace.rank);
            event(slice(traced, call, part, place))?;
            for (since, length) in &part.waits {
                event(json!({ "ph": "X", "cat": "wait", "name": "waits", "pid": place.0, "tid": place.1,
                    "ts": us(*since), "dur": *length as f64 / 1e3 }))?;
            }
            let datagrams = part.datagrams.as_deref();
            let seen =
                datagrams.map(|seen| [("first datagram", seen.first_ns), ("last datagram", seen.last_ns)]);
            for (name, at) in seen.into_iter().flatten() {
                if let Some(at) = at {
                    event(json!({ "ph": "i", "s": "t", "cat": "multicast", "name": name, "pid": place.0,
                        "tid": place.1, "ts": us(at) }))?;
                }
            }
        }
    }
    out.write_all(b"\n]}\n")
}

fn us(nanos: i64) -> f64 {
    nanos as f64 / 1e3
}

fn slice(traced: &Traced, call: &Call, part: &Part, (pid, tid): (usize, u32)) -> Value {
    let end = part.returned_ns.unwrap_or(traced.job.length_ns as i64);
    let mut args = json!({
        "bytes": call.bytes,
        "served by": traced.name(part.choice),
        "because": traced.name(part.reason),
        "communicator": format!("{:016x}.{}", call.group, call.ordinal),
        "call": call.number,
        "rank there": part.rank,
        "waited us": part.waited_ns as f64 / 1e3,
    });
    if polycast_trace::has_root(call.collective) {
        args["root"] = call.root.into();
    }
    if let Some(seen) = &part.datagrams {
        args["datagrams"] = json!({ "sent": seen.sent, "received": seen.received, "useful": seen.useful,
            "repaired": seen.repaired, "restored": seen.restored, "requests": seen.requests });
    }
    let name = format!("MPI_{}", capitalised(collective_name(call.collective)));
    json!({ "ph": "X", "cat": "collective", "name": name, "pid": pid, "tid": tid, "ts": us(part.called_ns),
        "dur": us(end.saturating_sub(part.called_ns).max(0)), "args": args })
}
