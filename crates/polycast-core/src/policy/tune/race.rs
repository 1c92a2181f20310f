use super::levels::Levels;
use super::ways::{self, are_kin, segment_in, whole, with_segment};
use crate::algorithm::Registry;
use crate::policy::{Capabilities, Choice, Collective, CommunicatorShape};

/// The time of a call, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The median.
    pub median_us: f64,
    /// The lower end of its 95 % interval, or of all samples where there are too few for one.
    pub low_us: f64,
    /// The upper end of that interval, or of all samples.
    pub high_us: f64,
    /// Repetitions that the median rests on.
    pub samples: usize,
}

impl Measured {
    /// The fewest samples that have an interval.
    pub const LEAST_SAMPLES: usize = 6;

    pub(super) fn has_interval(&self) -> bool {
        self.samples >= Measured::LEAST_SAMPLES
    }

    /// The time that more samples may show, in µs: few, or such as lie far apart, may be of a bad moment, and no moment makes one too good.
    fn promise_us(&self) -> f64 {
        let is_steady = self.has_interval() && self.high_us <= HOPELESS * self.low_us;
        if is_steady { self.median_us } else { self.low_us }
    }

    /// Whether this takes so much longer than the best that few samples tell.
    fn is_hopeless_beside(&self, best: &Measured) -> bool {
        self.promise_us() > HOPELESS * best.median_us
    }

    /// Whether this is less beyond both intervals, or so much less that few samples tell.
    pub fn is_surely_below(&self, other: &Measured) -> bool {
        let is_apart = self.has_interval() && self.high_us < other.low_us;
        is_apart || other.is_hopeless_beside(self)
    }
}

/// The time for which each way is measured, in units of a short time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effort(pub u32);

/// The most units: more teach nothing that matters; twice that has what is compared exhaustively, four times what stock is in doubt with.
const MAX_EFFORT: u32 = 4;
const EXHAUSTIVE: Effort = Effort(8);
const LAST: Effort = Effort(16);
/// The factor of the best way's time beyond which a way is out with few samples, too.
pub(super) const HOPELESS: f64 = 3.0;
/// Calls of a way in a unit of effort, where it is known how long they take, up to so much effort.
const CALLS: u32 = 3;
const LONG: u32 = 4;
/// Efforts, and the number of fastest ways left after each: of many that are alike it does not matter which is taken.
const LEFT: [(u32, usize); 2] = [(1, 6), (2, 3)];
/// The most algorithms of which other segments are tried, with the first effort and with the second.
const MOST_KINDS: [usize; 2] = [3, 1];
/// The factor of the best way's time up to which segments next to a way's are tried.
const PROMISING: f64 = 1.3;
/// The factor of stock's speed below which a winner is measured once more beside stock alone.
const CONFIRMED: f64 = 2.0;
/// The factor within which ways are as good as each other, once they were measured for so long, or so often.
pub(super) const ALIKE: f64 = 1.03;
const LOOKED_AT: Effort = Effort(2);
const OFTEN: usize = 20;
/// The most effort with which other segments are tried.
const TRIES_OTHERS: Effort = Effort(2);
/// Bytes of the longest message that comes in few parts.
pub(super) const SHORT: u64 = 8 << 10;

/// The ways that may serve a collective on such communicators, stock first; where nodes have several ranks, those that use their memory; each algorithm that is compared
/// where nobody says which, and where it can be cut, in few and in many segments, whose neighbours the race tries; and the forms of multicast, if the network carries it.
pub fn candidates(
    collective: Collective,
    shape: CommunicatorShape,
    bytes: u64,
    there: Capabilities,
) -> Vec<Choice> {
    // Of a short message two parts are as many as may be worth it.
    let parts = if bytes <= SHORT { [64, 4, 2] } else { [64, 4, 4] };
    let segments = parts.map(|parts| segment_in(parts, bytes));
    let mut found = vec![Choice::Stock];
    let mut add = |choice: Choice| {
        if there.has(choice.needs()) && choice.suits(shape) && !found.contains(&choice) {
            found.push(choice);
        }
    };
    for (raced, algorithm) in Registry::BUILT_IN.raced(collective) {
        let is_of_several = algorithm.entry.shares_memory();
        if shape.nodes < raced.least_nodes || is_of_several && shape.ranks_per_node < 2 {
            continue;
        }
        let choice = Choice::Algorithm(algorithm);
        add(choice);
        if algorithm.entry.is_on_two_levels() {
            let cut = segments.into_iter().filter(|size| *size < bytes);
            cut.filter_map(|segment| with_segment(choice, segment)).for_each(&mut add);
        }
    }
    for algorithm in Registry::BUILT_IN.compared_on(collective, shape.switches) {
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
    ranks: u32,
    bytes: u64,
    ways: Vec<Way>,
    effort: Effort,
    /// True if all ways are measured for as long as any, for comparison.
    is_exhaustive: bool,
    /// True if no way enters later.
    is_closed: bool,
    /// True once ways have entered with as little effort as those that were there first.
    has_entered: bool,
    /// True once the best way has been held against stock alone.
    is_confirmed: bool,
    /// True if the best way and stock alone are left.
    is_duel: bool,
    /// The ways on two levels that filters choose among.
    levels: Vec<Levels>,
}

#[derive(Clone, Debug)]
struct Way {
    choice: Choice,
    known: Option<Measured>,
    /// The effort with which the way was measured.
    effort: Effort,
    is_out: bool,
}

impl Way {
    fn time_us(&self) -> f64 {
        self.known.map_or(f64::INFINITY, |known| known.median_us)
    }
}

/// The outcome of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The best way, or stock where nothing is faster than it beyond the intervals.
    pub best: Choice,
    /// The best way's time, if there is one.
    pub time: Option<Measured>,
    /// Stock's time, if there is one.
    pub stock: Option<Measured>,
    /// The fastest way besides the best.
    pub second: Option<(Choice, Measured)>,
    /// Whether the intervals of the best two have nothing in common.
    pub separates: bool,
    /// Ways that were measured.
    pub measured: usize,
    /// All ways that were measured with their times, the fastest first.
    pub all: Vec<(Choice, Measured)>,
}

impl Race {
    /// A race between these ways, each once, on `ranks` ranks; those with messages of `bytes` may be cut.
    pub fn new(candidates: Vec<Choice>, ranks: u32, bytes: u64) -> Race {
        let mut race = Race {
            ranks,
            bytes,
            ways: Vec::new(),
            effort: Effort(1),
            is_exhaustive: false,
            is_closed: false,
            has_entered: false,
            is_confirmed: false,
            is_duel: false,
            levels: Vec::new(),
        };
        race.add(candidates);
        race
    }

    /// A race between these ways alone, just as they are.
    pub fn among(candidates: Vec<Choice>, ranks: u32, bytes: u64) -> Race {
        Race { is_closed: true, ..Race::new(candidates, ranks, bytes) }
    }

    /// The race without a last comparison: stock is compared with the winner later anyway.
    pub fn without_confirmation(self) -> Race {
        Race { is_confirmed: true, ..self }
    }

    /// The race with the ways on two levels that the filters of [`mixed`](super::mixed) leave, in place of a few segments.
    pub fn on_levels(mut self, levels: Vec<Levels>) -> Race {
        let is_cut = |way: &Way| whole(way.choice) != way.choice;
        self.ways.retain(|way| !(is_cut(way) && levels.iter().any(|levels| levels.is_of(way.choice))));
        let of_those = levels.iter().filter(|levels| self.has(levels.whole));
        self.add(of_those.filter_map(Levels::without).collect());
        self.levels = levels;
        self
    }

    /// A race of all ways with every segment, overlap, buffer and radix, which none leaves: to hold a race against.
    pub fn exhaustive(candidates: Vec<Choice>, ranks: u32, bytes: u64) -> Race {
        let mut race = Race { is_exhaustive: true, ..Race::new(candidates.clone(), ranks, bytes) };
        race.add(candidates.into_iter().flat_map(|choice| ways::all(choice, ranks, bytes)).collect());
        race
    }

    /// The ways that are to be measured next, and for how long; `None`: the race is over.
    pub fn next(&self) -> Option<(Vec<Choice>, Effort)> {
        let due = |way: &&Way| !way.is_out && way.effort < self.effort;
        let choices: Vec<Choice> = self.ways.iter().filter(due).map(|way| way.choice).collect();
        (!choices.is_empty()).then_some((choices, self.effort))
    }

    /// The least time for each of these, in µs, so that an interval says something: calls of some take so long.
    pub fn least_us(&self, choices: &[Choice], effort: Effort) -> f64 {
        let known = self.ways.iter().filter(|way| choices.contains(&way.choice)).filter_map(|way| way.known);
        let all_us: f64 = known.map(|known| known.median_us).sum();
        let long = if self.is_exhaustive { LONG } else { 2 * LONG };
        // What decides about stock has its time: of few calls of two, 3 % are soon a chance.
        let short = if self.is_duel { MAX_EFFORT } else { 1 };
        f64::from(CALLS * effort.0.clamp(short, long)) * all_us / choices.len().max(1) as f64
    }

    /// Takes the times of the ways that [`Race::next`] named; a way without a time is out.
    pub fn took(&mut self, times: &[(Choice, Option<Measured>)]) {
        self.learn(times);
        if self.is_exhaustive {
            // The first time says how long the second has to be.
            self.effort = EXHAUSTIVE;
            return;
        }
        if self.next().is_some() {
            return;
        }
        self.drop_the_slow();
        self.keep_the_fastest();
        let new = self.levels_next();
        let is_new = match new.is_empty() {
            true => self.effort <= TRIES_OTHERS && !self.is_closed && self.try_neighbours(),
            false => self.add(new),
        };
        let running = self.ways.iter().filter(|way| !way.is_out).count();
        if is_new && !self.has_entered {
            self.has_entered = true;
        } else if self.effort.0 < MAX_EFFORT && (running > 1 || is_new) {
            self.effort = Effort(2 * self.effort.0);
        } else if self.effort.0 == MAX_EFFORT && !is_new {
            self.decide_about_stock(ALIKE, EXHAUSTIVE);
        } else if self.effort == EXHAUSTIVE {
            self.decide_about_stock(PROMISING, LAST);
        }
        if self.next().is_none() {
            self.confirm();
        }
    }

    /// Takes times and draws no conclusion from them.
    pub(super) fn learn(&mut self, times: &[(Choice, Option<Measured>)]) {
        for (choice, time) in times {
            if let Some(way) = self.ways.iter_mut().find(|way| way.choice == *choice) {
                (way.known, way.effort) = (*time, self.effort);
                way.is_out = time.is_none();
            }
        }
    }

    fn best(&self) -> Option<(Choice, Measured)> {
        self.best_of(|_| true)
    }

    fn best_of(&self, is_among: impl Fn(&Way) -> bool) -> Option<(Choice, Measured)> {
        let of = |way: &Way| way.known.filter(|_| is_among(way)).map(|known| (way.choice, known));
        self.ways.iter().filter_map(of).min_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us))
    }

    fn drop_the_slow(&mut self) {
        // Not beside one that is out itself, with fewer samples perhaps.
        let Some((best, time)) = self.best_of(|way| !way.is_out) else { return };
        for way in self.ways.iter_mut().filter(|way| way.choice != best) {
            let Some(known) = way.known else { continue };
            let is_sure = known.has_interval() && time.has_interval();
            // Nothing more is to be learnt of what is as good as the best one.
            let is_known = is_sure && self.effort >= LOOKED_AT || known.samples.min(time.samples) >= OFTEN;
            way.is_out |= is_known && known.median_us <= ALIKE * time.median_us;
            way.is_out |= is_sure && known.low_us > time.high_us;
            way.is_out |= known.is_hopeless_beside(&time);
        }
    }

    /// Measures stock and the best way once more, for longer, where stock stays only because intervals meet, if
    /// the best is more than so many times as fast. Of ways that much faster another one may be the best by then.
    fn decide_about_stock(&mut self, times_as_fast: f64, effort: Effort) {
        let (Some((best, time)), found) = (self.best(), self.found()) else { return };
        let is_worth = found.stock.is_some_and(|stock| stock.median_us > times_as_fast * time.median_us);
        if found.best == Choice::Stock && best != Choice::Stock && is_worth {
            self.duel(best);
            self.effort = effort;
        }
    }

    /// Measures a way that wins by little once more beside stock alone, as it will be called: among
    /// many ways each meets what the others leave in caches and on links, and stock more than others.
    fn confirm(&mut self) {
        let found = self.found();
        let Some((time, stock)) = found.time.zip(found.stock) else { return };
        let is_little = stock.median_us < CONFIRMED * time.median_us;
        // Of two ways all measurements were of them alone.
        let is_known = self.is_confirmed || self.ways.len() == 2 || self.effort >= EXHAUSTIVE;
        if found.best != Choice::Stock && is_little && !is_known {
            self.duel(found.best);
            self.effort = LOOKED_AT;
            (self.is_confirmed, self.is_closed) = (true, true);
        }
    }

    fn duel(&mut self, best: Choice) {
        self.is_duel = true;
        for way in &mut self.ways {
            way.is_out = way.choice != best && way.choice != Choice::Stock;
            way.effort = Effort(0);
        }
    }

    /// Keeps the fastest few for longer measurements, and stock, for who is faster than that counts.
    fn keep_the_fastest(&mut self) {
        let Some((_, left)) = LEFT.into_iter().find(|(effort, _)| *effort == self.effort.0) else { return };
        let time = |way: &Way| way.known.map_or(f64::INFINITY, |known| known.promise_us());
        let mut times: Vec<f64> = self.ways.iter().filter(|way| !way.is_out).map(time).collect();
        times.sort_unstable_by(f64::total_cmp);
        if let Some(limit) = times.get(left - 1) {
            for way in self.ways.iter_mut().filter(|way| way.choice != Choice::Stock) {
                way.is_out |= time(way) > *limit;
            }
        }
    }

    /// Adds ways a step away from those that may win, to begin with little effort, as all did; whether any are new.
    fn try_neighbours(&mut self) -> bool {
        let Some((_, best)) = self.best() else { return false };
        let is_promising = |way: &&Way| {
            // A way that is out, as it is as good as the best one or slower beyond the intervals, may be a step away from a better one.
            let is_near = way.time_us() <= PROMISING * best.median_us;
            is_near && self.is_best(way, |other| whole(other) == whole(way.choice))
        };
        let mut promising: Vec<&Way> = self.ways.iter().filter(is_promising).collect();
        promising.sort_by(|one, other| one.time_us().total_cmp(&other.time_us()));
        promising.truncate(MOST_KINDS[usize::from(self.effort >= LOOKED_AT)]);
        let neighbours = |way: &Way| {
            // Their segments and overlaps are gone through by filters.
            if self.levels.iter().any(|levels| levels.is_of(way.choice)) {
                return ways::smaller_buffers(way.choice, self.bytes);
            }
            let is_best_kin = self.is_best(way, |other| are_kin(other, way.choice));
            ways::neighbours(way.choice, self.ranks, self.bytes, is_best_kin)
        };
        self.add(promising.into_iter().flat_map(neighbours).collect())
    }

    /// Adds the ways that were not there; whether there are such.
    fn add(&mut self, new: Vec<Choice>) -> bool {
        let before = self.ways.len();
        for choice in new {
            if !self.has(choice) {
                self.ways.push(Way { choice, known: None, effort: Effort(0), is_out: false });
            }
        }
        self.ways.len() > before
    }

    fn has(&self, choice: Choice) -> bool {
        self.ways.iter().any(|way| way.choice == choice)
    }

    /// The ways on two levels that are to be measured next.
    fn levels_next(&self) -> Vec<Choice> {
        let Some((_, best)) = self.best() else { return Vec::new() };
        let known = |choice: Choice| self.ways.iter().find(|way| way.choice == choice).map(Way::time_us);
        self.levels
            .iter()
            .flat_map(|levels| levels.next(self.bytes, HOPELESS * best.median_us, &known))
            .collect()
    }

    /// Whether no way that `is_among` names is faster so far.
    fn is_best(&self, way: &Way, is_among: impl Fn(Choice) -> bool) -> bool {
        self.ways.iter().all(|other| !is_among(other.choice) || other.time_us() >= way.time_us())
    }

    /// The algorithms, whatever their segments, that take too many times as long as the best way.
    pub fn hopeless(&self) -> Vec<Choice> {
        let Some((_, best)) = self.best() else { return Vec::new() };
        let is_near = |way: &Way| way.known.is_some_and(|known| !known.is_hopeless_beside(&best));
        let near: Vec<Choice> =
            self.ways.iter().filter(|way| is_near(way)).map(|way| whole(way.choice)).collect();
        let mut hopeless: Vec<Choice> = Vec::new();
        for way in self.ways.iter().filter(|way| way.known.is_some()).map(|way| whole(way.choice)) {
            if !near.contains(&way) && !hopeless.contains(&way) && way != Choice::Stock {
                hopeless.push(way);
            }
        }
        hopeless
    }

    /// The outcome by what is known now.
    pub fn found(&self) -> Found {
        let known = || self.ways.iter().filter_map(|way| Some((way.choice, way.known?)));
        let time_of = |choice| known().find(|(of, _)| *of == choice).map(|(_, time)| time);
        let stock = time_of(Choice::Stock);
        // Nobody is harmed by the MPI's own way.
        let is_worth = |time: &Measured| stock.is_none_or(|stock| time.is_surely_below(&stock));
        let mut all: Vec<(Choice, Measured)> = known().collect();
        all.sort_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us));
        let worth = all.iter().find(|(choice, time)| *choice != Choice::Stock && is_worth(time));
        let best = worth.map_or(Choice::Stock, |(choice, _)| *choice);
        let time = time_of(best);
        let second = all.iter().find(|(choice, _)| *choice != best).copied();
        let separates = time.zip(second).is_some_and(|(time, (_, second))| {
            let is_apart = time.high_us < second.low_us || second.high_us < time.low_us;
            is_apart && time.has_interval() && second.has_interval()
        });
        Found { best, time, stock, second, separates, measured: all.len(), all }
    }
}

#[cfg(test)]
mod tests;
