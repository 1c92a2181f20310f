//! With which of several MPIs an operation was the fastest.

use super::operation::capitalised;
use super::point::Point;
use crate::terminal::{digits, exact_size, range};

/// A sentence for each operation and size that was measured with several MPIs: the best of each MPI, by its median, against the best of
/// all.
pub fn sentences(points: &[Point]) -> Vec<String> {
    let of_one = |points: &[Point]| sentence(points);
    let is_same = |a: &Point, b: &Point| (&a.collective, a.bytes) == (&b.collective, b.bytes);
    points.chunk_by(is_same).filter_map(of_one).collect()
}

fn sentence(points: &[Point]) -> Option<String> {
    let mut best: Vec<(&Point, f64)> = Vec::new();
    for own in points.chunk_by(|a, b| a.mpi == b.mpi) {
        let timed = own.iter().filter_map(|point| Some((point, point.median_us.filter(|us| *us > 0.0)?)));
        best.extend(timed.filter(|(point, _)| point.reliable).min_by(|a, b| a.1.total_cmp(&b.1)));
    }
    best.sort_by(|a, b| a.1.total_cmp(&b.1));
    let ((first, first_us), others) = best.split_first()?;
    let named = |point: &Point| format!("{} ({})", point.mpi, point.variant);
    let against = |(other, us): &(&Point, f64)| {
        let times = match interval(first, other) {
            Some((low, high)) => format!("{} ({})", digits(us / first_us), range(low, high)),
            None => digits(us / first_us),
        };
        format!("{times} times as fast as with {}", named(other))
    };
    if others.is_empty() {
        return None;
    }
    let name = format!("MPI_{} of {}", capitalised(&first.collective), exact_size(first.bytes));
    let all: Vec<String> = others.iter().map(against).collect();
    Some(format!("{name}: with {} {}", named(first), all.join(", ")))
}

/// Returns the interval of how many times as fast `first` is, from the ends of both 95 % intervals,
/// which hold together with 90 % at least: repetitions of two jobs are no neighbours.
fn interval(first: &Point, other: &Point) -> Option<(f64, f64)> {
    let ends = |point: &Point| point.ci_low_us.zip(point.ci_high_us).filter(|(low, _)| *low > 0.0);
    let ((low, high), (other_low, other_high)) = ends(first).zip(ends(other))?;
    Some((other_low / high, other_high / low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_mpi_against_the_best_of_all() {
        let point = |mpi: &str, variant: &str, bytes, us: Option<f64>| Point {
            collective: "bcast".into(),
            mpi: mpi.into(),
            variant: variant.into(),
            bytes,
            median_us: us,
            ci_low_us: us.map(|us| us * 0.8),
            ci_high_us: us.map(|us| us * 1.25),
            reliable: true,
            ..Point::default()
        };
        let points = [
            point("Open MPI 4.1.4", "stock", 1024, Some(30.0)),
            point("Open MPI 4.1.4", "polycast", 1024, Some(20.0)),
            point("MPICH 4.0.2", "stock", 1024, Some(40.0)),
            point("MPICH 4.0.2", "polycast", 1024, Some(10.0)),
            point("Open MPI 4.1.4", "stock", 4096, Some(30.0)),
            point("MPICH 4.0.2", "stock", 4096, None),
        ];
        let one = "MPI_Bcast of 1KiB: with MPICH 4.0.2 (polycast) 2.00 (1.28–3.12) times as fast as with Open MPI 4.1.4 (polycast)";
        let sentences = sentences(&points);
        assert_eq!(sentences.len(), 1, "of one MPI there is nothing to say: {sentences:?}");
        assert_eq!(sentences[0], one);
    }
}
