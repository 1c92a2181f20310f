use std::time::Duration;

use polycast_core::collective::Collective;
use polycast_core::policy::tune::Measured;
use polycast_core::units::Bytes;

use super::{Library, Rule, Way};

/// The multiple of the best way's time up to which a way is measured again.
const PROMISING: f64 = 1.3;
/// The time for a size in the second round, as a number of its calls: more than an interval needs,
/// for some of the time passes between calls.
const CALLS: f64 = 1.5 * Measured::LEAST_SAMPLES as f64;

/// The search among the library's own ways, each measured in launches of its own: all once, then
/// those that may win for longer.
#[derive(Clone, Debug)]
pub struct Search {
    sizes: Vec<u64>,
    /// The times by way, then by size.
    ways: Vec<(Way, Vec<Option<Measured>>)>,
}

impl Search {
    /// A search for a collective of so many ranks and these sizes, rising.
    pub fn new(library: Library, collective: Collective, sizes: Vec<u64>, ranks: u32) -> Search {
        let most = sizes.last().copied().unwrap_or(0);
        let none = vec![None; sizes.len()];
        let ways = library.ways(collective, most, ranks).into_iter();
        let ways = ways.map(|way| (way, none.clone())).collect();
        Search { sizes, ways }
    }

    /// Returns all ways, with the sizes that each is to be measured at.
    pub fn first_round(&self) -> Vec<(Way, Vec<u64>)> {
        let is_cut = |way: &Way, bytes: u64| way.segment == 0 || way.segment < bytes;
        let worth = |way: &Way| self.sizes.iter().copied().filter(|bytes| is_cut(way, *bytes)).collect();
        let all = self.ways.iter().map(|(way, _)| (*way, worth(way)));
        all.filter(|(_, sizes): &(Way, Vec<u64>)| !sizes.is_empty()).collect()
    }

    /// Returns the ways that may win with the sizes at which they may, and the library's own
    /// decision at those sizes.
    pub fn second_round(&self) -> Vec<(Way, Vec<u64>)> {
        let may_win = |way: &Way, place: usize| {
            let Some(best) = self.best(place) else { return false };
            let near = |time: &Measured| time.median_us <= PROMISING * best.1.median_us;
            let mine = self.time(*way, place);
            best.0 != Way::STOCK && (*way == Way::STOCK || mine.as_ref().is_some_and(near))
        };
        let sizes = |way: &Way| -> Vec<u64> {
            let places = (0..self.sizes.len()).filter(|place| may_win(way, *place));
            places.map(|place| self.sizes[place]).collect()
        };
        let all = self.ways.iter().map(|(way, _)| (*way, sizes(way)));
        all.filter(|(_, sizes)| !sizes.is_empty()).collect()
    }

    /// Returns the launches of a way, each with its sizes and the time for each size: `time`, or,
    /// where calls take long, the time that an interval needs; such a size has a launch by itself.
    pub fn launches(&self, way: Way, sizes: Vec<u64>, time: Duration) -> Vec<(Vec<u64>, Duration)> {
        let needed = |bytes: &u64| {
            let place = self.sizes.iter().position(|size| size == bytes);
            let known = place.and_then(|place| self.time(way, place));
            known.map_or(time, |known| Duration::from_secs_f64(CALLS * known.median_us / 1e6))
        };
        let (short, long): (Vec<u64>, Vec<u64>) = sizes.into_iter().partition(|bytes| needed(bytes) <= time);
        let together = (!short.is_empty()).then_some((short, time));
        together.into_iter().chain(long.into_iter().map(|bytes| (vec![bytes], needed(&bytes)))).collect()
    }

    /// Notes the time of a way for a size. The last measurement counts.
    pub fn took(&mut self, way: Way, bytes: u64, time: Measured) {
        let place = self.sizes.iter().position(|size| *size == bytes);
        let known = self.ways.iter_mut().find(|(known, _)| *known == way);
        if let (Some(place), Some((_, times))) = (place, known) {
            times[place] = Some(time);
        }
    }

    /// Removes a way that failed or had wrong data.
    pub fn leave_out(&mut self, way: Way) {
        self.ways.retain(|(known, _)| *known != way);
    }

    fn time(&self, way: Way, place: usize) -> Option<Measured> {
        self.ways.iter().find(|(known, _)| *known == way).and_then(|(_, times)| times[place])
    }

    fn best(&self, place: usize) -> Option<(Way, Measured)> {
        self.fastest(place, |_| true)
    }

    fn fastest(&self, place: usize, counts: impl Fn(&Measured) -> bool) -> Option<(Way, Measured)> {
        let known = self.ways.iter().filter_map(|(way, times)| Some((*way, times[place]?)));
        let known = known.filter(|(_, time)| counts(time));
        known.min_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us))
    }

    /// Returns the best way and its time at each size, with the time of the library's own decision.
    /// The library's decision stays the best unless a way beats it beyond both intervals.
    pub fn found(&self) -> Vec<(u64, Way, Measured, Option<Measured>)> {
        let at = |(place, bytes): (usize, &u64)| {
            let stock = self.time(Way::STOCK, place);
            let is_worth = |time: &Measured| stock.is_none_or(|stock| time.is_surely_below(&stock));
            let own = || stock.map(|stock| (Way::STOCK, stock));
            let (way, time) = self.fastest(place, is_worth).or_else(own)?;
            Some((*bytes, way, time, stock))
        };
        self.sizes.iter().enumerate().filter_map(at).collect()
    }

    /// Makes rules of the best ways: from the smallest size that was measured on, with borders at
    /// geometric means.
    pub fn rules(&self) -> Vec<Rule> {
        let found = self.found();
        let mut rules: Vec<Rule> = Vec::new();
        for (place, (bytes, way, time, stock)) in found.iter().enumerate() {
            if rules.last().is_some_and(|rule| rule.way == *way) {
                continue;
            }
            let before = place.checked_sub(1).map(|before| Bytes(found[before].0));
            let first = before.map_or(*bytes, |before| before.border(Bytes(*bytes)).0);
            let stock = stock.filter(|_| *way != Way::STOCK);
            let because = stock.map(|stock| {
                format!("{} in {:.0} us, by itself {:.0} us", Bytes(*bytes), time.median_us, stock.median_us)
            });
            rules.push(Rule { bytes: first, way: *way, because });
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Rules, RulesFormat};

    fn way(algorithm: u32, segment: u64) -> Way {
        Way::new(Collective::Broadcast, algorithm, 0, segment).unwrap()
    }

    #[test]
    fn what_failed_later_does_not_win() {
        let time = |us: f64| Measured { median_us: us, low_us: us, high_us: us, samples: 9 };
        let mut search = Search::new(Library::OpenMpi, Collective::Broadcast, vec![1 << 20], 16);
        search.took(Way::STOCK, 1 << 20, time(1000.0));
        search.took(way(3, 8192), 1 << 20, time(100.0));
        assert_eq!(search.found()[0].1, way(3, 8192));
        search.leave_out(way(3, 8192));
        assert_eq!(search.found()[0].1, Way::STOCK);
        assert!(search.first_round().iter().all(|(left, _)| *left != way(3, 8192)));
    }

    /// Of what takes long there are few samples at first, of which a median says nothing.
    #[test]
    fn few_samples_do_not_beat_the_library() {
        let time = |us: f64, samples| Measured { median_us: us, low_us: us, high_us: us, samples };
        let mut search = Search::new(Library::OpenMpi, Collective::Broadcast, vec![1 << 20], 16);
        search.took(Way::STOCK, 1 << 20, time(1000e3, 2));
        search.took(way(3, 8192), 1 << 20, time(900e3, 1));
        assert_eq!(search.found()[0].1, Way::STOCK);
        // The next round is long enough, and of those that are sure the fastest counts.
        let short = Duration::from_millis(100);
        let launches = search.launches(way(3, 8192), vec![1 << 20], short);
        assert_eq!(launches, [(vec![1 << 20], Duration::from_millis(8100))]);
        assert_eq!(
            search.launches(way(6, 0), vec![1 << 20], short),
            [(vec![1 << 20], short)],
            "nothing is known"
        );
        search.took(way(6, 0), 1 << 20, time(950e3, 9));
        assert_eq!(search.found()[0].1, way(6, 0));
        search.took(way(5, 0), 1 << 20, time(300e3, 1));
        assert_eq!(search.found()[0].1, way(5, 0), "it is so much faster");
    }

    #[test]
    fn a_barrier_has_no_bytes_and_is_measured() {
        let mut search = Search::new(Library::OpenMpi, Collective::Barrier, vec![0], 16);
        let round = search.first_round();
        assert_eq!(round.len(), 5);
        for (way, sizes) in round {
            let us = if way.name == "bruck" { 50.0 } else { 100.0 };
            let time = Measured { median_us: us, low_us: us, high_us: us, samples: 9 };
            sizes.into_iter().for_each(|bytes| search.took(way, bytes, time));
        }
        let rules = search.rules();
        assert_eq!(rules.iter().map(|rule| (rule.bytes, rule.way.name)).collect::<Vec<_>>(), [(0, "bruck")]);
    }

    /// Between nothing and something all is nearer to something.
    #[test]
    fn rules_of_no_bytes_end_before_the_next() {
        let mut search = Search::new(Library::OpenMpi, Collective::Broadcast, vec![0, 1024], 16);
        for (bytes, one) in [(0, way(6, 0)), (1024, way(8, 0))] {
            search.took(one, bytes, Measured { median_us: 1.0, low_us: 1.0, high_us: 1.0, samples: 9 });
        }
        let rules = Rules::for_ranks(16, vec![(Collective::Broadcast, search.rules())]);
        let file = rules.write(RulesFormat::Openmpi, &[]).unwrap();
        assert_eq!(Rules::parse(&file, RulesFormat::Openmpi).unwrap().count(), 4, "{file}");
    }
}
