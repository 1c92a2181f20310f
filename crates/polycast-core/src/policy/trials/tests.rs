use proptest::prelude::*;

use super::*;
use crate::policy::Choice;

/// Calls of so many bytes.
fn of(bytes: u64) -> Sameness {
    Sameness {
        collective: Collective::Broadcast,
        epoch: Epoch::default(),
        interval: 0,
        digits: Sameness::digits_of(bytes),
        there: Capabilities::ALL,
    }
}

mod bounded;

/// Ranks that make the same calls.
struct Ranks {
    ranks: Vec<Trials>,
    found: Vec<Finding>,
    /// What ways are taken to cost that are to be set up, where the cost of trials is bounded.
    bound: Option<u64>,
    judgements: usize,
}

impl Ranks {
    fn new(ranks: usize) -> Ranks {
        Ranks { ranks: vec![Trials::default(); ranks], found: Vec::new(), bound: None, judgements: 0 }
    }

    /// A communicator of processes that have these ledgers.
    fn with(ledgers: &[Ledger]) -> Ranks {
        let told = ledgers[0].words_for_others();
        let ranks = ledgers.iter().map(|ledger| ledger.resumed(&told)).collect();
        Ranks { ranks, found: Vec::new(), bound: None, judgements: 0 }
    }

    fn free(&mut self, ledgers: &mut [Ledger]) {
        self.ranks.iter_mut().zip(ledgers).for_each(|(rank, ledger)| ledger.learn(rank));
    }

    /// One call, which takes so long on each rank; the way that all took.
    fn call(&mut self, of: Sameness, arms: usize, nanos: impl FnMut(usize, Arm) -> u64) -> Arm {
        self.turn(of, arms, nanos).way().0
    }

    fn turn(&mut self, of: Sameness, arms: usize, mut nanos: impl FnMut(usize, Arm) -> u64) -> Turn {
        loop {
            let due: Vec<_> = self.ranks.iter().map(Trials::due).collect();
            assert!(due.iter().all(|values| values.is_some() == due[0].is_some()));
            if due[0].is_none() {
                break;
            }
            let sums = std::array::from_fn(|at| due.iter().flatten().map(|(_, values)| values[at]).sum());
            self.judgements += 1;
            let count = self.ranks.len() as u32;
            let found: Vec<_> = self.ranks.iter_mut().map(|rank| rank.judge(&sums, count)).collect();
            assert!(found.iter().all(|other| *other == found[0]));
            self.found.extend(found[0]);
        }
        let turns: Vec<Turn> = self.ranks.iter_mut().map(|rank| rank.next(of, arms, self.bound)).collect();
        assert!(turns.iter().all(|turn| *turn == turns[0]), "{turns:?}");
        if let (arm, Some(sample)) = turns[0].way() {
            for (rank, trials) in self.ranks.iter_mut().enumerate() {
                trials.took(sample, nanos(rank, arm));
            }
        }
        turns[0]
    }
}

/// Takes each way's time; how many calls each had.
fn counts(calls: usize, times: &[u64]) -> Vec<usize> {
    let mut ranks = Ranks::new(3);
    let mut counts = vec![0; times.len()];
    for _ in 0..calls {
        counts[usize::from(ranks.call(of(9000), times.len(), |_, arm| times[usize::from(arm)]))] += 1;
    }
    counts
}

#[test]
fn what_is_far_slower_has_three_calls() {
    assert_eq!(counts(200, &[1000, 3000]), [197, 3]);
    assert_eq!(counts(200, &[3000, 1000]), [3, 197]);
    assert_eq!(counts(200, &[3000, 1000, 5000]), [3, 194, 3]);
}

#[test]
fn of_ways_that_are_alike_the_mpi_stays() {
    assert_eq!(counts(200, &[1000, 1000]), [17, 183]);
    assert_eq!(counts(200, &[990, 1000]), [17, 183], "not worth it");
    assert_eq!(counts(200, &[950, 1000]), [191, 9], "clearly faster, if by little");
}

#[test]
fn of_ways_that_differ_by_little_the_rules_first_one_stays() {
    assert_eq!(counts(200, &[1030, 1000, 3000]), [180, 17, 3]);
    assert_eq!(counts(200, &[1070, 1000, 3000])[1], 188, "worth it");
}

#[test]
fn each_size_has_its_own_trial() {
    let mut ranks = Ranks::new(2);
    for _ in 0..20 {
        for bytes in [1000, 100_000] {
            ranks.call(of(bytes), 2, |_, arm| if (arm == 0) == (bytes == 1000) { 10 } else { 100 });
        }
    }
    assert_eq!(ranks.call(of(1023), 2, |_, _| 1), 0, "as 1000");
    assert_eq!(ranks.call(of(70_000), 2, |_, _| 1), 1, "as 100,000");
    let found: Vec<_> = ranks.found.iter().map(|found| (found.of.digits, found.arm, found.nanos)).collect();
    assert_eq!(found, [(10, 0, [10, 100, 0, 0]), (17, 1, [100, 10, 0, 0])]);
}

#[test]
fn decisions_are_looked_at_again() {
    let mut ranks = Ranks::new(2);
    let mut call = |times: [u64; 2]| ranks.call(of(1000), 2, |_, arm| times[usize::from(arm)]);
    let before: Vec<Arm> = (1..1000).map(|_| call([100, 250])).collect();
    assert_eq!(before.iter().filter(|arm| **arm == 1).count(), 6, "at the beginning, and at call 256");
    assert!(before[255..261].contains(&1), "{:?}", &before[250..265]);
    let after: Vec<Arm> = (1000..4000).map(|_| call([700, 250])).collect();
    assert_eq!(after.last(), Some(&1), "the network has changed");
}

/// On `communicators` with one call each.
fn counts_of_short_lives(communicators: usize, times: [u64; 2]) -> [usize; 2] {
    let mut ledgers = vec![Ledger::default(); 3];
    let mut counts = [0; 2];
    for _ in 0..communicators {
        let mut ranks = Ranks::with(&ledgers);
        counts[usize::from(ranks.call(of(9000), 2, |_, arm| times[usize::from(arm)]))] += 1;
        ranks.free(&mut ledgers);
    }
    counts
}

#[test]
fn communicators_that_live_for_one_call_learn_from_each_other() {
    assert_eq!(counts_of_short_lives(200, [1000, 3000]), [197, 3]);
    assert_eq!(counts_of_short_lives(200, [3000, 1000]), [3, 197]);
    assert_eq!(counts_of_short_lives(1000, [1000, 3000]), [994, 6], "at the beginning, and at call 256");
    assert_eq!(
        counts_of_short_lives(250, [1000, 1000]),
        [17, 233],
        "the last round ends with a communicator"
    );
    assert_eq!(counts_of_short_lives(250, [20_000_000; 2]), [17, 233]);
}

#[test]
fn what_an_earlier_job_found_stays_until_it_is_due() {
    let mut ledgers = vec![Ledger::default(); 2];
    let earlier = Recalled { of: of(9000), times: Vec::new(), arm: 1, until_calls: 512 };
    ledgers[0].remember(&earlier);
    let mut ranks = Ranks::with(&ledgers);
    let arms: Vec<Arm> = (1..=600).map(|_| ranks.call(of(9000), 2, |_, _| 10)).collect();
    assert!(arms[..511].iter().all(|arm| *arm == 1) && arms[511..].contains(&0));
    assert_eq!(ledgers[1].stays_until(of(9000)), None, "rank 0 alone knew it");
    ranks.free(&mut ledgers);
    assert!(ledgers.iter().all(|ledger| ledger.stays_until(of(9000)).is_some()));
}

#[test]
fn ranks_that_may_have_made_different_calls_try_nothing_more() {
    let mut trials = Trials::default();
    for _ in 0..6 {
        trials.next(of(9000), 2, None);
    }
    assert!(trials.due().is_some());
    trials.stop();
    assert_eq!((trials.due(), trials.next(of(9000), 2, None)), (None, Turn::Settled(0, None)));
}

/// The way that stays takes three times as long from a call on, long before that is looked at again.
#[test]
fn what_takes_longer_than_it_did_is_compared_anew() {
    let mut ranks = Ranks::new(3);
    let slow = 1_000_000_000;
    for _ in 0..400 {
        ranks.call(of(9000), 2, |_, arm| [20_000_000, slow][usize::from(arm)]);
    }
    assert_eq!(ranks.found.len(), 1);
    let mut served = [0; 2];
    for _ in 0..100 {
        let arm = ranks.call(of(9000), 2, |_, arm| [3 * slow, slow][usize::from(arm)]);
        served[usize::from(arm)] += 1;
    }
    assert_eq!(ranks.found.last().map(|found| found.arm), Some(1));
    assert!(served[1] > 10, "{served:?}");
}

/// As a pairwise exchange whose packets meet: fast behind another way, slow behind itself.
#[test]
fn what_is_slow_behind_itself_does_not_stay() {
    let mut ranks = Ranks::new(3);
    let mut before = 0;
    let mut counts = [0; 2];
    for _ in 0..100 {
        let arm = ranks.call(of(9000), 2, |_, arm| match (arm, before) {
            (0, _) => 38_000_000,
            (_, 0) => 36_000_000,
            _ => 90_000_000,
        });
        counts[usize::from(arm)] += 1;
        before = arm;
    }
    assert_eq!(ranks.found.len(), 1);
    assert_eq!((ranks.found[0].arm, counts[1] < 20), (0, true), "{:?} {counts:?}", ranks.found);
}

/// Times of a job vary, and ranks come late, by the same measure all the time: nothing has changed.
#[test]
fn what_varies_as_it_always_did_stays() {
    let mut state = 7u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut ranks = Ranks::new(4);
    for _ in 0..100_000 {
        let late = random() % 1_000_000;
        ranks.call(of(9000), 2, |_, arm| {
            1_000_000 * (1 + 50_000 * u64::from(arm)) + late + random() % 500_000
        });
    }
    assert_eq!(ranks.found.len(), 1, "{:?}", ranks.found);
}

proptest! {
    /// Whatever each rank measures, and whatever the program calls, all ranks serve each call alike.
    #[test]
    fn ranks_never_choose_differently(
        ranks in 1usize..5,
        calls in prop::collection::vec((0u8..3, prop::collection::vec(0u64..1 << 40, 4)), 0..600),
        bound in prop::option::of(0u64..1 << 30),
    ) {
        let mut ranks = Ranks { bound, ..Ranks::new(ranks) };
        for (size, nanos) in calls {
            let arms = 2 + usize::from(size % 3);
            ranks.call(of(1 << (4 * size)), arms, |rank, arm| nanos[rank] >> (10 * arm));
        }
    }

    /// Of two ways of which one takes half again as long, in a program whose ranks are late by up to as much as a call takes.
    #[test]
    fn the_faster_way_is_found(seed in any::<u64>(), faster in 0u8..2) {
        let mut state = seed;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut ranks = Ranks::new(4);
        let mut last = 2;
        for _ in 0..40 {
            last = ranks.call(of(9000), 2, |_, arm| {
                (if arm == faster { 1_000_000 } else { 1_500_000 }) + random() % 1_000_000
            });
        }
        prop_assert_eq!(last, faster);
    }

    /// What trials cost is bounded, however much slower the other way is.
    #[test]
    fn trials_cost_little(times in prop::array::uniform2(1u64..1_000_000), calls in 500usize..5000) {
        let counts = counts(calls, &times);
        let total: u64 = counts.iter().zip(times).map(|(count, nanos)| *count as u64 * nanos).sum();
        let [best, worst] = [times[0].min(times[1]), times[0].max(times[1])];
        let at_first = 3 * (worst - best);
        prop_assert!(total as f64 <= 1.05 * (calls as u64 * best) as f64 + at_first as f64, "{:?}", counts);
    }

    /// Whatever communicators come and go, one within another too, and whoever is rank 0 of them.
    #[test]
    fn ranks_of_any_communicator_choose_alike(
        steps in prop::collection::vec((0usize..4, 0usize..3, 0u8..3, 0u64..1 << 40), 0..400),
        bound in prop::option::of(0u64..1 << 20),
    ) {
        let mut ledgers = vec![Ledger::default(); 4];
        let mut open: Vec<Ranks> = Vec::new();
        for (which, step, size, nanos) in steps {
            match step {
                0 => {
                    ledgers.rotate_left(which);
                    open.push(Ranks { bound, ..Ranks::with(&ledgers) });
                    ledgers.rotate_right(which);
                }
                1 if !open.is_empty() => open.remove(which % open.len()).free(&mut ledgers),
                _ if !open.is_empty() => {
                    let which = which % open.len();
                    let arms = 2 + usize::from(size % 3);
                    open[which].call(of(1 << (4 * size)), arms, |rank, arm| nanos >> (rank + 5 * usize::from(arm)));
                }
                _ => {}
            }
        }
    }
}

/// Of two jobs one has compared three ways, the other two.
#[test]
fn what_is_known_of_other_ways_is_not_gone_on_with() {
    let found = |bytes, ways, arm| Recalled {
        of: of(bytes),
        times: vec![(Choice::Stock, 1); ways],
        arm,
        until_calls: 512,
    };
    let mut trials = Trials::default();
    trials.remember(&found(100, 3, 2));
    trials.remember(&found(100, 2, 1));
    assert_eq!(trials.settled(of(100)), Some(1));
    trials.remember(&found(100, 3, 2));
    assert_eq!(trials.settled(of(100)), Some(1), "the first that may be right stays");
    trials.next(of(9000), 3, None);
    trials.remember(&found(9000, 3, 2));
    assert_eq!(trials.settled(of(9000)), None, "it is being compared here");
    trials.remember(&found(9000, 2, 0));
    assert_eq!(trials.settled(of(9000)), Some(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// One rank looks at each call, the other counts those that are like the last one, as long as it may.
    #[test]
    fn who_counts_steady_calls_knows_as_much(
        stretches in prop::collection::vec((0usize..3, 1u64..3000), 1..30),
        times in prop::array::uniform3([900u64..3000, 900u64..3000]),
        changes in prop::option::of(500u64..4000),
        bound in prop::option::of(0u64..10_000),
    ) {
        let (mut looking, mut counting) = (Trials::default(), Trials::default());
        let mut made = 0;
        for (class, calls) in stretches {
            let of = of(1000 << (4 * class));
            let (mut steady, mut counted, mut arm_then) = (0, 0, None);
            for _ in 0..calls {
                while let Some((_, mut sums)) = looking.due() {
                    prop_assert_eq!(counted, 0, "nothing is due among steady calls");
                    let others = counting.due().expect("as on the other rank").1;
                    sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
                    prop_assert_eq!(looking.judge(&sums, 2), counting.judge(&sums, 2));
                    steady = 0;
                }
                let turn = looking.next(of, 2, bound);
                let (arm, sample) = turn.way();
                made += 1;
                if steady > 0 {
                    (steady, counted) = (steady - 1, counted + 1);
                    prop_assert_eq!((Some(arm), sample), (arm_then, None));
                    continue;
                }
                counting.add(of, std::mem::take(&mut counted));
                prop_assert_eq!(counting.next(of, 2, bound), turn);
                if let Some(sample) = sample {
                    let is_late = changes.is_some_and(|from| made > from);
                    let nanos = times[class][usize::from(arm)] * if is_late { 3 } else { 1 };
                    looking.took(sample, nanos);
                    counting.took(sample, nanos + made % 7);
                }
                arm_then = Some(arm);
                let is_decided = matches!(turn, Turn::Settled(_, None) | Turn::Waiting(_));
                let is_steady = is_decided && counting.due().is_none();
                steady = if is_steady { counting.steady(of) } else { 0 };
            }
            counting.add(of, counted);
        }
        prop_assert_eq!(format!("{:?}", looking.words_for_others()), format!("{:?}", counting.words_for_others()));
    }
}

#[test]
fn parts_of_a_cache_line_are_one_size_and_others_go_by_powers_of_two() {
    for bytes in 0..=1024 {
        let alike = Sameness::sizes_alike(bytes);
        assert!(alike.contains(&bytes), "{bytes}");
        for other in 0..=1024 {
            let is_alike = Sameness::digits_of(bytes) == Sameness::digits_of(other);
            assert_eq!(alike.contains(&other), is_alike, "{bytes} and {other}");
        }
        assert_eq!(of(bytes).first_bytes(), *alike.start(), "{bytes}");
    }
    assert_eq!(Sameness::sizes_alike(8), 1..=63);
    assert_eq!(Sameness::sizes_alike(64), 64..=127);
}
