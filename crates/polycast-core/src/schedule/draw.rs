use std::fmt::Write;
use std::ops::Range;

use super::{Action, After, Buffer, Direction, Fabric, Kind, Lane, LaneIndex, Schedule, Slice, Step, Stream};

/// The number of steps of a lane that are drawn before the last one.
const STEPS_DRAWN: u64 = 3;

/// Draws one rank's schedule as text, one line per lane. A step is drawn as its bytes, of the
/// output where no other buffer is named; in brackets stands what the step waits for, as lane and
/// number of its steps:
///
/// ```text
/// lane 0  receive from 0  4 steps: 0..512  512..1024  1024..1536  1536..2000
/// lane 1  send to 2       4 steps: 0..512 [0:1]  512..1024 [0:2]  1024..1536 [0:3]  1536..2000 [0:4]
/// ```
pub fn draw<S: Schedule + ?Sized>(schedule: &S) -> String {
    let heads: Vec<String> = schedule.lanes().iter().map(head).collect();
    let width = heads.iter().map(String::len).max().unwrap_or(0);
    let mut drawing = String::new();
    for (lane, head) in heads.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(drawing, "lane {lane}  {head:width$}  {}", draw_steps(schedule, lane));
    }
    drawing
}

fn head(lane: &Lane) -> String {
    match &lane.kind {
        Kind::Messages(Stream { peer, direction: Direction::Receive, .. }) => format!("receive from {peer}"),
        Kind::Messages(Stream { peer, direction: Direction::Send, .. }) => format!("send to {peer}"),
        Kind::Local => "local".to_owned(),
        Kind::Publish { fabric, readers, .. } => {
            format!("publish {} to {} ranks", name(*fabric), readers.len())
        }
        Kind::Fetch { fabric, writer, .. } => format!("fetch {} from {writer}", name(*fabric)),
    }
}

fn name(fabric: Fabric) -> &'static str {
    match fabric {
        Fabric::Shared => "shared",
        Fabric::Cell => "cell",
        Fabric::Multicast => "multicast",
    }
}

fn draw_steps<S: Schedule + ?Sized>(schedule: &S, lane: LaneIndex) -> String {
    let Lane { steps, opens_after, .. } = schedule.lanes()[lane];
    let step = |index| draw_step(&schedule.step(lane, index));
    let mut drawn: Vec<String> = (0..steps.min(STEPS_DRAWN)).map(step).collect();
    if steps > STEPS_DRAWN + 1 {
        drawn.push("…".to_owned());
    }
    if steps > STEPS_DRAWN {
        drawn.push(step(steps - 1));
    }
    if let Some(opener) = opens_after {
        drawn.push(format!("(opens after lane {opener})"));
    }
    format!("{steps} {}: {}", if steps == 1 { "step" } else { "steps" }, drawn.join("  "))
}

fn draw_step(step: &Step) -> String {
    let action = match &step.action {
        Action::Send(slice) | Action::Receive(slice) | Action::Publish(slice) => draw_slice(slice),
        Action::Copy { from, to } => format!("{}→{}", draw_slice(from), draw_slice(to)),
        Action::Combine { from, into } => format!("{}∘{}", draw_slice(from), draw_slice(into)),
        Action::Fetch { at, to } => format!("@{at}→{}", draw_slice(to)),
    };
    match step.after {
        After::Start => action,
        After::Steps { lane, count } => format!("{action} [{lane}:{count}]"),
        After::LanesBelow(end) => format!("{action} [all below {end}]"),
    }
}

fn draw_slice(slice: &Slice) -> String {
    let Range { start, end } = slice.bytes;
    match slice.buffer {
        _ if slice.bytes.is_empty() => "signal".to_owned(),
        Buffer::Output => format!("{start}..{end}"),
        Buffer::Input => format!("in {start}..{end}"),
        Buffer::Scratch => format!("scratch {start}..{end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Posting;
    use crate::units::Rank;

    /// A rank in a chain that waits until the next one is ready.
    struct Middle {
        lanes: [Lane; 3],
        segments: u64,
    }

    impl Middle {
        fn new(segments: u64) -> Self {
            let lane = |direction, peer, steps, opens_after| {
                let channel = u8::from(steps == 1);
                let posting = Posting::AtOnce;
                let kind = Kind::Messages(Stream { peer: Rank(peer), direction, channel, posting });
                Lane { opens_after, ..Lane::new(kind, steps) }
            };
            let lanes = [
                lane(Direction::Receive, 0, segments, None),
                lane(Direction::Receive, 12, 1, None),
                lane(Direction::Send, 12, segments, Some(1)),
            ];
            Middle { lanes, segments }
        }
    }

    impl Schedule for Middle {
        fn lanes(&self) -> &[Lane] {
            &self.lanes
        }

        fn step(&self, lane: LaneIndex, index: u64) -> Step {
            let bytes =
                if lane == 1 { 0..0 } else { index * 512..(index * 512 + 512).min(self.segments * 512 - 48) };
            let after = if lane == 2 { After::Steps { lane: 0, count: index + 1 } } else { After::Start };
            let bytes = Slice::output(bytes);
            Step { action: if lane == 2 { Action::Send(bytes) } else { Action::Receive(bytes) }, after }
        }
    }

    #[test]
    fn short_lanes_are_drawn_in_full_long_ones_by_their_ends() {
        let short = "\
lane 0  receive from 0   4 steps: 0..512  512..1024  1024..1536  1536..2000
lane 1  receive from 12  1 step: signal
lane 2  send to 12       4 steps: 0..512 [0:1]  512..1024 [0:2]  1024..1536 [0:3]  1536..2000 [0:4]  (opens after lane 1)
";
        assert_eq!(draw(&Middle::new(4)), short);
        let long = draw(&Middle::new(1 << 40));
        assert!(
            long.starts_with(
                "lane 0  receive from 0   1099511627776 steps: 0..512  512..1024  1024..1536  …  "
            ),
            "{long}"
        );
    }
}
