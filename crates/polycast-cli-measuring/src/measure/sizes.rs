//! Which message sizes are measured: powers of four first, then more where a curve bends.

use std::collections::VecDeque;

use crate::jobs::{RankServer, RankServerError};

use super::doubt::{is_known, widest};
use super::estimate::Estimate;
use super::size::{Figures, Size};

/// The fraction of its time up to which a size counts as on the line between its neighbours, where
/// it adds nothing.
const STRAIGHT_ENOUGH: f64 = 0.05;

/// The factor between neighbouring sizes up to which no size between them is measured.
const CLOSEST: f64 = 1.5;

/// The size in bytes that a packet takes: a smaller message takes as long as a byte, and only
/// beyond it does time grow with bytes.
const PACKET: u64 = 1 << 10;

/// The number of times that a size is measured again if its intervals are too wide, each time with
/// twice as much time.
const MAX_AGAIN: u32 = 2;

/// The sizes to begin with, if the user names none: 1 B to 4 MiB.
pub fn powers_of_four() -> Vec<u64> {
    (0..12).map(|power| 1 << (2 * power)).collect()
}

/// The user's wishes for a measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct SizesPlan {
    /// The sizes to begin with, rising.
    pub sizes: Vec<u64>,
    /// True if larger sizes are left out when the fewest samples of them would take more than twice
    /// their time.
    pub may_stop: bool,
    /// The most sizes that a class gets.
    pub most: usize,
    /// The time for measuring a size, in ns.
    pub limit_ns: f64,
}

/// Measures a pair; by rising size. `on_size` is told each size before it is measured. What is doubtful is measured again, a few
/// times at most; then the narrowest intervals count.
pub fn measure(
    server: &mut dyn RankServer,
    pair: (usize, usize),
    plan: &SizesPlan,
    mut on_size: impl FnMut(u64),
) -> Result<Vec<Figures>, RankServerError> {
    let mut measure = |bytes| {
        let mut best: Option<Figures> = None;
        for again in 0..=MAX_AGAIN {
            on_size(bytes);
            let limit_ns = plan.limit_ns / 3.0 * f64::from(1 << again);
            let figures = Size { server: &mut *server, pair, bytes, limit_ns }.measure()?;
            let best = best.get_or_insert(figures);
            if widest(&figures) < widest(best) {
                *best = figures;
            }
            if is_known(best) {
                break;
            }
        }
        Ok::<_, RankServerError>(best.expect("it was measured"))
    };
    let mut figures: Vec<Figures> = Vec::new();
    for &bytes in &plan.sizes {
        let is_too_slow = figures.last().is_some_and(|last| {
            let growth = bytes.max(PACKET) as f64 / last.bytes.max(PACKET) as f64;
            last.least_time_ns() * growth > 2.0 * plan.limit_ns
        });
        if figures.len() == plan.most || (plan.may_stop && is_too_slow) {
            break;
        }
        figures.push(measure(bytes)?);
    }
    // Breadth first, so that where sizes are limited none of the range goes without.
    let mut spans: VecDeque<(u64, u64)> =
        figures.windows(2).map(|pair| (pair[0].bytes, pair[1].bytes)).collect();
    while let Some((low, high)) = spans.pop_front().filter(|_| figures.len() < plan.most) {
        let Some(middle) = middle(low, high) else { continue };
        let measured = measure(middle)?;
        let position = figures.partition_point(|other| other.bytes < middle);
        if bends(&figures[position - 1], &measured, &figures[position]) {
            spans.extend([(low, middle), (middle, high)]);
        }
        figures.insert(position, measured);
    }
    Ok(figures)
}

/// Returns the geometric mean of two sizes, where there is room between them.
fn middle(low: u64, high: u64) -> Option<u64> {
    let middle = (low as f64 * high as f64).sqrt().round() as u64;
    (middle > low && middle < high && high as f64 > low as f64 * CLOSEST).then_some(middle)
}

/// True if a size lies off the line between its neighbours by more than its own uncertainty. False
/// if one of the three is doubtful.
fn bends(below: &Figures, middle: &Figures, above: &Figures) -> bool {
    if ![below, middle, above].into_iter().all(is_known) {
        return false;
    }
    let share = (middle.bytes - below.bytes) as f64 / (above.bytes - below.bytes) as f64;
    let is_off = |of: fn(&Figures) -> Estimate| {
        let (a, b, c) = (of(below), of(middle), of(above));
        let on_line = a.ns + share * (c.ns - a.ns);
        let uncertain = (b.high - b.ns).max(b.ns - b.low);
        (b.ns - on_line).abs() > uncertain.max(STRAIGHT_ENOUGH * b.ns)
    };
    is_off(|figures| figures.gap) || is_off(|figures| figures.round_trip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Order;
    use crate::measure::formula::Formula;

    fn plan(sizes: Vec<u64>) -> SizesPlan {
        SizesPlan { sizes, may_stop: true, most: 40, limit_ns: 3e9 }
    }

    fn sizes_of(network: &mut Formula, plan: &SizesPlan) -> Vec<u64> {
        let figures = measure(network, (0, 1), plan, |_| ()).unwrap();
        assert!(figures.is_sorted_by_key(|figures| figures.bytes));
        figures.iter().map(|figures| figures.bytes).collect()
    }

    #[test]
    fn a_straight_network_gets_one_size_between_neighbours() {
        let sizes = sizes_of(&mut Formula::default(), &plan(vec![1, 4, 16, 64]));
        assert_eq!(sizes, [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn there_are_more_sizes_where_a_protocol_changes() {
        let mut network = Formula { handshake_from: 20_000, handshake_ns: 9e6, ..Formula::default() };
        let sizes = sizes_of(&mut network, &plan(vec![1024, 4096, 16_384, 65_536]));
        let within = |low: u64, high: u64| sizes.iter().filter(|&&bytes| low < bytes && bytes < high).count();
        assert_eq!((within(1024, 4096), within(4096, 16_384)), (1, 1), "{sizes:?}");
        assert!(within(16_384, 65_536) > 2, "{sizes:?}");
        // The step is enclosed by neighbours as close as they may be.
        let after = sizes.iter().position(|bytes| *bytes >= 20_000).unwrap();
        assert!((sizes[after] as f64) < 1.6 * sizes[after - 1] as f64, "{sizes:?}");
    }

    /// A network that is disturbed while some orders of one size are carried out.
    struct Disturbed {
        network: Formula,
        bytes: u64,
        orders_left: u32,
        orders: u32,
    }

    impl RankServer for Disturbed {
        fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
            let mut answer = self.network.carry_out(order)?;
            if matches!(*order, Order::Stream { bytes, .. } | Order::PingPong { bytes, .. } if bytes == self.bytes)
            {
                self.orders += 1;
                if self.orders_left > 0 {
                    self.orders_left -= 1;
                    answer.iter_mut().enumerate().for_each(|(at, ns)| *ns *= 1 + 99 * (at as i64 / 3 % 2));
                }
            }
            Ok(answer)
        }
    }

    #[test]
    fn a_doubtful_size_is_measured_again_and_others_are_not() {
        let of = |orders_left| {
            let mut server = Disturbed { network: Formula::default(), bytes: 16, orders_left, orders: 0 };
            let mut told = Vec::new();
            let plan = plan(vec![1, 4, 16, 64]);
            let figures = measure(&mut server, (0, 1), &plan, |bytes| told.push(bytes)).unwrap();
            let doubtful: Vec<u64> =
                figures.iter().filter(|figures| !is_known(figures)).map(|figures| figures.bytes).collect();
            let again = told.iter().filter(|bytes| **bytes == 16).count();
            assert!(told.iter().filter(|bytes| **bytes != 16).count() <= 6, "{told:?}");
            (again, doubtful)
        };
        assert_eq!(of(0), (1, vec![]));
        assert_eq!(of(12), (2, vec![]));
        assert_eq!(of(u32::MAX), (3, vec![16]), "bounded");
    }

    #[test]
    fn limits_of_sizes() {
        // 400 ns/byte: 1 MiB takes 0.4 s, its fewest samples more than 10 s.
        let sizes = sizes_of(&mut Formula::default(), &plan(powers_of_four()));
        assert_eq!(sizes.last(), Some(&(256 << 10)));
        // Where one size is 1024 times as long as the one before it.
        let far_apart = SizesPlan { limit_ns: 3e8, ..plan(vec![1, 1 << 10, 64 << 10, 512 << 10]) };
        assert_eq!(sizes_of(&mut Formula::default(), &far_apart)[..2], [1, 32]);
        let all = SizesPlan { may_stop: false, most: 12, ..plan(powers_of_four()) };
        assert_eq!(sizes_of(&mut Formula::default(), &all), powers_of_four());
        let few = SizesPlan { most: 3, ..plan(powers_of_four()) };
        assert_eq!(sizes_of(&mut Formula::default(), &few), [1, 4, 16]);
    }
}
