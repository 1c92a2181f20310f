//! From how many nodes on multicast is predicted to be ahead: by the user's own numbers, nodes on one switch with a rank each.

use std::collections::btree_map::{BTreeMap, Entry};

use polycast_core::cost::{Comparison, Predicted};
use polycast_core::units::Bytes;
use serde::Serialize;

use crate::terminal::{nanoseconds, size, table};

/// Of one size.
#[derive(Serialize)]
pub struct Crossover {
    bytes: u64,
    /// `None`: up to the most nodes something else is ahead.
    from_nodes: Option<u32>,
    /// There, or at the most nodes.
    nodes: u32,
    multicast: Option<Side>,
    other: Option<Side>,
}

impl Crossover {
    /// There are two to compare.
    pub fn has_both(&self) -> bool {
        self.multicast.is_some() && self.other.is_some()
    }
}

#[derive(Serialize)]
struct Side {
    algorithm: String,
    time_us: f64,
}

impl Side {
    fn of(predicted: &Predicted) -> Side {
        Side { algorithm: predicted.algorithm.to_string(), time_us: predicted.time.0 as f64 / 1e3 }
    }
}

/// The fastest multicast, and the fastest of the others.
fn sides(comparison: &Comparison) -> [Option<&Predicted>; 2] {
    // The fastest come first.
    let first = |is_multicast| {
        comparison.predicted.iter().find(|one| one.algorithm.multicast().is_some() == is_multicast)
    };
    [first(true), first(false)]
}

fn is_ahead(comparison: &Comparison) -> bool {
    matches!(sides(comparison), [Some(multicast), Some(other)] if multicast.time < other.time)
}

/// Up to so many nodes; `compare` predicts all sizes for some nodes. Who is ahead once stays so: twice as many nodes are tried each
/// time, and those between the last two by halves.
pub fn find<E>(
    sizes: &[Bytes],
    most: u32,
    mut compare: impl FnMut(u32) -> Result<Vec<Comparison>, E>,
) -> Result<Vec<Crossover>, E> {
    let mut known = BTreeMap::new();
    let mut at = |nodes: u32, index: usize| -> Result<(bool, Crossover), E> {
        let of_nodes: &Vec<Comparison> = match known.entry(nodes) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(place) => place.insert(compare(nodes)?),
        };
        let comparison = &of_nodes[index];
        let [multicast, other] = sides(comparison).map(|side| side.map(Side::of));
        let bytes = sizes[index].0;
        Ok((is_ahead(comparison), Crossover { bytes, from_nodes: None, nodes, multicast, other }))
    };
    let mut found = Vec::new();
    for index in 0..sizes.len() {
        let (mut behind, mut ahead) = (1, 2);
        let (mut is_there, mut told) = at(ahead, index)?;
        while !is_there && ahead < most {
            (behind, ahead) = (ahead, (ahead * 2).min(most));
            (is_there, told) = at(ahead, index)?;
        }
        while is_there && ahead - behind > 1 {
            let middle = behind.midpoint(ahead);
            match at(middle, index)? {
                (true, crossover) => (ahead, told) = (middle, crossover),
                (false, _) => behind = middle,
            }
        }
        found.push(Crossover { from_nodes: is_there.then_some(ahead), ..told });
    }
    Ok(found)
}

/// A row for each size.
pub fn text(found: &[Crossover], most: u32) -> String {
    let side = |side: &Option<Side>| {
        side.as_ref().map_or([String::new(), String::new()], |side| {
            [side.algorithm.clone(), nanoseconds(side.time_us * 1e3)]
        })
    };
    let rows = found.iter().map(|crossover| {
        let from = crossover.from_nodes.map_or(format!("not up to {most}"), |nodes| nodes.to_string());
        let [multicast, its_time] = side(&crossover.multicast);
        let [other, other_time] = side(&crossover.other);
        vec![size(crossover.bytes), from, multicast, its_time, other, other_time]
    });
    table(["BYTES", "AHEAD FROM NODES", "MULTICAST", "TIME", "BEST OTHER", "TIME"], rows.collect(), 2)
}

#[cfg(test)]
mod tests {
    use polycast_core::algorithm::Algorithm;
    use polycast_core::units::Nanos;

    use super::*;

    /// Multicast takes 100, a tree 10 for each node.
    fn compare(nodes: u32) -> Result<Vec<Comparison>, ()> {
        let one = |name: &str, time| Predicted {
            algorithm: name.parse::<Algorithm>().unwrap(),
            time: Nanos(time),
            cost: None,
        };
        let mut predicted = vec![one("multicast-pull", 100), one("binomial", u64::from(nodes) * 10)];
        predicted.sort_by_key(|one| one.time);
        Ok(vec![Comparison { bytes: Bytes(8), predicted }])
    }

    #[test]
    fn the_first_number_of_nodes_is_found() {
        for (most, from, nodes) in
            [(500, Some(11), 11), (12, Some(11), 11), (11, Some(11), 11), (10, None, 10)]
        {
            let found = find(&[Bytes(8)], most, compare).unwrap();
            assert_eq!((found[0].from_nodes, found[0].nodes), (from, nodes), "up to {most}");
        }
        assert!(text(&find(&[Bytes(8)], 10, compare).unwrap(), 10).contains("not up to 10"));
    }
}
