//! The predictions for each collective. Broadcasts are compared by equations; the messages of the
//! others, and of what goes on two levels, are followed one by one.

use std::sync::Arc;

use polycast_core::algorithm::{Algorithm, Registry, SEGMENTS};
use polycast_core::collective::{Collective, ParseCollectiveError};
use polycast_core::cost::{self, Comparison, MAX_STEPS, Predicted, Predictor};
use polycast_core::policy::Choice;
use polycast_core::units::Bytes;

use crate::operation::Operation;
use crate::usage::wrong;
use crate::variant::{self, Variant};

/// Into more segments no message is cut: to follow them takes long.
const MAX_SEGMENTS: u64 = 64;

/// On more ranks than these two levels are followed only where somebody names them: it takes seconds.
const MOST_ON_LEVELS: u32 = 128;

/// A list of collectives, as an option has them.
pub type Collectives = Arc<[Collective]>;

/// Reads `all`, or names separated by commas; one that is there twice counts once.
pub fn parse(text: &str) -> Result<Collectives, ParseCollectiveError> {
    if text == "all" {
        return Ok(Collective::ALL.into());
    }
    let mut list = Vec::new();
    for name in text.split(',') {
        let one = name.trim().parse()?;
        if !list.contains(&one) {
            list.push(one);
        }
    }
    Ok(list.into())
}

/// The error for a variant of which no time can be predicted.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}: expected an algorithm that sends messages, or a multicast; what the MPI below does is not known"
)]
pub struct NotPredictable(Variant);

/// For each collective the algorithms of a list that serve it.
pub fn asked(
    collectives: &[Collective],
    list: &str,
) -> Result<Vec<Vec<Algorithm>>, Box<dyn std::error::Error>> {
    let operations: Vec<Operation> = collectives.iter().copied().map(Operation::of).collect();
    let algorithm = |variant: Variant| match variant {
        // Cells carry no messages, which is what is predicted.
        Variant::Forced(Choice::Algorithm(algorithm)) if !algorithm.entry.is_on_one_node() => Ok(algorithm),
        other => Err(NotPredictable(other)),
    };
    let lists = variant::parse_for(&operations, list)?.into_iter();
    Ok(lists.map(|list| list.into_iter().map(algorithm).collect()).collect::<Result<_, _>>()?)
}

/// The sizes that make a difference: a barrier has no bytes.
pub fn sizes_of(collective: Collective, sizes: &[Bytes]) -> &[Bytes] {
    if collective == Collective::Barrier { &[Bytes(0)] } else { sizes }
}

/// The algorithms that are compared where the user names none.
fn usual(collective: Collective, predictor: &Predictor) -> Vec<Algorithm> {
    let (ranks, nodes) = (predictor.network().ranks(), predictor.network().nodes());
    let mut usual = Registry::BUILT_IN.compared(collective);
    if (2..ranks).contains(&nodes) && ranks <= MOST_ON_LEVELS {
        usual.extend(Registry::BUILT_IN.on_levels_by_messages(collective));
    }
    usual
}

/// The algorithms of `asked`, else the usual ones, for all sizes, each as it is given, or, where it cuts and no segment is given, whole or with
/// the best segment size.
pub fn compare(
    predictor: &mut Predictor,
    collective: Collective,
    asked: Option<&[Algorithm]>,
    no_multicast: bool,
    sizes: &[Bytes],
) -> Result<Vec<Comparison>, Box<dyn std::error::Error>> {
    let mut algorithms = asked.map_or_else(|| usual(collective, predictor), <[_]>::to_vec);
    algorithms.retain(|algorithm| !no_multicast || algorithm.entry.has_schedules());
    if algorithms.is_empty() {
        return Err(wrong(
            "--no-multicast: expected other algorithms, found multicast alone in --algorithms",
        ));
    }
    let (by_equations, others): (Vec<Algorithm>, _) = algorithms.into_iter().partition(|algorithm| {
        collective == Collective::Broadcast && !algorithm.entry.shares_memory() && algorithm.segment.is_none()
    });
    let mut comparisons = cost::compare(predictor, &by_equations, sizes);
    for Comparison { bytes, predicted } in &mut comparisons {
        for algorithm in &others {
            let tried = tried(algorithm, *bytes).into_iter();
            let times =
                tried.filter_map(|algorithm| Predicted::of_call(predictor, &algorithm, collective, *bytes));
            let best = times.min_by_key(|predicted| predicted.time);
            predicted.push(best.ok_or_else(|| {
                let ranks = predictor.network().ranks();
                wrong(format_args!(
                    "{algorithm} of {bytes} on {ranks} ranks: expected at most {MAX_STEPS} steps in all, which can be followed"
                ))
            })?);
        }
        predicted.sort_by_key(|predicted| predicted.time);
    }
    Ok(comparisons)
}

fn tried(algorithm: &Algorithm, bytes: Bytes) -> Vec<Algorithm> {
    let cuts = algorithm.entry.has_parameter("segment");
    let segments =
        SEGMENTS.into_iter().filter(|segment| (2..=MAX_SEGMENTS).contains(&bytes.0.div_ceil(*segment)));
    let cut = segments.filter(|_| cuts && algorithm.segment.is_none());
    let cut = cut.map(|segment| Algorithm { segment: std::num::NonZeroU64::new(segment), ..*algorithm });
    [*algorithm].into_iter().chain(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_collectives() {
        use Collective::{Allreduce, Broadcast};
        assert_eq!(parse("all").unwrap()[..], Collective::ALL);
        assert_eq!(parse("MPI_Allreduce, bcast,allreduce").unwrap()[..], [Allreduce, Broadcast]);
        assert!(parse("bcast,scan").unwrap_err().to_string().contains("\"scan\", expected one of bcast"));
    }

    #[test]
    fn each_collective_gets_what_serves_it() {
        use Collective::{Allgather, Broadcast};
        let of = |list| asked(&[Broadcast, Allgather], list);
        let lists = of("chain,ring,binary:segment=4KiB,multicast-pull").unwrap();
        let names = |list: &[Algorithm]| list.iter().map(Algorithm::to_string).collect::<Vec<_>>();
        assert_eq!(names(&lists[0]), ["chain", "binary:segment=4KiB", "multicast-pull"]);
        assert_eq!(names(&lists[1]), ["ring"]);
        for other in ["stock", "cells", "ring,stock"] {
            let error = of(other).unwrap_err().to_string();
            assert!(error.contains("expected an algorithm"), "{error}");
        }
    }
}
