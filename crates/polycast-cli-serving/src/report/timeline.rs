//! The numbers that the page's script draws: columns of little-endian numbers, in base64.

use std::collections::BTreeMap;

use polycast_trace::{Call, skew};
use serde_json::{Value, json};

use super::load::Traced;
use super::summary::collective_name;
use crate::picture::colour::Colour;

/// Calls of ranks, and waits in them, that a page holds: of more, the last ones. They take 24 and 16 bytes each.
const MAX_BARS: usize = 400_000;
/// Points of the picture of skews: of more, every so manieth call.
const MAX_SKEWS: usize = 5_000;

/// Returns the calls, waits and skews that the page draws.
pub fn data(traced: &Traced) -> Value {
    let job = &traced.job;
    let (bars, of_calls) = last_calls(&traced.calls);
    let mut kinds: BTreeMap<(u8, u16), u16> = BTreeMap::new();
    for call in of_calls {
        let next = kinds.len() as u16;
        kinds.entry((call.collective, call.choice())).or_insert(next);
    }
    let mut columns = Columns::default();
    let waits: usize = of_calls.iter().flat_map(|call| &call.parts).map(|part| part.waits.len()).sum();
    let waits_left_out = waits.saturating_sub(MAX_BARS);
    let mut surplus = waits_left_out;
    for (index, call) in of_calls.iter().enumerate() {
        let kind = kinds[&(call.collective, call.choice())];
        columns.call(call, kind);
        let last = skew(call).map(|skew| skew.last);
        for part in &call.parts {
            let rank = job.traces[part.trace as usize].rank;
            let end = part.returned_ns.unwrap_or(job.length_ns as i64);
            let is = |what: bool, bit: u8| u8::from(what) << bit;
            let flags = is(polycast_trace::has_root(call.collective) && part.rank == call.root, 0)
                | is(last == Some(part.rank), 1)
                | is(part.has_failed || part.returned_ns.is_none(), 2);
            columns.bar(index as u32, rank, part.called_ns, end, flags);
            let left_out = surplus.min(part.waits.len());
            surplus -= left_out;
            for (since, length) in &part.waits[left_out..] {
                columns.wait(rank, *since, *length);
            }
        }
    }
    let mut names = vec![Value::Null; kinds.len()];
    for ((collective, choice), place) in &kinds {
        let name = traced.name(*choice);
        let colour = Colour::of(name).of_several(usize::from(*collective)).to_string();
        names[usize::from(*place)] = json!([collective_name(*collective), name, colour]);
    }
    let hosts: Vec<(u32, &str)> = job.traces.iter().map(|trace| (trace.rank, &trace.host[..])).collect();
    json!({
        "ranks": job.ranks,
        "length_us": job.length_ns as f64 / 1e3,
        "kinds": names,
        "hosts": hosts,
        "bars": bars,
        "left_out": traced.calls.iter().map(|call| call.parts.len()).sum::<usize>() - bars,
        "waits_left_out": waits_left_out,
        "call": columns.calls(),
        "bar": columns.bars(),
        "wait": columns.all_waits(),
        "skew": skews(traced, &kinds),
    })
}

/// Returns the last calls, and how many bars they have.
fn last_calls(calls: &[Call]) -> (usize, &[Call]) {
    let mut bars = 0;
    let mut first = calls.len();
    while let Some(call) = first.checked_sub(1).and_then(|before| calls.get(before)) {
        if bars + call.parts.len() > MAX_BARS {
            break;
        }
        bars += call.parts.len();
        first -= 1;
    }
    (bars, &calls[first..])
}

fn skews(traced: &Traced, kinds: &BTreeMap<(u8, u16), u16>) -> Value {
    let every = traced.calls.len().div_ceil(MAX_SKEWS).max(1);
    let mut columns: [Vec<u8>; 3] = Default::default();
    for call in traced.calls.iter().step_by(every) {
        let kind = kinds.get(&(call.collective, call.choice()));
        let (Some(skew), Some(kind)) = (skew(call), kind) else { continue };
        columns[0].extend((skew.in_ns as f32 / 1e3).to_le_bytes());
        columns[1].extend((skew.out_ns as f32 / 1e3).to_le_bytes());
        columns[2].extend(kind.to_le_bytes());
    }
    let [skew_in, skew_out, kind] = columns.map(|column| base64(&column));
    json!({ "in": skew_in, "out": skew_out, "kind": kind })
}

#[derive(Default)]
struct Columns {
    call_kind: Vec<u8>,
    call_bytes: Vec<u8>,
    call_number: Vec<u8>,
    bar_call: Vec<u8>,
    bar_rank: Vec<u8>,
    bar_start: Vec<u8>,
    bar_length: Vec<u8>,
    bar_flags: Vec<u8>,
    wait_rank: Vec<u8>,
    wait_start: Vec<u8>,
    wait_length: Vec<u8>,
}

impl Columns {
    fn call(&mut self, call: &Call, kind: u16) {
        self.call_kind.extend(kind.to_le_bytes());
        self.call_bytes.extend((call.bytes as f64).to_le_bytes());
        self.call_number.extend(call.number.to_le_bytes());
    }

    fn bar(&mut self, call: u32, rank: u32, start_ns: i64, end_ns: i64, flags: u8) {
        self.bar_call.extend(call.to_le_bytes());
        self.bar_rank.extend(rank.to_le_bytes());
        self.bar_start.extend((start_ns as f64 / 1e3).to_le_bytes());
        self.bar_length.extend((end_ns.saturating_sub(start_ns).max(0) as f32 / 1e3).to_le_bytes());
        self.bar_flags.push(flags);
    }

    fn wait(&mut self, rank: u32, start_ns: i64, length_ns: u64) {
        self.wait_rank.extend(rank.to_le_bytes());
        self.wait_start.extend((start_ns as f64 / 1e3).to_le_bytes());
        self.wait_length.extend((length_ns as f32 / 1e3).to_le_bytes());
    }

    fn calls(&self) -> Value {
        let [kind, bytes, number] =
            [&self.call_kind, &self.call_bytes, &self.call_number].map(|column| base64(column));
        json!({ "kind": kind, "bytes": bytes, "number": number })
    }

    fn bars(&self) -> Value {
        let [call, rank, start, length, flags] =
            [&self.bar_call, &self.bar_rank, &self.bar_start, &self.bar_length, &self.bar_flags]
                .map(|column| base64(column));
        json!({ "call": call, "rank": rank, "start": start, "length": length, "flags": flags })
    }

    fn all_waits(&self) -> Value {
        let [rank, start, length] =
            [&self.wait_rank, &self.wait_start, &self.wait_length].map(|column| base64(column));
        json!({ "rank": rank, "start": start, "length": length })
    }
}

/// Encodes bytes in base 64 (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let number = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = number >> (18 - 6 * digit) & 63;
            text.push(if digit <= three.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}
