//! Collectives other than the broadcast: their messages are followed one by one.

use polycast_core::algorithm::{Algorithm, Registry, SEGMENTS};
use polycast_core::collective::Collective;
use polycast_core::cost::{Comparison, MAX_STEPS, Predicted, Predictor};
use polycast_core::units::Bytes;

use crate::bench::variant;

/// Into more segments no message is cut: to follow them takes long.
const MAX_SEGMENTS: u64 = 64;

/// The algorithms of `list`, else all, for all sizes, each as it is given, or, where it cuts and no segment is given, whole or with
/// the best segment size.
pub fn compare(
    predictor: &mut Predictor,
    collective: Collective,
    list: Option<&str>,
    sizes: &[Bytes],
) -> Result<Vec<Comparison>, Box<dyn std::error::Error>> {
    let algorithms = match list {
        Some(list) => {
            let read = |item: String| Registry::BUILT_IN.read(collective, &item);
            variant::split(list).into_iter().map(read).collect::<Result<_, _>>()?
        }
        None => Registry::BUILT_IN.compared(collective),
    };
    // A barrier has no bytes.
    let sizes = if collective == Collective::Barrier { &[Bytes(0)] } else { sizes };
    let mut comparisons = Vec::new();
    for &bytes in sizes {
        let mut predicted = Vec::new();
        for algorithm in &algorithms {
            let tried = tried(algorithm, bytes).into_iter();
            let times = tried
                .filter_map(|algorithm| Some((predictor.follow(&algorithm, collective, bytes)?, algorithm)));
            let (time, best) = times.min_by_key(|(time, _)| *time).ok_or_else(|| {
                let ranks = predictor.network().ranks();
                format!("{algorithm} of {bytes} on {ranks} ranks: expected at most {MAX_STEPS} steps in all, which can be followed")
            })?;
            predicted.push(Predicted { algorithm: best, time, cost: None });
        }
        predicted.sort_by_key(|predicted| predicted.time);
        comparisons.push(Comparison { bytes, predicted });
    }
    Ok(comparisons)
}

fn tried(algorithm: &Algorithm, bytes: Bytes) -> Vec<Algorithm> {
    let cuts = algorithm.entry.all_parameters().any(|parameter| parameter.name == "segment");
    let segments =
        SEGMENTS.into_iter().filter(|segment| (2..=MAX_SEGMENTS).contains(&bytes.0.div_ceil(*segment)));
    let cut = segments.filter(|_| cuts && algorithm.segment.is_none());
    let cut = cut.map(|segment| Algorithm { segment: std::num::NonZeroU64::new(segment), ..*algorithm });
    [*algorithm].into_iter().chain(cut).collect()
}
