//! From how many ranks on a variant is faster than what it is compared with: of a sweep over communicator sizes.

use super::operation::capitalised;
use super::point::Point;
use crate::terminal::exact_size;

/// A sentence for each operation, size and variant that was measured with several numbers of ranks.
pub fn sentences(points: &[Point]) -> Vec<String> {
    let key = |point: &Point| (point.collective.clone(), point.bytes, point.variant.clone());
    let mut keys = Vec::new();
    for point in points.iter().filter(|point| point.variant != point.reference) {
        if !keys.contains(&key(point)) {
            keys.push(key(point));
        }
    }
    let sentence = |of: (String, u64, String)| {
        let mut own: Vec<&Point> = points.iter().filter(|point| key(point) == of).collect();
        own.sort_by_key(|point| point.ranks);
        let (collective, bytes, variant) = of;
        let name = format!("MPI_{} of {}", capitalised(&collective), exact_size(bytes));
        let reference = &own.first()?.reference;
        (own.len() > 1).then(|| format!("{name}: {variant} is {}", words(&own, reference)))
    };
    keys.into_iter().filter_map(sentence).collect()
}

/// Says from how many ranks on the variant is faster than the reference: there and with all more
/// ranks that were measured the interval of the speedup lies above 1.
fn words(own: &[&Point], reference: &str) -> String {
    let is_faster = |point: &&Point| point.speedup_ci_low.is_some_and(|low| low > 1.0);
    let wins = own.iter().rev().take_while(|point| is_faster(point)).count();
    let at = |point: &Point| {
        let hosts = if point.nodes > 1 { format!(" ({} hosts)", point.nodes) } else { String::new() };
        format!("{} ranks{hosts}", point.ranks)
    };
    match own.len() - wins {
        0 => format!("faster than {reference} with any number of ranks measured"),
        first if wins > 0 => format!("faster than {reference} from {} on", at(own[first])),
        _ if own.iter().any(is_faster) => {
            format!("faster than {reference} with some numbers of ranks, but not with the most")
        }
        _ => format!("not shown to be faster than {reference}, with up to {}", at(own[own.len() - 1])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ranks: usize, variant: &str, low: f64) -> Point {
        Point {
            collective: "bcast".into(),
            variant: variant.into(),
            reference: "stock".into(),
            bytes: 65536,
            ranks,
            nodes: ranks,
            speedup_ci_low: Some(low),
            ..Point::default()
        }
    }

    #[test]
    fn from_where_on_it_wins_is_said() {
        let said = |lows: [f64; 3]| {
            let counts = [8, 4, 2].into_iter().zip(lows);
            let points: Vec<Point> = counts
                .flat_map(|(ranks, low)| [point(ranks, "stock", 1.0), point(ranks, "chain", low)])
                .collect();
            sentences(&points).join("\n")
        };
        let name = "MPI_Bcast of 64KiB: chain is";
        assert_eq!(said([2.0, 1.1, 0.5]), format!("{name} faster than stock from 4 ranks (4 hosts) on"));
        assert_eq!(
            said([2.0, 1.1, 1.2]),
            format!("{name} faster than stock with any number of ranks measured")
        );
        assert!(said([0.9, 1.1, 0.5]).ends_with("but not with the most"));
        assert!(
            said([0.9, 0.8, 0.5])
                .ends_with("not shown to be faster than stock, with up to 8 ranks (8 hosts)")
        );
        assert!(sentences(&[point(2, "chain", 2.0)]).is_empty(), "one number of ranks");
    }
}
