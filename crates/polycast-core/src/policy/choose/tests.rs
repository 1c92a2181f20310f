use proptest::prelude::*;

use super::*;
use crate::algorithm::Registry;
use crate::network::Network;
use crate::policy::{CallCounts, Explanation, Verdict};
use crate::units::Nanos;

pub(super) const BROADCAST: Collective = Collective::Broadcast;

pub(super) fn call(bytes: u64) -> Call {
    Call::new(BROADCAST, Bytes(bytes))
}

fn by_table(table: &Table) -> Rules<'_> {
    Rules::new(&[], None, table, None)
}

fn collective() -> impl Strategy<Value = Collective> {
    prop::sample::select(&Collective::ALL[..])
}

pub(super) fn table(rules: &[(&str, &str)]) -> Table {
    let rules = rules.iter().map(|(conditions, choice)| {
        format!("[[rule]]\ncollective = \"bcast\"\n{conditions}\nuse = \"{choice}\"\n")
    });
    Table::parse(&format!("version = 1\n{}", rules.collect::<String>()), "t").unwrap()
}

pub(super) fn shape(nodes: u32) -> CommunicatorShape {
    CommunicatorShape::new(nodes, nodes, None).unwrap()
}

/// A policy with these stages for each collective, and none for sums.
fn of_stages(stages: impl Fn() -> Box<[Stage]>) -> Policy {
    let ways = WaysOfSums::new(ServedSums::Mpi, shape(4));
    Policy::of_stages(std::array::from_fn(|_| stages()), [Stage::of_mpi(), Stage::of_mpi()], ways)
}

fn written(policy: &Policy, there: Capabilities) -> Vec<String> {
    let sizes = policy.sizes(&call(0), there, Epoch::default()).into_iter();
    sizes.map(|(first, choice)| format!("{} {choice}", first.0)).collect()
}

/// The definition that a prepared policy must agree with: the place of the first rule that is for the call.
fn first_match(
    table: &Table,
    shape: CommunicatorShape,
    there: Capabilities,
    call: &Call,
    earlier_calls: u64,
) -> Option<usize> {
    let holds = |condition: &crate::policy::Condition| {
        condition.property.of(shape, call, earlier_calls).is_some_and(|value| condition.range.contains(value))
    };
    table.rules().iter().position(|rule| {
        rule.collective == call.collective
            && there.has(rule.choice.needs())
            && rule.conditions.iter().all(holds)
    })
}

fn range() -> impl Strategy<Value = String> {
    // Few different numbers, so that rules meet, overlap and hide each other.
    let number = || prop_oneof![0u64..20, Just(u64::MAX - 1), Just(u64::MAX)];
    prop_oneof![
        number().prop_map(|n| n.to_string()),
        number().prop_map(|n| format!("{n}..")),
        number().prop_map(|n| format!("..{}", n.max(1))),
        (number(), number()).prop_filter("empty", |(a, b)| a < b).prop_map(|(a, b)| format!("{a}..{b}")),
    ]
}

/// A choice for a collective.
fn choice(of: Collective) -> impl Strategy<Value = Choice> {
    let more = match of {
        BROADCAST => {
            ["binomial", "chain:segment=2KiB", "multicast-pull"].map(|text| text.parse().unwrap()).to_vec()
        }
        of => Registry::BUILT_IN.samples(of).into_iter().map(Choice::Algorithm).collect(),
    };
    prop::sample::select([vec![Choice::Stock], more].concat())
}

fn choices() -> impl Strategy<Value = (Collective, Choice)> {
    collective().prop_flat_map(|of| choice(of).prop_map(move |choice| (of, choice)))
}

fn rule() -> impl Strategy<Value = String> {
    let keys = Property::ALL.map(|key| {
        prop::option::weighted(0.3, range())
            .prop_map(move |range| range.map_or_else(String::new, |range| format!("{key} = \"{range}\"\n")))
    });
    (keys, choices()).prop_map(|(keys, (collective, choice))| {
        format!("[[rule]]\ncollective = \"{collective}\"\n{}use = \"{choice}\"\n", keys.concat())
    })
}

prop_compose! {
    fn random_table()(rules in prop::collection::vec(rule(), 0..40)) -> Table {
        Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap()
    }
}

prop_compose! {
    fn random_shape()(nodes in 1u32..8, more in 0u32..12, switches in 1u32..9) -> CommunicatorShape {
        CommunicatorShape::new(nodes + more, nodes, None).unwrap().on_switches(switches.min(nodes)).unwrap()
    }
}

prop_compose! {
    fn network()(
        rate in prop::option::of(prop::sample::select(&["8kbit", "20mbit", "1gbit"][..])),
        latency in prop::option::of(0u64..20),
        multicast in prop::option::of(prop::sample::select(&["8kbit", "9kbit", "1gbit"][..])),
    ) -> Network {
        let read = |text: Option<&str>| text.map(|text| text.parse().unwrap());
        Network { rate: read(rate), latency: latency.map(Nanos), multicast_rate: read(multicast) }
    }
}

fn there() -> impl Strategy<Value = Capabilities> {
    prop::sample::select(&[Capabilities::ALL, Capabilities::PRIVATE, Capabilities::NONE][..])
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..24, any::<u64>(), Just(u64::MAX)]
}

proptest! {
    #[test]
    fn a_policy_decides_as_the_first_matching_rule_does(
        table in random_table(),
        (shape, network) in (random_shape(), prop::option::of(network())),
        calls in prop::collection::vec((collective(), number(), number(), there()), 1..60),
    ) {
        let shape = CommunicatorShape { network, ..shape };
        let policy = Policy::new(by_table(&table), shape);
        for (collective, bytes, earlier_calls, there) in calls {
            let call = Call::new(collective, Bytes(bytes));
            let decision = *policy.choose(&call, there, policy.epoch(collective, earlier_calls));
            let place = first_match(&table, shape, there, &call, earlier_calls);
            let by_rule = |place: usize| Decision { choice: table.rules()[place].choice, by: By::Rule(place) };
            prop_assert_eq!(decision, place.map_or(Decision::STOCK, by_rule));
            let explanation = Explanation::new(by_table(&table), shape, there, &call, earlier_calls);
            prop_assert_eq!(explanation.decision, decision);
            let matches = explanation.looked_at.iter().map(|rule| rule.verdict == Verdict::Matches);
            let until = place.map_or(table.rules().len(), |place| place + 1);
            let looked_at = table.rules()[..until].iter().enumerate();
            let expected = looked_at
                .filter(|(_, rule)| rule.collective == call.collective)
                .map(|(rule, _)| Some(rule) == place);
            prop_assert!(matches.eq(expected), "{:?}", explanation);
        }
    }

    /// Jobs ask the network only where this says so.
    #[test]
    fn what_does_not_ask_is_the_same_on_any_network(
        (table, shape, network) in (random_table(), random_shape(), network()),
        forced in prop::option::of(choices()),
        calls in prop::collection::vec((collective(), number(), number(), there()), 1..60),
    ) {
        let rules = Rules::new(forced.as_slice(), None, &table, None);
        let (before, after) = (Policy::new(rules, shape), Policy::new(rules, shape.on_network(network)));
        prop_assert!(!after.asks(), "all is known");
        for (collective, bytes, earlier_calls, there) in calls {
            let call = Call::new(collective, Bytes(bytes));
            let epoch = before.epoch(collective, earlier_calls);
            prop_assert_eq!(epoch, after.epoch(collective, earlier_calls), "calls are counted on");
            let choice = before.choose(&call, there, epoch).choice;
            if !before.asks_before(&call, there, epoch) {
                prop_assert_eq!(choice, after.choose(&call, there, epoch).choice);
            } else {
                prop_assert!(before.asks() && there != Capabilities::NONE);
            }
        }
    }

    /// As the ranks of a job do: they count, and take everything for possible until they need it.
    #[test]
    fn ranks_that_count_and_try_decide_as_one_who_knows(
        (table, user) in (random_table(), prop::option::of(random_table())),
        forced in prop::option::of(choices()),
        shape in random_shape(),
        there in there(),
        calls in prop::collection::vec((collective(), number()), 1..60),
    ) {
        let rules = Rules::new(forced.as_slice(), user.as_ref(), &table, None);
        let policy = Policy::new(rules, shape);
        let (mut counts, mut assumed) = (CallCounts::default(), Capabilities::ALL);
        let mut earlier_calls = [0; Collective::ALL.len()];
        for (collective, bytes) in calls {
            let call = Call::new(collective, Bytes(bytes));
            let epoch = counts.next(&policy, &call);
            let mut decision = policy.choose(&call, assumed, epoch);
            while !there.has(decision.choice.needs()) {
                assumed = assumed.without(decision.choice.needs().without(there));
                decision = policy.choose(&call, assumed, epoch);
            }
            let known = Explanation::new(rules, shape, there, &call, earlier_calls[collective as usize]);
            // What nobody ever serves passes by.
            earlier_calls[collective as usize] += u64::from(!policy.leaves(&call));
            prop_assert_eq!(*decision, known.decision);
            let is_left = |(_, epoch): (u64, Epoch)| {
                policy.choose(&call, there, epoch).choice == Choice::Stock
                    && !policy.asks_before(&call, there, epoch)
            };
            prop_assert!(!policy.leaves(&call) || policy.epochs(collective).all(is_left));
            if decision.by == By::Forced {
                prop_assert_eq!(forced, Some((collective, decision.choice)));
            }
        }
    }
}

#[test]
fn predictions_decide_among_trees_and_where_no_rule_is() {
    let table = table(&[
        ("bytes = \"..8\"", "stock"),
        ("bytes = \"8..64\"", "binomial"),
        ("bytes = \"100..200\"", "multicast-pull"),
    ]);
    let [flat, chain]: [Choice; 2] = ["flat", "chain"].map(|name| name.parse().unwrap());
    let relevant: Vec<Relevant> = relevant(&table, BROADCAST, shape(4)).collect();
    let policy = |predicted: &[Best]| {
        let stages = || [Stage::new(None, predicted, &relevant, &[], 0)].into();
        of_stages(stages)
    };
    let written = |there, predicted: &[Best]| written(&policy(predicted), there);
    let best = |first, choice, runner_up| Best { first: Bytes(first), choice, runner_up };
    let from_4 = [best(4, flat, None), best(32, chain, Some(flat))];
    let from_50 = [best(50, chain, None)];
    assert_eq!(
        written(Capabilities::ALL, &from_4),
        ["0 stock", "8 flat", "32 chain", "100 multicast-pull", "200 chain"]
    );
    assert_eq!(written(Capabilities::PRIVATE, &from_4), ["0 stock", "8 flat", "32 chain"]);
    assert_eq!(written(Capabilities::PRIVATE, &from_50), ["0 stock", "8 binomial", "50 chain"]);
    assert_eq!(written(Capabilities::NONE, &from_4), ["0 stock"]);

    let policy = policy(&from_4);
    let ways = |bytes, there| -> Vec<String> {
        let of = policy.sameness(&call(bytes), there, Epoch(0));
        policy.ways_of(of).map(|way| way.to_string()).collect()
    };
    assert_eq!(
        ways(7, Capabilities::ALL),
        ["stock"],
        "where the table leaves it to the MPI nothing is compared"
    );
    assert_eq!(ways(8, Capabilities::ALL), ["flat", "stock"], "nothing is close");
    assert_eq!(ways(32, Capabilities::ALL), ["chain", "flat", "stock"]);
    assert_eq!(ways(100, Capabilities::ALL), ["multicast-pull", "chain", "flat", "stock"]);
    assert_eq!(ways(100, Capabilities::NONE), ["stock"]);
}

/// Predictions are of messages: what a rule serves through shared memory they do not replace.
#[test]
fn predictions_leave_shared_memory_to_the_rules() {
    let table = table(&[("bytes = \"..64\"", "two-level"), ("", "binomial")]);
    let relevant: Vec<Relevant> = relevant(&table, BROADCAST, shape(4)).collect();
    let best = [Best { first: Bytes(0), choice: "flat".parse().unwrap(), runner_up: None }];
    let policy = of_stages(|| [Stage::new(None, &best, &relevant, &[], 0)].into());
    assert_eq!(written(&policy, Capabilities::ALL), ["0 two-level", "64 flat"]);
}

/// A rule's next best is compared with its choice, where both can be had.
#[test]
fn trials_compare_what_a_rule_names_next() {
    let text = "version = 1\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"..64\"\nuse = \"chain\"\nnext = \"multicast-pull\"\n\
        [[rule]]\ncollective = \"bcast\"\nuse = \"multicast-pull\"\nnext = \"binary\"\n\
        [[rule]]\ncollective = \"bcast\"\nuse = \"binary\"\nnext = \"chain\"\n";
    let table = Table::parse(text, "t").unwrap();
    let policy = Policy::new(Rules::new(&[], Some(&table), &table, None), shape(4));
    let ways = |bytes, there| -> Vec<String> {
        let of = policy.sameness(&call(bytes), there, Epoch(0));
        policy.ways_of(of).map(|way| way.to_string()).collect()
    };
    assert_eq!(ways(8, Capabilities::ALL), ["chain", "multicast-pull", "stock"]);
    assert_eq!(ways(8, Capabilities::PRIVATE), ["chain", "stock"]);
    assert_eq!(ways(64, Capabilities::ALL), ["multicast-pull", "binary", "stock"], "it is there already");
    let error = Table::parse(&text.replace("\"chain\"\n", "\"chan\"\n"), "t").unwrap_err().to_string();
    assert!(error.contains("use: ") || error.contains("next: "), "{error}");
}

#[test]
fn a_forced_choice_serves_every_size_where_it_can() {
    let table = table(&[("bytes = \"8..\"", "chain")]);
    for (forced, with_multicast, without, alone) in [
        ("multicast-pull", &["0 multicast-pull"][..], &["0 stock", "8 chain"][..], &["0 stock"][..]),
        ("flat", &["0 flat"], &["0 flat"], &["0 stock"]),
        ("stock", &["0 stock"], &["0 stock"], &["0 stock"]),
    ] {
        let for_broadcasts = [(BROADCAST, forced.parse().unwrap())];
        let policy = Policy::new(Rules::new(&for_broadcasts, None, &table, None), shape(4));
        let reduce = Call::new(Collective::Reduce, Bytes(8));
        assert_eq!(
            policy.choose(&reduce, Capabilities::ALL, Epoch(7)),
            &Decision::STOCK,
            "and no other call"
        );
        assert_eq!(written(&policy, Capabilities::ALL), with_multicast, "{forced}");
        assert_eq!(written(&policy, Capabilities::PRIVATE), without, "{forced}");
        assert_eq!(written(&policy, Capabilities::NONE), alone, "{forced}");
    }
}

#[test]
fn the_network_is_asked_only_where_it_may_decide() {
    let table_of = table;
    let table = table_of(&[
        ("bytes = \"..8\"", "stock"),
        ("rate = \"1gbit..\"\nbytes = \"8..16\"", "stock"),
        ("bytes = \"16..32\"", "chain"),
        ("multicast_percent = \"50..\"", "multicast-pull"),
        ("latency = \"..5us\"", "flat"),
    ]);
    let policy = Policy::new(by_table(&table), shape(4));
    let asks = |bytes, there| policy.asks_before(&call(bytes), there, Epoch(0));
    assert!(!asks(7, Capabilities::ALL), "the MPI serves it on any network");
    assert!(asks(8, Capabilities::ALL) && asks(8, Capabilities::PRIVATE));
    assert!(!asks(8, Capabilities::NONE), "nothing else can serve");
    assert!(
        asks(16, Capabilities::ALL),
        "any network serves it by a chain; but it is the first that is served"
    );
    let fast = Network {
        rate: "1gbit".parse().ok(),
        latency: Some(Nanos(4000)),
        multicast_rate: "400mbit".parse().ok(),
    };
    let chosen = |network| {
        let policy = Policy::new(by_table(&table), shape(4).on_network(network));
        assert!(!policy.asks());
        written(&policy, Capabilities::ALL)
    };
    assert_eq!(chosen(fast), ["0 stock", "16 chain", "32 flat"]);
    assert_eq!(chosen(Network::default()), ["0 stock", "8 multicast-pull", "16 chain", "32 multicast-pull"]);
    let stock = table_of(&[("rate = \"1gbit..\"", "stock")]);
    assert!(!Policy::new(by_table(&stock), shape(4)).asks(), "nothing is served");
}

#[test]
fn neighbours_with_the_same_choice_are_one_interval() {
    let table = table(&[("bytes = \"4..8\"", "chain"), ("bytes = \"8..16\"", "chain")]);
    let policy = Policy::new(by_table(&table), shape(2));
    assert_eq!(written(&policy, Capabilities::ALL), ["0 stock", "4 chain", "16 stock"]);
}

#[test]
fn a_choice_changes_at_a_call_number() {
    let table =
        table(&[("earlier_calls = \"..2\"", "stock"), ("earlier_calls = \"5..\"", "flat"), ("", "chain")]);
    let policy = Policy::new(by_table(&table), shape(2));
    let mut counts = CallCounts::default();
    let mut next = || {
        let soon = counts.peek(&policy, BROADCAST);
        let epoch = counts.next(&policy, &call(1));
        assert_eq!(soon, epoch);
        policy.choose(&call(1), Capabilities::ALL, epoch).choice.to_string()
    };
    let chosen: Vec<String> = (0..7).map(|_| next()).collect();
    assert_eq!(chosen, ["stock", "stock", "chain", "chain", "chain", "flat", "flat"]);
    assert_eq!(policy.epochs(BROADCAST).map(|(first, _)| first).collect::<Vec<_>>(), [0, 2, 5]);
}

/// A rule for memory that is not there leaves the word to those behind it, which may be about the network.
#[test]
fn what_needs_memory_hides_no_question() {
    let table = table(&[("", "two-level"), ("rate = \"..1gbit\"", "chain")]);
    let policy = Policy::new(by_table(&table), shape(4));
    assert!(policy.asks_before(&call(1), Capabilities::PRIVATE, Epoch::default()));
    assert!(
        !Policy::new(by_table(&self::table(&[("", "flat"), ("rate = \"..1gbit\"", "chain")])), shape(4))
            .asks()
    );
}

/// Of the sizes that are left in each epoch, on any communicator, the shortest and the longest ones pass by.
#[test]
fn what_nobody_ever_serves_passes_by() {
    let passing = |rules: &[(&str, &str)], shape| -> Vec<u64> {
        let table = table(rules);
        let policy = Policy::new(by_table(&table), shape);
        [1, 7, 8, 15, 16, 63, 64, 1 << 40].into_iter().filter(|bytes| policy.leaves(&call(*bytes))).collect()
    };
    let chain = |bytes| (bytes, "chain");
    assert_eq!(passing(&[chain("bytes = \"8..64\"")], shape(4)), [1, 7, 64, 1 << 40]);
    assert_eq!(
        passing(&[chain("bytes = \"8..16\""), chain("bytes = \"64..\"")], shape(4)),
        [1, 7],
        "between"
    );
    let later = [chain("bytes = \"8..16\""), chain("bytes = \"64..\"\nearlier_calls = \"3..\"")];
    assert_eq!(passing(&later, shape(4)), [1, 7], "in some epoch");
    assert_eq!(passing(&[chain("rate = \"..1gbit\"")], shape(4)), [0u64; 0], "nobody has asked");
    assert_eq!(passing(&[("bytes = \"8..\"", "two-level")], shape(4)), [1, 7], "it may have memory");
    assert_eq!(passing(&[], shape(4)).len(), 8);
    assert_eq!(passing(&[chain("")], shape(4)), [0u64; 0]);

    let table = table(&[("bytes = \"8..\"\nearlier_calls = \"2..\"", "chain")]);
    let policy = Policy::new(by_table(&table), shape(2));
    let mut counts = CallCounts::default();
    let chosen = [1, 1, 1, 8, 1, 8, 8].map(|bytes| {
        policy.choose(&call(bytes), Capabilities::ALL, counts.next(&policy, &call(bytes))).choice.to_string()
    });
    assert_eq!(chosen, ["stock", "stock", "stock", "stock", "stock", "stock", "chain"], "not counted either");
}
