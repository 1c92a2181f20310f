use proptest::prelude::*;

use super::*;
use crate::policy::{CallCounts, Explanation, Verdict};

const BROADCAST: Collective = Collective::Broadcast;

fn call(bytes: u64) -> Call {
    Call { collective: BROADCAST, bytes: Bytes(bytes) }
}

fn by_table(table: &Table) -> Rules<'_> {
    Rules { forced: None, table, prediction: None }
}

fn table(rules: &[(&str, &str)]) -> Table {
    let rules = rules.iter().map(|(conditions, choice)| {
        format!("[[rule]]\ncollective = \"bcast\"\n{conditions}\nuse = \"{choice}\"\n")
    });
    Table::parse(&format!("version = 1\n{}", rules.collect::<String>()), "t").unwrap()
}

fn shape(nodes: u32) -> CommunicatorShape {
    CommunicatorShape::new(nodes, nodes, None).unwrap()
}

fn written(policy: &Policy, there: Capabilities) -> Vec<String> {
    let sizes = policy.sizes(BROADCAST, there, Epoch::default()).into_iter();
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
        condition.range.contains(condition.property.of(shape, call, earlier_calls))
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

/// A choice as it is written.
fn choice() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["stock", "binomial", "chain:segment=2KiB", "multicast-pull"][..])
}

fn rule() -> impl Strategy<Value = String> {
    let keys = ["ranks", "nodes", "ranks_per_node", "switches", "bytes", "earlier_calls"].map(|key| {
        prop::option::weighted(0.3, range())
            .prop_map(move |range| range.map_or_else(String::new, |range| format!("{key} = \"{range}\"\n")))
    });
    (keys, choice()).prop_map(|(keys, choice)| {
        format!("[[rule]]\ncollective = \"bcast\"\n{}use = \"{choice}\"\n", keys.concat())
    })
}

prop_compose! {
    fn random_table()(rules in prop::collection::vec(rule(), 0..12)) -> Table {
        Table::parse(&format!("version = 1\n{}", rules.concat()), "t").unwrap()
    }
}

prop_compose! {
    fn random_shape()(nodes in 1u32..8, more in 0u32..12, switches in 1u32..9) -> CommunicatorShape {
        CommunicatorShape::new(nodes + more, nodes, None).unwrap().on_switches(switches.min(nodes)).unwrap()
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
        shape in random_shape(),
        calls in prop::collection::vec((number(), number(), there()), 1..30),
    ) {
        let policy = Policy::new(by_table(&table), shape);
        for (bytes, earlier_calls, there) in calls {
            let call = call(bytes);
            let decision = *policy.choose(&call, there, policy.epoch(BROADCAST, earlier_calls));
            let place = first_match(&table, shape, there, &call, earlier_calls);
            let by_rule = |place: usize| Decision { choice: table.rules()[place].choice, by: By::Rule(place) };
            prop_assert_eq!(decision, place.map_or(Decision::STOCK, by_rule));
            let explanation = Explanation::new(by_table(&table), shape, there, &call, earlier_calls);
            prop_assert_eq!(explanation.decision, decision);
            let matches = explanation.looked_at.iter().map(|rule| rule.verdict == Verdict::Matches);
            let expected = (0..table.rules().len()).map(|rule| Some(rule) == place);
            let until = place.map_or(table.rules().len(), |place| place + 1);
            prop_assert!(matches.eq(expected.take(until)), "{:?}", explanation);
        }
    }

    /// As the ranks of a job do: they count, and take everything for possible until they need it.
    #[test]
    fn ranks_that_count_and_try_decide_as_one_who_knows(
        table in random_table(),
        forced in prop::option::of(choice()),
        shape in random_shape(),
        there in there(),
        sizes in prop::collection::vec(number(), 1..30),
    ) {
        let rules = Rules { forced: forced.map(|choice| choice.parse().unwrap()), ..by_table(&table) };
        let policy = Policy::new(rules, shape);
        let (mut counts, mut assumed) = (CallCounts::default(), Capabilities::ALL);
        for (earlier_calls, bytes) in sizes.into_iter().enumerate() {
            let epoch = counts.next(&policy, BROADCAST);
            let mut decision = policy.choose(&call(bytes), assumed, epoch);
            while !there.has(decision.choice.needs()) {
                assumed = assumed.without(decision.choice.needs().without(there));
                decision = policy.choose(&call(bytes), assumed, epoch);
            }
            let known = Explanation::new(rules, shape, there, &call(bytes), earlier_calls as u64);
            prop_assert_eq!(*decision, known.decision);
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
    let written = |there, predicted: &[(Bytes, Choice)]| {
        written(&Policy([[Stage::new(None, predicted, &relevant, 0)].into()]), there)
    };
    let from_4 = [(Bytes(4), flat), (Bytes(32), chain)];
    let from_50 = [(Bytes(50), chain)];
    assert_eq!(
        written(Capabilities::ALL, &from_4),
        ["0 stock", "8 flat", "32 chain", "100 multicast-pull", "200 chain"]
    );
    assert_eq!(written(Capabilities::PRIVATE, &from_4), ["0 stock", "8 flat", "32 chain"]);
    assert_eq!(written(Capabilities::PRIVATE, &from_50), ["0 stock", "8 binomial", "50 chain"]);
    assert_eq!(written(Capabilities::NONE, &from_4), ["0 stock"]);
}

#[test]
fn a_forced_choice_serves_every_size_where_it_can() {
    let table = table(&[("bytes = \"8..\"", "chain")]);
    for (forced, with_multicast, without, alone) in [
        ("multicast-pull", &["0 multicast-pull"][..], &["0 stock", "8 chain"][..], &["0 stock"][..]),
        ("flat", &["0 flat"], &["0 flat"], &["0 stock"]),
        ("stock", &["0 stock"], &["0 stock"], &["0 stock"]),
    ] {
        let rules = Rules { forced: Some(forced.parse().unwrap()), ..by_table(&table) };
        let policy = Policy::new(rules, shape(4));
        assert_eq!(written(&policy, Capabilities::ALL), with_multicast, "{forced}");
        assert_eq!(written(&policy, Capabilities::PRIVATE), without, "{forced}");
        assert_eq!(written(&policy, Capabilities::NONE), alone, "{forced}");
    }
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
        let epoch = counts.next(&policy, BROADCAST);
        assert_eq!(soon, epoch);
        policy.choose(&call(1), Capabilities::ALL, epoch).choice.to_string()
    };
    let chosen: Vec<String> = (0..7).map(|_| next()).collect();
    assert_eq!(chosen, ["stock", "stock", "chain", "chain", "chain", "flat", "flat"]);
    assert_eq!(policy.epochs(BROADCAST).map(|(first, _)| first).collect::<Vec<_>>(), [0, 2, 5]);
}
