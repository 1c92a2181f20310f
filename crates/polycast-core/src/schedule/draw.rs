use std::fmt::Write;

use super::{After, Direction, Lane, LaneIndex, Schedule, Step};

/// How many steps of a lane are drawn before the last one.
const STEPS_DRAWN: u64 = 3;

/// One rank's schedule as text, one line per lane. A step is drawn as the bytes that travel; in brackets stands what
/// a send waits for, as receive lane and number of its steps:
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
    match lane.direction {
        Direction::Receive => format!("receive from {}", lane.peer),
        Direction::Send => format!("send to {}", lane.peer),
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
    let bytes = match &step.bytes {
        bytes if bytes.is_empty() => "signal".to_owned(),
        bytes => format!("{}..{}", bytes.start, bytes.end),
    };
    match step.after {
        After::Start => bytes,
        After::Steps { lane, count } => format!("{bytes} [{lane}:{count}]"),
        After::LanesBelow(end) => format!("{bytes} [all below {end}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                Lane { direction, peer: Rank(peer), channel, steps, phase: 0, opens_after }
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
            Step { bytes, after }
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
