use super::Known;
use super::race::{HOPELESS, SHORT};
use super::ways::{are_kin, segment_in, with_segment};
use crate::algorithm::{Algorithm, Registry};
use crate::cost::{Predictor, compare};
use crate::policy::{Choice, Collective};
use crate::units::{Bytes, Nanos};

/// The most steps of schedules that are followed to predict a time, for the ranks wait meanwhile.
const MAX_STEPS: u64 = 50_000;
/// The factor of the best broadcast's predicted time up to which others are tried.
const FAR: u64 = 3;
/// The number of trees that are tried in few segments, too, and the number of those segments.
const IN_FEW: usize = 4;
const FEW: u64 = 4;
/// The most ranks for which trees are predicted with every radix; on more it is the typical one
/// alone, as the ranks wait meanwhile.
const MAX_RADICES: u32 = 64;

/// The ways that may be the fastest on a network of which something is known: stock and what cannot
/// be predicted, then the others, the fastest first. Trees of broadcasts come with the segments and
/// radices that are predicted to be best. All `ways`, where nothing is known.
pub fn promising(
    ways: Vec<Choice>,
    collective: Collective,
    known: Option<&Known>,
    bytes: u64,
) -> Vec<Choice> {
    let Some(mut predictor) = known.map(Known::predictor) else { return ways };
    let (predictable, mut kept): (Vec<Choice>, Vec<Choice>) =
        ways.into_iter().partition(|way| matches!(way, Choice::Algorithm(of) if of.entry.is_of_messages()));
    let predicted = match collective {
        Collective::Broadcast => trees(&mut predictor, bytes),
        _ => followed(&mut predictor, collective, bytes, &predictable),
    };
    kept.extend(predicted);
    kept
}

fn trees(predictor: &mut Predictor, bytes: u64) -> Vec<Choice> {
    let mut all = Registry::BUILT_IN.compared_schedules(Collective::Broadcast);
    let ranks = predictor.network().ranks();
    if ranks <= MAX_RADICES {
        all = all.into_iter().flat_map(|algorithm| algorithm.radices(ranks)).collect();
    }
    let compared = compare(predictor, &all, &[Bytes(bytes)]).remove(0).predicted;
    let limit = compared.first().map_or(0, |best| best.time.0 * FAR);
    let mut found: Vec<Choice> = Vec::new();
    let may_be_near = |algorithm: &Algorithm| bytes <= SHORT && algorithm.entry.is_tried_if_short;
    for one in &compared {
        let choice = Choice::Algorithm(one.algorithm);
        if one.time.0 > limit && !may_be_near(&one.algorithm) {
            continue;
        }
        // The best radix of each; the race tries those beside it.
        if !found.iter().any(|faster| are_kin(*faster, choice)) {
            found.push(choice);
        }
    }
    // What each segment costs a host that is busy with others no prediction knows: the best ones come in few segments, too.
    let few = segment_in(FEW, bytes);
    let is_in_more = |of: &Algorithm| of.segment.is_some_and(|segment| segment.get() < few);
    let cut = found.iter().filter(|way| matches!(way, Choice::Algorithm(of) if is_in_more(of)));
    let in_few: Vec<Choice> = cut.filter_map(|way| with_segment(*way, few)).take(IN_FEW).collect();
    found.extend(in_few);
    found
}

fn followed(predictor: &mut Predictor, collective: Collective, bytes: u64, ways: &[Choice]) -> Vec<Choice> {
    let ranks = u64::from(predictor.network().ranks());
    let mut times: Vec<(Choice, Option<Nanos>)> = Vec::new();
    for way in ways {
        let Choice::Algorithm(algorithm) = way else { continue };
        let messages = algorithm.segment.map_or(1, |segment| bytes.div_ceil(segment.get()));
        // Each rank sends to each in the worst case.
        let is_short = messages * ranks * ranks <= MAX_STEPS;
        let time = is_short.then(|| predictor.follow(algorithm, collective, Bytes(bytes))).flatten();
        times.push((*way, time));
    }
    let best = times.iter().filter_map(|(_, time)| *time).min();
    let is_far = |time: Nanos| best.is_some_and(|best| time.0 as f64 > HOPELESS * best.0 as f64);
    times.retain(|(_, time)| !time.is_some_and(is_far));
    times.sort_by_key(|(_, time)| *time);
    times.into_iter().map(|(way, _)| way).collect()
}

#[cfg(test)]
mod tests {
    use super::super::candidates;
    use super::*;
    use crate::network::Network;
    use crate::policy::{Capabilities, CommunicatorShape};

    fn kept(collective: Collective, mbit: u64, bytes: u64) -> (usize, Vec<String>) {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let network = Network {
            rate: format!("{mbit}mbit").parse().ok(),
            latency: Some(Nanos(50_000)),
            multicast_rate: None,
        };
        let all = candidates(collective, shape, bytes, Capabilities::ALL);
        let kept = promising(all.clone(), collective, Known::assumed(shape, network).as_ref(), bytes);
        (all.len(), kept.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_cannot_win_is_not_tried() {
        let (all, long) = kept(Collective::Broadcast, 50, 256 << 10);
        assert!(long.len() * 3 <= all * 2, "{long:?} of {all}");
        assert_eq!(long[0], "stock");
        assert!(long.iter().any(|way| way.starts_with("chain:segment=")), "{long:?}");
        assert!(long.contains(&"multicast-pull".to_owned()), "it is not predicted");
        assert!(long.iter().any(|way| way.ends_with("segment=64KiB")), "few segments: {long:?}");
        for hopeless in ["flat", "chain", "binomial"] {
            assert!(!long.contains(&hopeless.to_owned()), "{hopeless} in {long:?}");
        }
        let (_, slow) = kept(Collective::Broadcast, 1, 1 << 10);
        assert!(slow.contains(&"binomial".to_owned()), "{slow:?}");
        let (_, short) = kept(Collective::Broadcast, 1000, 8);
        assert!(short.contains(&"binomial".to_owned()) && !short.contains(&"chain".to_owned()), "{short:?}");
    }

    #[test]
    fn each_collective_keeps_what_may_win() {
        for collective in Collective::ALL {
            for bytes in [8, 64 << 10] {
                let (all, kept) =
                    kept(collective, 100, if collective == Collective::Barrier { 0 } else { bytes });
                assert!(kept.len() >= 2 && kept.len() <= all + 8, "{collective}: {kept:?}");
            }
        }
        let (_, kept) = kept(Collective::Allreduce, 100, 64 << 10);
        assert!(!kept.contains(&"flat".to_owned()) && kept.contains(&"ring".to_owned()), "{kept:?}");
    }

    #[test]
    fn where_nothing_is_known_all_are_tried() {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let all = candidates(Collective::Broadcast, shape, 4096, Capabilities::ALL);
        assert_eq!(promising(all.clone(), Collective::Broadcast, None, 4096), all);
    }
}
