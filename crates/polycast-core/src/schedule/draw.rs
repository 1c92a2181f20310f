use std::fmt::Write;

use super::{After, Direction, Schedule};

/// How many steps of a lane are drawn before the last one.
const STEPS_DRAWN: u64 = 3;

/// One rank's schedule as text, one line per lane. A step is the range of its bytes; behind `<` stands what a send
/// waits for, as lane and number of steps:
///
/// ```text
/// lane 0  receive from 0  4 steps: 0..512  512..1024  1024..1536  1536..2000
/// lane 1  send to 2       4 steps: 0..512 <0:1  512..1024 <0:2  1024..1536 <0:3  1536..2000 <0:4
/// ```
pub fn draw<S: Schedule + ?Sized>(schedule: &S) -> String {
    let heads: Vec<String> = schedule
        .lanes()
        .iter()
        .map(|lane| match lane.direction {
            Direction::Receive => format!("receive from {}", lane.peer),
            Direction::Send => format!("send to {}", lane.peer),
        })
        .collect();
    let width = heads.iter().map(String::len).max().unwrap_or(0);
    let mut drawing = String::new();
    for (index, (lane, head)) in schedule.lanes().iter().zip(&heads).enumerate() {
        let plural = if lane.steps == 1 { "step" } else { "steps" };
        // Writing to a String cannot fail.
        let _ = write!(drawing, "lane {index}  {head:width$}  {} {plural}:", lane.steps);
        let omits = lane.steps > STEPS_DRAWN + 1;
        let drawn = if omits { STEPS_DRAWN } else { lane.steps };
        let last = omits.then(|| lane.steps - 1);
        for step in (0..drawn).chain(last) {
            let separator = if Some(step) == last { "  …  " } else { if step == 0 { " " } else { "  " } };
            drawing.push_str(separator);
            draw_step(&mut drawing, schedule, index, step);
        }
        if let Some(opener) = lane.opens_after {
            let _ = write!(drawing, "  (opens after lane {opener})");
        }
        drawing.push('\n');
    }
    drawing
}

fn draw_step<S: Schedule + ?Sized>(drawing: &mut String, schedule: &S, lane: usize, index: u64) {
    let step = schedule.step(lane, index);
    let _ = if step.bytes.is_empty() {
        write!(drawing, "signal")
    } else {
        write!(drawing, "{}..{}", step.bytes.start, step.bytes.end)
    };
    let _ = match step.after {
        After::Start => Ok(()),
        After::Steps { lane, count } => write!(drawing, " <{lane}:{count}"),
        After::LanesBelow(end) => write!(drawing, " <all below {end}"),
    };
}
