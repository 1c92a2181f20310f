use std::collections::VecDeque;

use super::race::ALIKE;
use super::ways::whole;
use super::{Effort, Found, Known, Measured, Race, between, candidates, levels, promising};
use crate::policy::{Capabilities, Choice, Collective, CommunicatorShape};

/// The aim of a search.
pub struct Aim<'a> {
    /// The operation.
    pub collective: Collective,
    /// The shape of the communicators.
    pub shape: CommunicatorShape,
    /// The capabilities of the communicators.
    pub there: Capabilities,
    /// The network, where it is known: what cannot win by it is left out.
    pub known: Option<&'a Known>,
    /// The bytes by which rules count a call of a size.
    pub block: &'a dyn Fn(u64) -> u64,
    /// All ways are measured for as long as any, for comparison.
    pub is_exhaustive: bool,
}

/// A measurement that comes next.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The size.
    pub bytes: u64,
    /// The ways to be measured, by turns.
    pub ways: Vec<Choice>,
    /// The time for each way.
    pub effort: Effort,
    /// The least time for each way, in µs, whatever the effort.
    pub least_us: f64,
}

/// The search for a collective and a shape: a [`Race`] for each size, then for sizes between those that are served best in different ways.
///
/// ```text
///   1KiB ─────────── 64KiB ─────────── 4MiB      the ends first, then what is between: a way that is hopeless at both ends of a
///     1        4       3        5        2       stretch is not tried within it
/// ```
pub struct Search<'a> {
    aim: Aim<'a>,
    todo: Vec<(u64, Option<Vec<Choice>>)>,
    is_refined: bool,
    now: Option<(u64, Race)>,
    /// Outcomes by rising sizes, with what was hopeless there.
    found: Vec<(u64, Found, Vec<Choice>)>,
}

impl<'a> Search<'a> {
    /// A search for these rising sizes. Sizes that are `known` are not measured, and of sizes that
    /// rules cannot tell apart only one is.
    pub fn new(aim: Aim<'a>, sizes: &[u64], known: Vec<(u64, Found)>) -> Search<'a> {
        let mut sizes = sizes.to_vec();
        sizes.dedup_by_key(|bytes| (aim.block)(*bytes));
        let is_new = |bytes: &u64| known.iter().all(|(of, _)| (aim.block)(*of) != (aim.block)(*bytes));
        let todo = ends_first(&sizes).into_iter().filter(is_new).map(|bytes| (bytes, None)).rev().collect();
        let mut found: Vec<_> = known.into_iter().map(|(bytes, found)| (bytes, found, Vec::new())).collect();
        found.sort_by_key(|(bytes, ..)| *bytes);
        Search { aim, todo, is_refined: false, now: None, found }
    }

    /// The measurement that comes next; `None`: the race for a size is over, which
    /// [`Search::finished`] takes, or the search is.
    pub fn task(&mut self) -> Option<Task> {
        loop {
            if let Some((bytes, race)) = &self.now {
                // A race that is over is taken by `finished`.
                let (ways, effort) = race.next()?;
                let least_us = race.least_us(&ways, effort);
                return Some(Task { bytes: *bytes, ways, effort, least_us });
            }
            match self.todo.pop() {
                Some((bytes, among)) => self.now = Some((bytes, self.race(bytes, among))),
                None if self.is_refined => return None,
                None => {
                    self.todo = self.between();
                    self.is_refined = self.todo.is_empty();
                }
            }
        }
    }

    /// Takes the times of the ways that [`Search::task`] named.
    pub fn took(&mut self, times: &[(Choice, Option<Measured>)]) {
        if let Some((_, race)) = &mut self.now {
            race.took(times);
        }
    }

    /// The outcome of the race for a size, if it is over, or if there is no more time for it
    /// (`is_late`).
    pub fn finished(&mut self, is_late: bool) -> Option<(u64, Found)> {
        let (bytes, race) = self.now.take_if(|(_, race)| is_late || race.next().is_none())?;
        let (found, hopeless) = (race.found(), race.hopeless());
        let place = self.found.partition_point(|(of, ..)| *of < bytes);
        self.found.insert(place, (bytes, found.clone(), hopeless));
        Some((bytes, found))
    }

    /// The number of sizes that are known to be left.
    pub fn left(&self) -> usize {
        self.todo.len()
    }

    /// All outcomes, by rising sizes.
    pub fn found(&self) -> impl Iterator<Item = (u64, &Found)> {
        self.found.iter().map(|(bytes, found, _)| (*bytes, found))
    }

    fn race(&self, bytes: u64, among: Option<Vec<Choice>>) -> Race {
        let Aim { collective, shape, there, known, block, is_exhaustive } = self.aim;
        let all = candidates(collective, shape, bytes, there);
        match among {
            Some(among) => Race::among(among, shape.ranks, bytes),
            None if is_exhaustive => Race::exhaustive(all, shape.ranks, bytes),
            None => {
                let mut ways = promising(all, collective, known, block(bytes));
                ways.retain(|way| !self.is_hopeless(bytes, *way));
                ways.extend(self.best_nearby(bytes));
                Race::new(ways, shape.ranks, bytes).on_levels(levels(collective, shape, known, bytes))
            }
        }
    }

    /// Whether a way was hopeless at both ends of the stretch that a size lies in.
    fn is_hopeless(&self, bytes: u64, way: Choice) -> bool {
        let place = self.found.partition_point(|(of, ..)| *of < bytes);
        let ends = place.checked_sub(1).and_then(|below| self.found.get(below..place + 1));
        ends.is_some_and(|ends| ends.iter().all(|(_, _, hopeless)| hopeless.contains(&whole(way))))
    }

    /// The ways that are best at the ends of the stretch that a size lies in, but those with
    /// segments as long as the size.
    fn best_nearby(&self, bytes: u64) -> impl Iterator<Item = Choice> {
        let place = self.found.partition_point(|(of, ..)| *of < bytes);
        let ends = self.found[place.saturating_sub(1)..].iter().take(2);
        let is_cut_in_two = move |way: &Choice| match way {
            Choice::Algorithm(algorithm) => algorithm.segment.is_none_or(|segment| segment.get() < bytes),
            Choice::Stock => false,
        };
        ends.map(|(_, found, _)| found.best).filter(is_cut_in_two)
    }

    /// Sizes between neighbours that are served best in different ways, with these two and stock as the only candidates. What is cut at one end is
    /// tried whole, too: what a segment gains depends on what there is to cut.
    fn between(&self) -> Vec<(u64, Option<Vec<Choice>>)> {
        let pairs = self.found.windows(2).filter(|two| are_different(&two[0].1, &two[1].1));
        let block = self.aim.block;
        let middle = |two: &[(u64, Found, Vec<Choice>)]| {
            let is_new = |bytes: &u64| two.iter().all(|(end, ..)| block(*end) != block(*bytes));
            let bytes = between(two[0].0, two[1].0).filter(is_new)?;
            let mut among = vec![Choice::Stock];
            among.extend(two.iter().flat_map(|(_, found, _)| [found.best, whole(found.best)]));
            Some((bytes, Some(among)))
        };
        pairs.filter_map(middle).collect()
    }
}

/// Whether two neighbours are served best by different algorithms, and neither by that of the other as well.
fn are_different(one: &Found, other: &Found) -> bool {
    let is_as_good = |of: &Found, best: Choice| {
        let time = of.all.iter().find(|(choice, _)| *choice == best).map(|(_, time)| time.median_us);
        time.zip(of.time).is_some_and(|(time_us, best)| time_us <= ALIKE * best.median_us)
    };
    whole(one.best) != whole(other.best) && !is_as_good(one, other.best) && !is_as_good(other, one.best)
}

/// The sizes in another order: the first, the last, and what is between in the same way.
fn ends_first(sizes: &[u64]) -> Vec<u64> {
    let (mut order, mut stretches) = (Vec::new(), VecDeque::<(usize, usize)>::new());
    let Some(last) = sizes.len().checked_sub(1) else { return order };
    order.push(sizes[0]);
    order.extend((last > 0).then(|| sizes[last]));
    stretches.push_back((0, last));
    while let Some((first, last)) = stretches.pop_front() {
        let middle = first.midpoint(last);
        if middle > first {
            order.push(sizes[middle]);
            stretches.extend([(first, middle), (middle, last)]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aim<'a>(collective: Collective, block: &'a dyn Fn(u64) -> u64) -> Aim<'a> {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        let there = Capabilities::PRIVATE;
        Aim { collective, shape, there, known: None, block, is_exhaustive: false }
    }

    /// A search in which one way is nine times as fast as all others, another one at each size; what was measured, and what was found.
    fn run(aim: Aim<'_>, sizes: &[u64], best: impl Fn(u64) -> Choice) -> (Vec<Task>, Vec<(u64, Choice)>) {
        let (mut search, mut tasks) = (Search::new(aim, sizes, Vec::new()), Vec::new());
        while let Some(task) = search.task() {
            let time = |way: Choice| {
                let median_us = if way == best(task.bytes) { 1.0 } else { 9.0 };
                Measured { median_us, low_us: median_us, high_us: median_us, samples: 20 }
            };
            search.took(&task.ways.iter().map(|way| (*way, Some(time(*way)))).collect::<Vec<_>>());
            search.finished(false);
            tasks.push(task);
        }
        (tasks, search.found().map(|(bytes, found)| (bytes, found.best)).collect())
    }

    /// Between a size that is best served whole and one that is best served in segments of another way.
    #[test]
    fn between_two_sizes_the_best_of_both_are_tried_whole_too() {
        let choice = |text: &str| Choice::read(Collective::Broadcast, text).unwrap();
        let best = |bytes| choice(if bytes == 1 << 10 { "binomial" } else { "chain:segment=4KiB" });
        let (tasks, _) = run(aim(Collective::Broadcast, &|bytes| bytes), &[1 << 10, 16 << 10], best);
        let of_middle = tasks.iter().find(|task| task.bytes == 4 << 10).unwrap();
        assert_eq!(of_middle.ways, ["stock", "binomial", "chain:segment=4KiB", "chain"].map(choice));
    }

    /// Blocks of 16 ranks: the first sizes have one byte in each, as the geometric mean of the last two has.
    #[test]
    fn what_rules_cannot_tell_apart_is_measured_once() {
        let choice = |text: &str| Choice::read(Collective::Scatter, text).unwrap();
        let best = |bytes| choice(if bytes < 64 { "binomial" } else { "chain" });
        let (_, found) = run(aim(Collective::Scatter, &|bytes| bytes.div_ceil(16)), &[1, 4, 16, 64], best);
        assert_eq!(found, [(1, choice("binomial")), (64, choice("chain"))]);
    }
}
