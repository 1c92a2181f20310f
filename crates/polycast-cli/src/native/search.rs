use polycast_core::collective::Collective;
use polycast_core::policy::tune::Measured;
use polycast_core::units::Bytes;

use super::{Library, Rule, Way};

/// Ways that take longer than the best one so many times are not measured again.
const PROMISING: f64 = 1.3;

/// The library's own ways, each measured in launches of its own: all once, then those that may win for longer.
#[derive(Clone, Debug)]
pub struct Search {
    sizes: Vec<u64>,
    /// By way, then by size.
    ways: Vec<(Way, Vec<Option<Measured>>)>,
}

impl Search {
    /// For a collective of so many ranks and these sizes, rising.
    pub fn new(library: Library, collective: Collective, sizes: Vec<u64>, ranks: u32) -> Search {
        let most = sizes.last().copied().unwrap_or(0);
        let none = vec![None; sizes.len()];
        let ways = library.ways(collective, most, ranks).into_iter();
        let ways = ways.map(|way| (way, none.clone())).collect();
        Search { sizes, ways }
    }

    /// All of them, with the sizes that each is to be measured at.
    pub fn first_round(&self) -> Vec<(Way, Vec<u64>)> {
        let worth = |way: &Way| self.sizes.iter().copied().filter(|bytes| way.segment < *bytes).collect();
        let all = self.ways.iter().map(|(way, _)| (*way, worth(way)));
        all.filter(|(_, sizes): &(Way, Vec<u64>)| !sizes.is_empty()).collect()
    }

    /// Those that may win, and the library's decision where one of them may win.
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

    /// What was measured last counts.
    pub fn took(&mut self, way: Way, bytes: u64, time: Measured) {
        let place = self.sizes.iter().position(|size| *size == bytes);
        let known = self.ways.iter_mut().find(|(known, _)| *known == way);
        if let (Some(place), Some((_, times))) = (place, known) {
            times[place] = Some(time);
        }
    }

    fn time(&self, way: Way, place: usize) -> Option<Measured> {
        self.ways.iter().find(|(known, _)| *known == way).and_then(|(_, times)| times[place])
    }

    fn best(&self, place: usize) -> Option<(Way, Measured)> {
        let known = self.ways.iter().filter_map(|(way, times)| Some((*way, times[place]?)));
        known.min_by(|one, other| one.1.median_us.total_cmp(&other.1.median_us))
    }

    /// The best way and its time at each size, with the library's own time: that of the library, unless it is beaten beyond both intervals.
    pub fn found(&self) -> Vec<(u64, Way, Measured, Option<Measured>)> {
        let at = |(place, bytes): (usize, &u64)| {
            let (way, time) = self.best(place)?;
            let stock = self.time(Way::STOCK, place);
            match stock {
                Some(stock) if time.high_us >= stock.low_us => Some((*bytes, Way::STOCK, stock, Some(stock))),
                _ => Some((*bytes, way, time, stock)),
            }
        };
        self.sizes.iter().enumerate().filter_map(at).collect()
    }

    /// As rules: from the smallest size that was measured on, with borders at geometric means.
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
