use std::ops::Range;

use super::{Action, After, Kind, Listed, Schedule, Slice};

/// Cuts messages of more than `most` bytes into several, one after the other. Both ends of a stream
/// have to be cut alike. A schedule without such messages is returned as it is.
pub fn cut(schedule: Box<dyn Schedule>, most: u64) -> Box<dyn Schedule> {
    let is_long = |lane: usize| {
        let steps = schedule.lanes()[lane].steps;
        (0..steps).any(|step| schedule.step(lane, step).action.length() > most)
    };
    let of_messages = |lane: usize| matches!(schedule.lanes()[lane].kind, Kind::Messages(_));
    let lanes = 0..schedule.lanes().len();
    let is_cut: Vec<bool> = lanes.clone().map(|lane| of_messages(lane) && is_long(lane)).collect();
    if !is_cut.contains(&true) {
        return schedule;
    }
    // How many steps there are after each one of before.
    let ends = |lane: usize| -> Vec<u64> {
        let lengths = (0..schedule.lanes()[lane].steps).map(|step| schedule.step(lane, step).action.length());
        let parts = lengths.map(|length| if is_cut[lane] { length.div_ceil(most).max(1) } else { 1 });
        parts
            .scan(0, |sum, parts| {
                *sum += parts;
                Some(*sum)
            })
            .collect()
    };
    let ends: Vec<Vec<u64>> = lanes.clone().map(ends).collect();
    let mut listed = Listed::default();
    listed.set_scratch_bytes(schedule.scratch_bytes());
    for lane in lanes {
        let from = &schedule.lanes()[lane];
        let index = listed.lane(from.kind.clone());
        (listed.lane_mut(index).phase, listed.lane_mut(index).opens_after) = (from.phase, from.opens_after);
        for step in (0..from.steps).map(|step| schedule.step(lane, step)) {
            let after = match step.after {
                After::Steps { lane, count } if count > 0 => After::Steps {
                    lane,
                    count: ends[lane].get(count as usize - 1).copied().unwrap_or(u64::MAX),
                },
                other => other,
            };
            let part = match &step.action {
                Action::Send(slice) if is_cut[lane] => {
                    Some((slice.clone(), Action::Send as fn(Slice) -> Action))
                }
                Action::Receive(slice) if is_cut[lane] => Some((slice.clone(), Action::Receive as _)),
                _ => None,
            };
            match part {
                Some((slice, action)) => {
                    for part in parts(&slice, most) {
                        listed.add(index, action(part), after);
                    }
                }
                None => {
                    listed.add(index, step.action, after);
                }
            }
        }
    }
    Box::new(listed)
}

fn parts(slice: &Slice, most: u64) -> impl Iterator<Item = Slice> {
    let (buffer, Range { start, end }) = (slice.buffer, slice.bytes.clone());
    // A message without bytes is one all the same.
    let count = (end - start).div_ceil(most).max(1);
    (0..count).map(move |part| {
        let from = start + part * most;
        Slice { buffer, bytes: from..from.saturating_add(most).min(end) }
    })
}
