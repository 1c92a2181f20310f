//! The number of nodes from which on an algorithm is predicted to be ahead: by the user's own
//! numbers, nodes on one switch with a rank each. Of broadcasts it is multicast, of the others what
//! is the fastest of the most nodes.

use std::collections::btree_map::{BTreeMap, Entry};

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Collective;
use polycast_core::cost::{Comparison, Predicted};
use polycast_core::units::Bytes;
use serde::Serialize;

use crate::terminal::{nanoseconds, size, table};

/// The crossover of one size.
#[derive(Serialize)]
pub struct Crossover {
    bytes: u64,
    /// The number of nodes from which on the first side is ahead; `None` if something else is ahead
    /// up to the most nodes.
    from_nodes: Option<u32>,
    /// The number of nodes at which the times below are predicted: where multicast gets ahead, or
    /// else the most nodes.
    nodes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    multicast: Option<Side>,
    /// The fastest algorithm at the most nodes, where the collective has no multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    fastest: Option<Side>,
    other: Option<Side>,
}

impl Crossover {
    /// True if there are two sides to compare.
    pub fn has_both(&self) -> bool {
        self.first().is_some() && self.other.is_some()
    }

    fn first(&self) -> Option<&Side> {
        self.multicast.as_ref().or(self.fastest.as_ref())
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

/// The fastest multicast, or with a leader the fastest of its segments, and the fastest of the others.
fn sides(comparison: &Comparison, leader: Option<Algorithm>) -> [Option<&Predicted>; 2] {
    let is_first = |algorithm: &Algorithm| match leader {
        Some(leader) => algorithm.whole() == leader,
        None => algorithm.multicast().is_some(),
    };
    // The fastest come first.
    let side = |wanted| comparison.predicted.iter().find(|one| is_first(&one.algorithm) == wanted);
    [side(true), side(false)]
}

/// Up to so many nodes; `compare` predicts all sizes for some nodes. Who is ahead once stays so: twice as many nodes are tried each
/// time, and those between the last two by halves.
pub fn find<E>(
    collective: Collective,
    sizes: &[Bytes],
    most: u32,
    mut compare: impl FnMut(u32) -> Result<Vec<Comparison>, E>,
) -> Result<Vec<Crossover>, E> {
    let mut known = BTreeMap::new();
    let mut of_nodes = |nodes: u32, index: usize| -> Result<Comparison, E> {
        let all: &Vec<Comparison> = match known.entry(nodes) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(place) => place.insert(compare(nodes)?),
        };
        Ok(all[index].clone())
    };
    let mut found = Vec::new();
    for (index, bytes) in sizes.iter().enumerate() {
        let leader = match collective {
            Collective::Broadcast => None,
            _ => of_nodes(most, index)?.predicted.first().map(|fastest| fastest.algorithm.whole()),
        };
        let mut at = |nodes: u32| -> Result<(bool, Crossover), E> {
            let comparison = of_nodes(nodes, index)?;
            let both = sides(&comparison, leader);
            let is_ahead = matches!(both, [Some(first), Some(other)] if first.time < other.time);
            let [first, other] = both.map(|side| side.map(Side::of));
            let (multicast, fastest) = if leader.is_none() { (first, None) } else { (None, first) };
            Ok((is_ahead, Crossover { bytes: bytes.0, from_nodes: None, nodes, multicast, fastest, other }))
        };
        let (mut behind, mut ahead) = (1, 2);
        let (mut is_there, mut told) = at(ahead)?;
        while !is_there && ahead < most {
            (behind, ahead) = (ahead, (ahead * 2).min(most));
            (is_there, told) = at(ahead)?;
        }
        while is_there && ahead - behind > 1 {
            let middle = behind.midpoint(ahead);
            match at(middle)? {
                (true, crossover) => (ahead, told) = (middle, crossover),
                (false, _) => behind = middle,
            }
        }
        found.push(Crossover { from_nodes: is_there.then_some(ahead), ..told });
    }
    Ok(found)
}

/// A row for each size.
pub fn text(collective: Collective, found: &[Crossover], most: u32) -> String {
    let side = |side: Option<&Side>| {
        side.map_or([String::new(), String::new()], |side| {
            [side.algorithm.clone(), nanoseconds(side.time_us * 1e3)]
        })
    };
    let rows = found.iter().map(|crossover| {
        let from = match crossover.from_nodes {
            Some(nodes) => nodes.to_string(),
            None if crossover.has_both() => format!("not up to {most}"),
            None => "no other".to_owned(),
        };
        let [first, its_time] = side(crossover.first());
        let [other, other_time] = side(crossover.other.as_ref());
        vec![size(crossover.bytes), from, first, its_time, other, other_time]
    });
    let first = match collective {
        Collective::Broadcast => "MULTICAST".to_owned(),
        _ => format!("FASTEST OF {most}"),
    };
    let header = ["BYTES", "AHEAD FROM NODES", &first, "TIME", "BEST OTHER", "TIME"];
    format!("{collective}\n\n{}", table(header, rows.collect(), 2))
}

#[cfg(test)]
mod tests {
    use polycast_core::algorithm::Registry;
    use polycast_core::units::Nanos;

    use super::*;

    /// Multicast, or a ring, takes 100, the other one 10 for each node.
    fn compare(collective: Collective, names: [&str; 2], nodes: u32) -> Result<Vec<Comparison>, ()> {
        let one = |name: &str, time| Predicted {
            algorithm: Registry::BUILT_IN.read(collective, name).unwrap(),
            time: Nanos(time),
            cost: None,
        };
        let mut predicted = vec![one(names[0], 100), one(names[1], u64::from(nodes) * 10)];
        predicted.sort_by_key(|one| one.time);
        Ok(vec![Comparison { bytes: Bytes(8), predicted }])
    }

    #[test]
    fn the_first_number_of_nodes_is_found() {
        let broadcast = |nodes| compare(Collective::Broadcast, ["multicast-pull", "binomial"], nodes);
        for (most, from, nodes) in
            [(500, Some(11), 11), (12, Some(11), 11), (11, Some(11), 11), (10, None, 10)]
        {
            let found = find(Collective::Broadcast, &[Bytes(8)], most, broadcast).unwrap();
            assert_eq!((found[0].from_nodes, found[0].nodes), (from, nodes), "up to {most}");
        }
        let found = find(Collective::Broadcast, &[Bytes(8)], 10, broadcast).unwrap();
        assert!(text(Collective::Broadcast, &found, 10).contains("not up to 10"));
    }

    #[test]
    fn without_multicast_it_is_told_of_the_fastest_of_the_most_nodes() {
        let allgather = |nodes| compare(Collective::Allgather, ["ring:segment=4KiB", "bruck"], nodes);
        for (most, from, first) in [(500, 11, "ring:segment=4KiB"), (9, 2, "bruck")] {
            let found = find(Collective::Allgather, &[Bytes(8)], most, allgather).unwrap();
            assert_eq!(found[0].from_nodes, Some(from), "up to {most}");
            assert_eq!(found[0].first().unwrap().algorithm, first);
            assert!(text(Collective::Allgather, &found, most).contains(&format!("FASTEST OF {most}")));
        }
    }
}
