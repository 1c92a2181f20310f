use std::num::NonZeroU64;

use super::mixed;
use crate::algorithm::{Algorithm, Registry, SEGMENTS};
use crate::policy::{Capabilities, Choice, Collective, CommunicatorShape};

/// The time of a call, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The median.
    pub median_us: f64,
    /// The ends of its 95 % interval; the same as the median where there are too few samples for one.
    pub low_us: f64,
    /// Its upper end.
    pub high_us: f64,
    /// How many repetitions it rests on.
    pub samples: usize,
}

/// How long each way is measured, in units of a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effort(pub u32);

/// After this many units nothing more is learnt that matters.
const MAX_EFFORT: u32 = 8;
/// A way that takes so many times as long as the best one is out with few samples, too.
pub(super) const HOPELESS: f64 = 3.0;
/// Segments next to those of a way are tried if it takes at most so many times as long as the best one.
const PROMISING: f64 = 1.3;
/// Samples from which on an interval says something.
pub(super) const LEAST_SAMPLES: usize = 6;

/// What uses the memory of a node, with the trees of nodes that carry most.
const SHARING: [&str; 4] =
    ["cells", "two-level:between=chain", "two-level:between=binary", "two-level:between=binomial"];

/// What may serve a collective on communicators of this shape, stock first; where nodes have several ranks, what uses their memory; each algorithm that is compared where nobody says which, and
/// where it can be cut, in few and in many segments, whose neighbours the race tries; and the forms of multicast, if the network carries it.
pub fn candidates(
    collective: Collective,
    shape: CommunicatorShape,
    bytes: u64,
    there: Capabilities,
) -> Vec<Choice> {
    let power = |size: u64| if size == 0 { 0 } else { 1 << size.ilog2() };
    let [first, last] = [SEGMENTS[0], SEGMENTS[SEGMENTS.len() - 1]];
    let segments = [power(bytes / 64), power(bytes / 4)].map(|size: u64| size.clamp(first, last));
    let mut found = vec![Choice::Stock];
    let mut add = |choice: Choice| {
        if there.has(choice.needs()) && choice.suits(shape) && !found.contains(&choice) {
            found.push(choice);
        }
    };
    if shape.ranks_per_node > 1 {
        for name in SHARING {
            let Ok(choice) = Choice::read(collective, name) else { continue };
            add(choice);
            let cut = segments.into_iter().filter(|size| *size < bytes && name.starts_with("two"));
            cut.filter_map(|segment| with_segment(choice, segment)).for_each(&mut add);
        }
    }
    for algorithm in Registry::BUILT_IN.compared(collective) {
        add(Choice::Algorithm(algorithm));
        for segment in segments.into_iter().filter(|size| *size < bytes) {
            with_segment(Choice::Algorithm(algorithm), segment).into_iter().for_each(&mut add);
        }
    }
    found
}

/// Ways to serve calls of one size, held against each other.
#[derive(Clone, Debug)]
pub struct Race {
    bytes: u64,
    ways: Vec<Way>,
    effort: Effort,
    /// All are measured for as long as any, for comparison.
    is_exhaustive: bool,
}

#[derive(Clone, Debug)]
struct Way {
    choice: Choice,
    known: Option<Measured>,
    /// What it was measured for.
    effort: Effort,
    is_out: bool,
}

/// What a race came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What is best, or stock where nothing is faster than it beyond the intervals.
    pub best: Choice,
    /// Its time, if there is one.
    pub time: Option<Measured>,
    /// Stock's.
    pub stock: Option<Measured>,
    /// The best one besides.
    pub second: Option<(Choice, Measured)>,
    /// Whether the intervals of the best two have nothing in common.
    pub separates: bool,
    /// Ways that were measured.
    pub measured: usize,
}

impl Race {
    /// Between these, which may be cut if they send messages of `bytes`.
    pub fn new(candidates: Vec<Choice>, bytes: u64) -> Race {
        let way = |choice| Way { choice, known: None, effort: Effort(0), is_out: false };
        Race {
            bytes,
            ways: candidates.into_iter().map(way).collect(),
            effort: Effort(1),
            is_exhaustive: false,
        }
    }

    /// All of them in segments of every size, and nobody leaves: what a race is to be held against.
    pub fn exhaustive(candidates: Vec<Choice>, bytes: u64) -> Race {
        let mut all = candidates.clone();
        for choice in candidates {
            for segment in SEGMENTS.into_iter().take_while(|size| *size < bytes) {
                let cut = with_segment(choice, segment);
                all.extend(cut.filter(|cut| !all.contains(cut)));
            }
        }
        Race { is_exhaustive: true, effort: Effort(MAX_EFFORT), ..Race::new(all, bytes) }
    }

    /// Who is to be measured next, and for how long; `None`: it is over.
    pub fn next(&self) -> Option<(Vec<Choice>, Effort)> {
        let due = |way: &&Way| !way.is_out && way.effort < self.effort;
        let choices: Vec<Choice> = self.ways.iter().filter(due).map(|way| way.choice).collect();
        (!choices.is_empty()).then_some((choices, self.effort))
    }

    /// What was measured of those that [`Race::next`] named; a way of which there is nothing is out.
    pub fn took(&mut self, times: &[(Choice, Option<Measured>)]) {
        self.learn(times);
        if self.is_exhaustive || self.next().is_some() {
            return;
        }
        self.drop_the_slow();
        let is_new = self.try_neighbours();
        let running = self.ways.iter().filter(|way| !way.is_out).count();
        if is_new {
            return;
        }
        if running > 1 && self.effort.0 < MAX_EFFORT {
            self.effort = Effort(2 * self.effort.0);
        }
    }

    /// The same, and no conclusion is drawn from it.
    pub(super) fn learn(&mut self, times: &[(Choice, Option<Measured>)]) {
        for (choice, time) in times {
            if let Some(way) = self.ways.iter_mut().find(|way| way.choice == *choice) {
                (way.known, way.effort) = (*time, self.effort);
                way.is_out = time.is_none();
            }
        }
    }

    fn best(&self) -> Option<(Choice, Measured)> {
        let known = self.ways.iter().filter_map(|way| Some((way.choice, way.known?)));
        known.min_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us))
    }

    fn drop_the_slow(&mut self) {
        let Some((best, time)) = self.best() else { return };
        for way in self.ways.iter_mut().filter(|way| way.choice != best) {
            let Some(known) = way.known else { continue };
            let is_sure = known.samples >= LEAST_SAMPLES && time.samples >= LEAST_SAMPLES;
            way.is_out |= is_sure && known.low_us > time.high_us;
            way.is_out |= known.median_us > HOPELESS * time.median_us;
        }
    }

    /// Segments of half and twice the size of those that may win. They begin with little effort, as all did.
    fn try_neighbours(&mut self) -> bool {
        let Some((_, best)) = self.best() else { return false };
        let mut new: Vec<Choice> = Vec::new();
        for way in self.ways.iter().filter(|way| !way.is_out) {
            let (Choice::Algorithm(algorithm), Some(known)) = (way.choice, way.known) else { continue };
            let Some(segment) = algorithm.segment else { continue };
            if known.median_us > PROMISING * best.median_us || !self.is_best_of_its_kind(way) {
                continue;
            }
            for size in [segment.get() / 2, segment.get() * 2] {
                let is_size = SEGMENTS.contains(&size) && size < self.bytes;
                let cut = with_segment(way.choice, size).filter(|_| is_size);
                new.extend(cut.filter(|cut| self.ways.iter().all(|way| way.choice != *cut)));
            }
            // Of what is handed on within nodes meanwhile, all is tried first; less than a quarter gains nothing.
            if algorithm.given("overlap").is_none() {
                let [_, half, quarter] = mixed::overlaps(segment.get());
                let cut = [half, quarter].into_iter().filter_map(|overlap| with_overlap(way.choice, overlap));
                new.extend(cut.filter(|cut| self.ways.iter().all(|way| way.choice != *cut)));
            }
        }
        let is_new = !new.is_empty();
        self.ways.extend(new.into_iter().map(|choice| Way {
            choice,
            known: None,
            effort: Effort(0),
            is_out: false,
        }));
        is_new
    }

    /// Whether no other segment size of its algorithm is faster so far.
    fn is_best_of_its_kind(&self, way: &Way) -> bool {
        let whole = |choice| match choice {
            Choice::Algorithm(algorithm) => Choice::Algorithm(algorithm.whole()),
            Choice::Stock => Choice::Stock,
        };
        let time = |way: &Way| way.known.map_or(f64::INFINITY, |known| known.median_us);
        self.ways.iter().all(|other| whole(other.choice) != whole(way.choice) || time(other) >= time(way))
    }

    /// What is known now.
    pub fn found(&self) -> Found {
        let known = || self.ways.iter().filter_map(|way| Some((way.choice, way.known?)));
        let time_of = |choice| known().find(|(of, _)| *of == choice).map(|(_, time)| time);
        let stock = time_of(Choice::Stock);
        // Nobody is harmed by the MPI's own way.
        let is_worth = |time: &Measured| {
            let is_sure = |stock: Measured| time.samples >= LEAST_SAMPLES && time.high_us < stock.low_us;
            stock.is_none_or(|stock| is_sure(stock) || time.median_us * HOPELESS < stock.median_us)
        };
        let best = self.best().filter(|(_, time)| is_worth(time)).map_or(Choice::Stock, |(choice, _)| choice);
        let time = time_of(best);
        let second = known()
            .filter(|(choice, _)| *choice != best)
            .min_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us));
        let are_known = |one: &Measured, other: &Measured| one.samples.min(other.samples) >= LEAST_SAMPLES;
        let separates = time.zip(second).is_some_and(|(time, (_, second))| {
            let is_apart = time.high_us < second.low_us || second.high_us < time.low_us;
            is_apart && are_known(&time, &second)
        });
        Found { best, time, stock, second, separates, measured: known().count() }
    }
}

fn with_segment(choice: Choice, size: u64) -> Option<Choice> {
    match choice {
        Choice::Algorithm(algorithm) if algorithm.entry.has_parameter("segment") => {
            Some(Choice::Algorithm(Algorithm { segment: NonZeroU64::new(size), ..algorithm }))
        }
        _ => None,
    }
}

/// `None` for what has no such parameter.
fn with_overlap(choice: Choice, bytes: u64) -> Option<Choice> {
    let text = match choice {
        Choice::Algorithm(algorithm) if algorithm.entry.has_parameter("overlap") => {
            format!("{choice},overlap={bytes}")
        }
        _ => return None,
    };
    Collective::ALL.into_iter().find_map(|collective| Choice::read(collective, &text).ok())
}

#[cfg(test)]
mod tests;
