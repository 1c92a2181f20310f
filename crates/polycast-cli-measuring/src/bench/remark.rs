//! What a reader must know of a point besides its figures, in a sentence.

use std::time::Duration;

use super::figures::FEWEST;
use super::point::Point;

/// The remark on a point that was measured with this limit of time for a size and variant.
pub fn of(point: &Point, time_limit: Duration) -> Option<String> {
    let sentences: Vec<String> =
        [withheld(point), lateness(point), scarcity(point, time_limit), choice(point)]
            .into_iter()
            .flatten()
            .collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Returns the remark that says why there is no speedup.
fn withheld(point: &Point) -> Option<String> {
    let why = point.speedup_withheld.as_ref()?;
    Some(format!("no ratio, for {why}: measure again when the machine is quiet, or for longer (--time)"))
}

/// Returns the remark on repetitions that a rank entered too late, where they are many.
fn lateness(point: &Point) -> Option<String> {
    let &Point { samples, late, dropped, .. } = point;
    let all = samples + dropped;
    match (late, dropped) {
        (late, _) if late > 0 && late == samples => {
            Some(format!("{} late (the machine was busy) and counted all the same", are("all ", samples)))
        }
        (late, _) if late > 0 => Some(format!(
            "{late} of {} late (the machine was busy) and counted all the same: without them there are less than {FEWEST}",
            are("", samples)
        )),
        (_, dropped) if dropped > samples => {
            Some(format!("{dropped} of {all} repetitions were late and are left out: the machine was busy"))
        }
        _ => None,
    }
}

fn are(all: &str, samples: usize) -> String {
    if samples == 1 { "1 repetition is".to_owned() } else { format!("{all}{samples} repetitions are") }
}

/// Returns the remark on too few repetitions, with the time that would have given more.
fn scarcity(point: &Point, time_limit: Duration) -> Option<String> {
    let &Point { samples, lost, reliable, .. } = point;
    if samples == 0 && !reliable && lost > 0 {
        return Some(format!("all {lost} repetitions lost data: there is no time"));
    }
    if samples >= FEWEST {
        return None;
    }
    // Half as much again, because repetitions do not take all of the time.
    let factor = (1.5 * FEWEST as f64 / samples.max(1) as f64).ceil();
    let seconds = (time_limit.as_secs_f64() * factor).ceil();
    let found = match samples {
        0 => "no repetition was complete".to_owned(),
        1 => "1 repetition only, too few for an interval".to_owned(),
        n => format!("{n} repetitions only, too few for an interval"),
    };
    Some(format!("{found}: raise --time to {seconds}s"))
}

/// Returns the remark on the choice that served the point, where it may not be the expected one.
fn choice(point: &Point) -> Option<String> {
    let algorithm = point.algorithm.as_deref()?;
    match point.variant.as_str() {
        "polycast" if algorithm == "stock" => Some("left to the MPI".to_owned()),
        "polycast" => None,
        forced if forced != algorithm => Some(format!("served by {algorithm} in its place")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(variant: &str, algorithm: &str, samples: usize) -> Point {
        let algorithm = Some(algorithm.to_owned());
        Point { variant: variant.into(), algorithm, samples, nodes: 4, reliable: true, ..Point::default() }
    }

    fn remark(point: &Point) -> Option<String> {
        of(point, Duration::from_secs(2))
    }

    #[test]
    fn few_samples_name_the_time_that_gives_more() {
        assert_eq!(remark(&point("stock", "stock", 6)), None);
        let one = remark(&point("stock", "stock", 1)).unwrap();
        assert_eq!(one, "1 repetition only, too few for an interval: raise --time to 18s");
        assert!(
            remark(&point("stock", "stock", 0)).unwrap().starts_with("no repetition was complete: raise")
        );
        assert!(remark(&point("stock", "stock", 5)).unwrap().ends_with("raise --time to 4s"));
        let blast = Point { reliable: false, lost: 7, ..point("blast", "", 0) };
        assert!(remark(&blast).unwrap().starts_with("all 7 repetitions lost data"));
    }

    #[test]
    fn what_is_left_to_the_mpi_is_said() {
        assert_eq!(remark(&point("polycast", "stock", 9)).unwrap(), "left to the MPI");
        assert_eq!(remark(&point("polycast", "multicast-pull", 9)), None);
        assert_eq!(remark(&point("chain:segment=8KiB", "chain:segment=8KiB", 9)), None);
        let fallen = remark(&point("multicast-pull", "binary:segment=8KiB", 9)).unwrap();
        assert_eq!(fallen, "served by binary:segment=8KiB in its place");
    }
}
