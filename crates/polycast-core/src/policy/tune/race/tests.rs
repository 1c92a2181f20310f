use proptest::prelude::*;

use super::super::{between, rules};
use super::*;
use crate::policy::{Call, Epoch, Policy, Rule, Rules, Table};
use crate::units::Bytes;

const SHAPE: CommunicatorShape = CommunicatorShape {
    ranks: 16,
    nodes: 16,
    ranks_per_node: 1,
    ranks_per_processor: 1,
    switches: 1,
    are_parts: true,
    is_of_all: true,
    network: None,
};

/// A network: how long everything takes in truth, in µs, from latency, rate, and what a segment costs.
#[derive(Clone, Copy, Debug)]
struct Landscape {
    latency_us: f64,
    us_per_kib: f64,
    software_us: f64,
    multicast: f64,
}

impl Landscape {
    /// Every algorithm has another depth and copies another part of the message, by its place in the registry.
    fn truth(&self, choice: Choice, bytes: u64, place: usize) -> f64 {
        let whole_us = bytes as f64 / 1024.0 * self.us_per_kib;
        let Choice::Algorithm(algorithm) = choice else {
            return 4.0 * (self.latency_us + whole_us);
        };
        if choice.is_by_multicast() {
            return self.multicast * (whole_us + 3.0 * self.latency_us + 10.0 * place as f64);
        }
        let depth = 3.0 + (place * 7 % 13) as f64;
        let copies = 1.0 + (place * 5 % 7) as f64 / 2.0;
        match algorithm.segment {
            None => depth * (self.latency_us + whole_us),
            Some(segment) => {
                let segments = (bytes as f64 / segment.get() as f64).ceil();
                let one_us = segment.get() as f64 / 1024.0 * self.us_per_kib;
                depth * (self.latency_us + one_us) + copies * segments * (one_us + self.software_us)
            }
        }
    }
}

/// Runs a race; the sum of what was measured in units of effort, and its end. Times are off by a few percent.
fn run(mut race: Race, land: Landscape, bytes: u64, seed: u64) -> (u32, Found) {
    let (mut spent, mut draw) = (0, seed);
    while let Some((choices, effort)) = race.next() {
        spent += effort.0 * choices.len() as u32;
        let times: Vec<_> = choices
            .into_iter()
            .map(|choice| {
                draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let noise = 1.0 + ((draw >> 33) as f64 / (1u64 << 31) as f64 - 0.5) * 0.04;
                let median_us = land.truth(choice, bytes, place_of(choice)) * noise;
                let half = median_us * 0.03;
                let time =
                    Measured { median_us, low_us: median_us - half, high_us: median_us + half, samples: 20 };
                (choice, Some(time))
            })
            .collect();
        race.took(&times);
    }
    (spent, race.found())
}

fn place_of(choice: Choice) -> usize {
    let all: Vec<_> = Registry::BUILT_IN.of(Collective::Broadcast).collect();
    match choice {
        Choice::Stock => 0,
        Choice::Algorithm(algorithm) => all.iter().position(|entry| *entry == algorithm.entry).unwrap(),
    }
}

/// Among many ways stock takes longer than beside one of them.
#[test]
fn who_wins_by_little_is_held_against_stock_alone() {
    let [chain, flat] = ["chain", "flat"].map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let exact = |us: f64| Measured { median_us: us, low_us: us, high_us: us, samples: 20 };
    let found_of = |ways: &[Choice], among_us: f64, alone_us: f64| {
        let mut race = Race::among(ways.to_vec(), 16, 1 << 10);
        let mut efforts = Vec::new();
        while let Some((ways, effort)) = race.next() {
            efforts.push(effort);
            let stock_us = if ways.len() == 3 { among_us } else { alone_us };
            let time = |way: &Choice| match way {
                Choice::Stock => exact(stock_us),
                way => exact(if *way == chain { 100.0 } else { 120.0 }),
            };
            race.took(&ways.iter().map(|way| (*way, Some(time(way)))).collect::<Vec<_>>());
        }
        (race.found().best, efforts.last().copied())
    };
    let found = |among_us, alone_us| found_of(&[Choice::Stock, chain, flat], among_us, alone_us);
    assert_eq!(found(130.0, 90.0), (Choice::Stock, Some(LOOKED_AT)));
    assert_eq!(found(130.0, 120.0), (chain, Some(LOOKED_AT)));
    assert_eq!(found(210.0, 90.0), (chain, Some(Effort(1))), "far enough");
    assert_eq!(found_of(&[Choice::Stock, chain], 0.0, 130.0), (chain, Some(Effort(1))), "alone already");
}

/// The winner was out, being as good as one that was out before it, and stock was left alone and stayed.
#[test]
fn who_is_held_against_stock_has_no_other_rival() {
    let [chain, flat] = ["chain", "flat"].map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let time = |low_us, median_us, high_us| Measured { median_us, low_us, high_us, samples: 20 };
    let mut race = Race::among(vec![Choice::Stock, chain, flat], 16, 1 << 10);
    let mut asked = Vec::new();
    while let Some((ways, effort)) = race.next() {
        let is_first_duel = ways.len() == 2 && effort == LOOKED_AT;
        asked.push((ways.len(), effort));
        let of = |way: &Choice| match way {
            Choice::Stock if is_first_duel => time(115.0, 130.0, 145.0),
            Choice::Stock => time(129.0, 130.0, 131.0),
            way if *way == chain => time(119.0, 120.0, 121.0),
            _ if is_first_duel => time(110.0, 122.0, 140.0),
            _ => time(118.0, 119.0, 120.0),
        };
        race.took(&ways.iter().map(|way| (*way, Some(of(way)))).collect::<Vec<_>>());
    }
    assert_eq!(asked, [(3, Effort(1)), (2, LOOKED_AT), (2, Effort(MAX_EFFORT))]);
    assert_eq!(race.found().best, flat);
}

/// On 8 hosts of 4 ranks an allreduce of 1 MiB went by a way of 175 ms, six calls, for one of 162 had left after two, when both were as fast.
#[test]
fn few_samples_do_not_say_that_two_are_alike() {
    let [chain, flat] = ["chain", "flat"].map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let mut race = Race::among(vec![Choice::Stock, chain, flat], 32, 1 << 20);
    while let Some((ways, effort)) = race.next() {
        let samples = if effort.0 < MAX_EFFORT { 2 } else { 6 };
        let of = |way: &Choice| {
            let median_us = match way {
                Choice::Stock => 280e3,
                way if *way == chain && effort.0 < MAX_EFFORT => 160e3,
                way if *way == chain => 175e3,
                _ => 162e3,
            };
            Measured { median_us, low_us: 0.99 * median_us, high_us: 1.01 * median_us, samples }
        };
        race.took(&ways.iter().map(|way| (*way, Some(of(way)))).collect::<Vec<_>>());
    }
    assert_eq!(race.found().best, flat);
}

/// On 6 hosts of 2 ranks an allreduce of 128 KiB was left to the MPI, 28.3 ms (25.1 to 31.0), where two levels took 18.7 (17.2 to 25.6), ten
/// calls each.
#[test]
fn much_faster_than_stock_is_looked_at_twice() {
    let [chain, flat] = ["chain", "flat"].map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let ends = |median_us: f64, low_us, high_us| Measured { median_us, low_us, high_us, samples: 10 };
    let found = |chain_us: f64| {
        let mut race = Race::among(vec![Choice::Stock, chain, flat], 12, 128 << 10);
        let mut efforts = Vec::new();
        while let Some((ways, effort)) = race.next() {
            efforts.push(effort);
            let time = |way: &Choice| match way {
                Choice::Stock if effort == LAST => ends(28.3, 27.0, 30.0),
                Choice::Stock => ends(28.3, 25.1, 31.0),
                way if *way == chain && effort == LAST => ends(chain_us, 17.5, 19.5),
                way if *way == chain => ends(chain_us, 17.2, 25.6),
                _ => ends(40.0, 24.0, 60.0),
            };
            race.took(&ways.iter().map(|way| (*way, Some(time(way)))).collect::<Vec<_>>());
        }
        (race.found().best, efforts.last().copied())
    };
    assert_eq!(found(18.7), (chain, Some(LAST)));
    assert_eq!(found(24.0), (Choice::Stock, Some(EXHAUSTIVE)), "by less than 1.3 times");
}

/// What a step away is better was not tried where its neighbour was as good as the best one, or slower beyond the intervals: cases of the property
/// below in which that cost 14 and 10 %.
#[test]
fn a_way_that_is_out_leads_to_a_better_one() {
    for (latency_us, us_per_kib, software_us, multicast, power, seed) in [
        (5.0, 4.040270371261165, 11.073730550589637, 1.2730218534772917, 17, 3813806759707146190),
        (163.68025701691465, 24.409284744077095, 24.778981023085954, 1.3468981038262564, 16, 0),
    ] {
        let land = Landscape { latency_us, us_per_kib, software_us, multicast };
        let bytes = 1u64 << power;
        let all = candidates(Collective::Broadcast, SHAPE, bytes, Capabilities::ALL);
        let (_, found) = run(Race::new(all, SHAPE.ranks, bytes), land, bytes, seed);
        assert!(found.best.to_string().starts_with("flat:segment="), "{}", found.best);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn a_race_finds_what_an_exhaustive_search_finds(
        latency_us in 5.0..200.0f64, us_per_kib in 0.5..500.0f64, software_us in 1.0..30.0f64, multicast in 0.5..8.0f64,
        power in 13u32..22, seed in any::<u64>(),
    ) {
        let land = Landscape { latency_us, us_per_kib, software_us, multicast };
        let bytes = 1u64 << power;
        let all = candidates(Collective::Broadcast, SHAPE, bytes, Capabilities::ALL);
        let (little, found) = run(Race::new(all.clone(), SHAPE.ranks, bytes), land, bytes, seed);
        let (much, best) = run(Race::exhaustive(all, SHAPE.ranks, bytes), land, bytes, !seed);
        let time = |found: &Found| land.truth(found.best, bytes, place_of(found.best));
        prop_assert!(time(&found) <= 1.10 * time(&best), "{found:?} {best:?}");
        prop_assert!(little * 2 <= much, "{little} of {much}");
    }
}

#[test]
fn stock_stays_where_nothing_is_faster_beyond_the_intervals() {
    let time = |median_us: f64, half: f64| Measured {
        median_us,
        low_us: median_us - half,
        high_us: median_us + half,
        samples: 20,
    };
    let chain = Choice::read(Collective::Broadcast, "chain").unwrap();
    let mut race = Race::new(vec![Choice::Stock, chain], 4, 1024);
    while let Some((choices, _)) = race.next() {
        let of = |choice| if choice == chain { time(95.0, 6.0) } else { time(100.0, 6.0) };
        race.took(&choices.into_iter().map(|choice| (choice, Some(of(choice)))).collect::<Vec<_>>());
    }
    let found = race.found();
    assert_eq!((found.best, found.separates), (Choice::Stock, false));
}

#[test]
fn what_cannot_be_measured_is_out() {
    let chain = Choice::read(Collective::Broadcast, "chain").unwrap();
    let mut race = Race::new(vec![Choice::Stock, chain], 4, 1024);
    race.took(&[(Choice::Stock, None), (chain, None)]);
    assert_eq!(race.next(), None);
    assert_eq!((race.found().best, race.found().time), (Choice::Stock, None));
}

/// A table that is made of what was found chooses that, and the table behind it chooses for other shapes.
#[test]
fn a_table_of_what_was_found_chooses_it() {
    let chain = Choice::read(Collective::Broadcast, "chain:segment=4KiB").unwrap();
    let time = Measured { median_us: 1234.0, low_us: 1200.0, high_us: 1260.0, samples: 30 };
    let found = |best| Found {
        best,
        time: Some(time),
        stock: Some(time),
        second: None,
        separates: true,
        measured: 2,
        all: Vec::new(),
    };
    let all = [(1024, found(Choice::Stock)), (16384, found(chain)), (65536, found(chain))];
    let made = rules(Collective::Broadcast, SHAPE, &all);
    let table = Table::of_rules("t", vec!["measured".to_owned()], made, Table::shipped());
    let text = table.to_string();
    assert!(text.contains("16KiB in 1.23 ms (1.20 to 1.26), stock 1.23 ms"), "{text}");
    let table = Table::parse(&text, "t").unwrap();
    let choice = |bytes, shape| {
        let policy = Policy::new(Rules::new(&[], Some(&table), &table, None), shape);
        let call = Call::new(Collective::Broadcast, Bytes(bytes));
        policy.choose(&call, Capabilities::ALL, Epoch::FIRST).choice
    };
    for (bytes, expected) in [(1024, Choice::Stock), (4095, Choice::Stock), (4096, chain), (1 << 30, chain)] {
        assert_eq!(choice(bytes, SHAPE), expected, "{bytes}");
    }
    assert_ne!(choice(65536, CommunicatorShape { ranks: 15, nodes: 15, ..SHAPE }), chain);
    // Between nothing and something all is nearer to something.
    let made = rules(Collective::Broadcast, SHAPE, &[(0, found(Choice::Stock)), (1024, found(chain))]);
    let bytes = made.iter().map(|rule| rule.conditions.last().unwrap().to_string());
    assert_eq!(bytes.collect::<Vec<_>>(), ["bytes 0", "bytes 1.."]);
    // An allreduce of up to 64 KiB was left to the MPI, and so were those of 256 KiB, for which the shipped table had a ring.
    let made = rules(Collective::Broadcast, SHAPE, &[(64 << 10, found(Choice::Stock))]);
    assert_eq!(made[0].conditions.last().unwrap().to_string(), "bytes 64KiB..128KiB");
}

/// An interval of the fewer samples holds all of them, so few do not tell, unless they are very far apart.
#[test]
fn less_is_what_lies_below_both_intervals() {
    let time = |median_us: f64, half: f64, samples| Measured {
        median_us,
        low_us: median_us - half,
        high_us: median_us + half,
        samples,
    };
    let stock = time(100.0, 5.0, 20);
    for (other, expected) in [
        (time(90.0, 4.0, 6), true),
        (time(90.0, 4.0, 5), false),
        (time(90.0, 6.0, 20), false),
        (time(30.0, 0.0, 1), true),
        (stock, false),
    ] {
        assert_eq!(other.is_surely_below(&stock), expected, "{other:?}");
    }
}

#[test]
fn sizes_are_halved_as_ratios_until_they_are_near() {
    assert_eq!(between(1024, 16384), Some(4096));
    assert_eq!(between(1024, 2048), None);
    assert_eq!(between(0, 1), None);
}

/// Where nodes have several ranks, ways through their memory are among the candidates, and of one that may win the race tries how much of a segment is
/// handed on at once.
#[test]
fn overlaps_are_tried_on_two_levels() {
    let shape = CommunicatorShape::new(16, 4, None).unwrap();
    let all = candidates(Collective::Broadcast, shape, 1 << 20, Capabilities::ALL);
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    assert!(names.iter().any(|name| name.starts_with("two-level:between=chain,segment=16KiB")), "{names:?}");
    assert!(!names.contains(&"cells".to_owned()), "it is for one node");
    let there = Capabilities::ALL.without(Capabilities::SHARED);
    assert!(candidates(Collective::Broadcast, shape, 1 << 20, there).len() < all.len());
    let mut race = Race::new(all, 16, 1 << 20);
    let mut tried = Vec::new();
    while let Some((choices, _)) = race.next() {
        let time = |choice: Choice| {
            let name = choice.to_string();
            let us = if name.starts_with("two-level:between=chain,") { 100.0 } else { 1000.0 };
            let us = if name.contains("overlap=8KiB") { 90.0 } else { us };
            Measured { median_us: us, low_us: us - 1.0, high_us: us + 1.0, samples: 20 }
        };
        tried.extend(choices.iter().map(ToString::to_string));
        race.took(&choices.into_iter().map(|choice| (choice, Some(time(choice)))).collect::<Vec<_>>());
    }
    assert!(race.found().best.to_string().contains("overlap=8KiB"), "{:?} {tried:?}", race.found());
}

/// What they differ by is how nodes speak to each other.
#[test]
fn on_one_node_two_levels_are_one_way() {
    let shape = CommunicatorShape::new(8, 1, None).unwrap();
    for collective in Collective::ALL {
        let all = candidates(collective, shape, 64 << 10, Capabilities::ALL);
        let two_level: Vec<String> = all
            .iter()
            .map(|way| whole(*way).to_string())
            .filter(|name| name.starts_with("two-level"))
            .collect();
        assert!(two_level.iter().all(|name| name == "two-level"), "{collective}: {two_level:?}");
    }
}

/// Two of three calls were slow while there was little time for each way.
#[test]
fn a_bad_moment_does_not_cost_the_best_way_its_place() {
    let names = "multicast-pull chain:segment=1KiB chain:segment=2KiB chain:segment=4KiB binary:segment=1KiB \
                 binary:segment=2KiB binary:segment=4KiB binomial";
    let ways: Vec<Choice> =
        names.split_whitespace().map(|name| Choice::read(Collective::Broadcast, name).unwrap()).collect();
    let best = ways[0];
    let mut race = Race::among([&[Choice::Stock], &ways[..]].concat(), 16, 256 << 10);
    while let Some((choices, effort)) = race.next() {
        let measured = |choice: Choice| match (choice, ways.iter().position(|way| *way == choice)) {
            (Choice::Stock, _) => Measured { median_us: 90.0, low_us: 88.0, high_us: 91.0, samples: 6 },
            (_, Some(0)) if effort < Effort(4) => {
                Measured { median_us: 70.0, low_us: 45.0, high_us: 71.0, samples: 3 }
            }
            (_, Some(0)) => Measured { median_us: 44.0, low_us: 43.0, high_us: 45.0, samples: 6 },
            (_, place) => {
                let median_us = 50.0 + place.unwrap() as f64;
                Measured { median_us, low_us: median_us - 1.0, high_us: median_us + 1.0, samples: 3 }
            }
        };
        let times: Vec<_> = choices.into_iter().map(|choice| (choice, Some(measured(choice)))).collect();
        race.took(&times);
    }
    assert_eq!(race.found().best, best);
}

/// The same with ten calls, six of which met lost packets: their interval is no less wide for that.
#[test]
fn calls_that_lie_far_apart_do_not_cost_a_way_its_place() {
    let names = ["multicast-push", "opt-tree", "binary"];
    let ways = names.map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let mut race = Race::among([&[Choice::Stock], &ways[..]].concat(), 16, 1 << 10);
    while let Some((choices, effort)) = race.next() {
        let measured = |choice: &Choice| match *choice {
            way if way == ways[0] && effort < Effort(2) => {
                Measured { median_us: 107e3, low_us: 355.0, high_us: 281e3, samples: 10 }
            }
            way if way == ways[0] => {
                Measured { median_us: 355.0, low_us: 347.0, high_us: 362.0, samples: 60 }
            }
            Choice::Stock => Measured { median_us: 453.0, low_us: 447.0, high_us: 457.0, samples: 35 },
            _ => Measured { median_us: 534.0, low_us: 499.0, high_us: 570.0, samples: 34 },
        };
        race.took(&choices.iter().map(|choice| (*choice, Some(measured(choice)))).collect::<Vec<_>>());
    }
    assert_eq!(race.found().best, ways[0]);
}

/// Packets that were lost at the beginning cost three of the MPI's first four calls 200 ms: nobody is 200 times as fast for that.
#[test]
fn a_bad_moment_does_not_cost_stock_its_place() {
    let ways = ["binary", "binomial"].map(|name| Choice::read(Collective::Broadcast, name).unwrap());
    let mut race = Race::among([&[Choice::Stock], &ways[..]].concat(), 16, 1 << 10);
    while let Some((choices, effort)) = race.next() {
        let measured = |choice: &Choice| match *choice {
            Choice::Stock if effort < Effort(2) => {
                Measured { median_us: 126e3, low_us: 600.0, high_us: 245e3, samples: 4 }
            }
            Choice::Stock => Measured { median_us: 540.0, low_us: 530.0, high_us: 550.0, samples: 50 },
            _ => Measured { median_us: 640.0, low_us: 600.0, high_us: 680.0, samples: 26 },
        };
        race.took(&choices.iter().map(|choice| (*choice, Some(measured(choice)))).collect::<Vec<_>>());
    }
    assert_eq!(race.found().best, Choice::Stock);
}

/// Else a table that was tuned lost what the shipped one has.
#[test]
fn what_the_shipped_table_names_is_measured() {
    let is_measured = |rule: &Rule| {
        [(8, 1), (32, 8), (16, 16), (64, 64)].into_iter().any(|(ranks, nodes)| {
            // Trees that are planned for switches are measured where there are several.
            let shape =
                CommunicatorShape::new(ranks, nodes, None).unwrap().on_switches(nodes.min(2)).unwrap();
            let all = candidates(rule.collective, shape, 256 << 10, Capabilities::ALL);
            all.iter().any(|choice| whole(*choice) == whole(rule.choice))
        })
    };
    let table = Table::shipped();
    let missing = table.rules().iter().filter(|rule| rule.choice != Choice::Stock && !is_measured(rule));
    let missing: Vec<String> =
        missing.map(|rule| format!("line {}: {} by {}", rule.line, rule.collective, rule.choice)).collect();
    assert_eq!(missing, [""; 0]);
}
