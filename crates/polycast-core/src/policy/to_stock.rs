//! The calls that go to the MPI on every communicator of a job, for ever or at first, so that no
//! communicator's rules need be looked at for them: what a door leaves by itself before a
//! communicator is attached.

use super::challengers::{CHALLENGED, are_challenged};
use super::choose::{Stage, borders};
use super::{Choice, Collective, CommunicatorShape, Passing, Property, Range, Rule, Rules, ServedSums};

/// Bounds of the number of ranks of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// The fewest ranks.
    pub least: u32,
    /// The most ranks.
    pub most: u32,
}

/// Communicators with a number of ranks within these bounds, whose ranks are some of a larger set;
/// the shape is that of the larger set.
pub type Communicators = (Ranks, CommunicatorShape);

/// Sizes of one collective's calls that go to the MPI on one communicator, however many came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToStock {
    /// Fewer bytes than this.
    pub below: u64,
    /// More bytes than this.
    pub above: u64,
}

impl ToStock {
    /// No size.
    pub const NOTHING: ToStock = ToStock { below: 0, above: u64::MAX };
    /// All sizes.
    pub const ALL: ToStock = ToStock { below: u64::MAX, above: 0 };

    /// The sizes that go to the MPI in all of these stages.
    pub(super) fn of<'a>(stages: impl Iterator<Item = &'a Stage> + Clone) -> ToStock {
        let below = stages.clone().map(|stage| {
            let first = stage.intervals.iter().position(|interval| !interval.is_to_stock());
            first.map_or(u64::MAX, |first| stage.first_bytes[first])
        });
        let above = stages.map(|stage| {
            let last = stage.intervals.iter().rposition(|interval| !interval.is_to_stock());
            last.map_or(0, |last| stage.first_bytes.get(last + 1).map_or(u64::MAX, |next| next - 1))
        });
        ToStock { below: below.min().unwrap_or(0), above: above.max().unwrap_or(u64::MAX) }
    }

    #[inline]
    pub(super) fn has(&self, bytes: u64) -> bool {
        bytes < self.below || bytes > self.above
    }
}

/// True if all sums among a collective's calls are served, whatever the rules say.
fn are_all_summed(rules: Rules<'_>, collective: Collective) -> bool {
    collective.combines() && rules.sums() == ServedSums::Canonical
}

/// The calls of each collective that a door leaves on any of these communicators (`ranks` of a
/// larger set of shape `most`) before it is attached, whatever the network between the ranks is
/// like. What no rule ever serves is uncounted; what rules serve from a later call on only is
/// counted until then; but for reductions of all ranks of the larger set, among which sums are
/// served from the first one on or never.
pub fn passing_at_first(rules: Rules<'_>, of: Communicators) -> [Passing; Collective::ALL.len()] {
    Collective::ALL.map(|collective| match rules.forced(collective) {
        _ if are_all_summed(rules, collective) => Passing::NOTHING,
        Some(Choice::Stock) => Passing { uncounted: ToStock::ALL, ..Passing::NOTHING },
        Some(_) => Passing::NOTHING,
        None if rules.prediction(collective).is_some() => Passing::NOTHING,
        None => {
            let served = served(rules, collective, of);
            let uncounted = match (served.first(), served.last()) {
                (Some(first), Some(last)) => ToStock { below: first.first_bytes, above: last.last_bytes },
                _ => ToStock::ALL,
            };
            let are_all = of.0.least == of.1.ranks;
            let until = served.first().filter(|_| !(are_all && collective.combines()));
            let until = until.map_or(0, |first| first.earlier_calls);
            let sooner = served.iter().find(|later| later.earlier_calls < until);
            let last = sooner.map_or(u64::MAX, |sooner| sooner.first_bytes - 1);
            Passing { uncounted, counted: (0, last), until }
        }
    })
}

/// Sizes of calls that some rule may serve, after a number of calls.
struct ServedSizes {
    first_bytes: u64,
    last_bytes: u64,
    earlier_calls: u64,
}

/// The sizes that some rule may serve, or that have challengers, rising.
fn served(rules: Rules<'_>, collective: Collective, of: Communicators) -> Vec<ServedSizes> {
    let all = || rules.table(collective).rules().iter().filter(|rule| rule.collective == collective);
    let challenged = CHALLENGED.iter().filter(|_| rules.challenges(collective) && may_be_challenged(of));
    let of_challenged = challenged.clone().map(|sizes| Range::from_to(sizes.first_bytes, u64::MAX));
    let starts = borders(all().map(|rule| range_of(rule, Property::Bytes)).chain(of_challenged));
    let lasts = starts.iter().skip(1).map(|next| next - 1).chain([u64::MAX]);
    let sizes = starts.iter().zip(lasts).filter_map(|(&first_bytes, last_bytes)| {
        let for_it = all().filter(|rule| range_of(rule, Property::Bytes).contains(first_bytes));
        let challenged = challenged.clone().filter(|sizes| sizes.first_bytes <= first_bytes);
        let compared = challenged.map(|sizes| sizes.first_call);
        let earlier_calls = first_served_call(for_it, of).into_iter().chain(compared).min()?;
        Some(ServedSizes { first_bytes, last_bytes, earlier_calls })
    });
    sizes.collect()
}

/// True if calls on some of these communicators have challengers.
fn may_be_challenged((ranks, most): Communicators) -> bool {
    let on_one_node = ranks.most.min(most.ranks_per_node);
    are_challenged(ranks.most.min(most.ranks), most.nodes.min(ranks.most)) || are_challenged(on_one_node, 1)
}

fn range_of(rule: &Rule, property: Property) -> Range {
    let condition = rule.conditions.iter().find(|condition| condition.property == property);
    condition.map_or(Range::all(), |condition| condition.range)
}

/// The number of calls after which one of these rules may serve some communicator, where the first
/// rule that holds decides. `None` if none may.
fn first_served_call<'a>(rules: impl Iterator<Item = &'a Rule>, (ranks, most): Communicators) -> Option<u64> {
    let mut first: Option<u64> = None;
    for rule in rules {
        let mut others = rule.conditions.iter().filter(|condition| condition.property != Property::Bytes);
        let is_on_one_node = others.clone().any(|of| of.property == Property::Nodes && of.range.last() < 2);
        let may_hold = others.clone().all(|condition| {
            let largest = match condition.property {
                Property::Ranks if is_on_one_node => ranks.most.min(most.ranks_per_node),
                Property::Ranks => ranks.most,
                Property::Nodes => ranks.most.min(most.nodes),
                Property::RanksPerNode => ranks.most.min(most.ranks_per_node),
                Property::RanksPerProcessor => most.ranks_per_processor,
                Property::Switches => most.switches,
                _ => return true,
            };
            let least = if condition.property == Property::Ranks { ranks.least } else { 0 };
            condition.range.first() <= u64::from(largest) && condition.range.last() >= u64::from(least)
        });
        match rule.choice {
            Choice::Stock if others.next().is_none() => break,
            Choice::Algorithm(_) if may_hold => {
                let call = range_of(rule, Property::EarlierCalls).first();
                first = Some(first.map_or(call, |sooner| sooner.min(call)));
            }
            _ => {}
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Call, Capabilities, Policy, Table};
    use super::*;
    use crate::network::Network;
    use crate::units::Bytes;

    fn shape(ranks: u32, nodes: u32) -> CommunicatorShape {
        CommunicatorShape::new(ranks, nodes, None).unwrap()
    }

    /// All that have several ranks.
    fn of(most: CommunicatorShape) -> Communicators {
        (Ranks { least: 2, most: most.ranks }, most)
    }

    fn uncounted(text: &str, most: CommunicatorShape) -> ToStock {
        let table = Table::parse(&format!("version = 1\n{text}"), "a table").unwrap();
        passing_at_first(Rules::new(&[], Some(&table), &Table::shipped(), None), of(most))[0].uncounted
    }

    fn below(text: &str, most: CommunicatorShape) -> u64 {
        uncounted(text, most).below
    }

    #[test]
    fn the_first_size_that_may_be_served_is_found() {
        let rule = |conditions: &str, choice: &str| {
            format!("[[rule]]\ncollective = \"bcast\"\n{conditions}\nuse = \"{choice}\"\n")
        };
        let most = shape(16, 4);
        assert_eq!(below(&rule("", "chain"), most), 0);
        assert_eq!(below(&rule("bytes = \"100..\"", "chain"), most), 100);
        assert_eq!(below(&rule("nodes = \"5..\"", "chain"), most), u64::MAX, "there are four");
        assert_eq!(below(&rule("nodes = \"..5\"", "chain"), most), 0);
        assert_eq!(below(&rule("nodes = 1\nranks = 8", "chain"), most), u64::MAX, "a node has four");
        assert_eq!(
            below(&rule("ranks = 16\nnodes = 4\nranks_per_node = 4", "chain"), most),
            0,
            "as tuning writes them"
        );
        assert_eq!(below(&rule("rate = \"1gbit..\"", "chain"), most), 0, "it may be so fast");
        let stock_below = |conditions: &str| rule(conditions, "stock") + &rule("", "chain");
        assert_eq!(below(&stock_below("bytes = \"..4KiB\""), most), 4096);
        assert_eq!(below(&stock_below("bytes = \"..4KiB\"\nnodes = 1"), most), 0, "others may have two");
        assert_eq!(below(&stock_below(""), most), u64::MAX);
        assert_eq!(
            below(&rule("bytes = \"9..\"\nearlier_calls = \"5..\"", "chain"), most),
            9,
            "it may have had so many"
        );
        assert_eq!(below(&(rule("earlier_calls = \"..5\"", "stock") + &rule("", "chain")), most), 0);
        let crowded = rule("ranks_per_processor = \"2..\"", "chain");
        assert_eq!([most, most.on_processors(2)].map(|most| below(&crowded, most)), [u64::MAX, 0]);
        assert_eq!(below("", most), u64::MAX);
        let between = rule("bytes = \"100..200\"", "chain") + &rule("bytes = \"500..600\"", "chain");
        assert_eq!(uncounted(&between, most), ToStock { below: 100, above: 599 });
        assert_eq!(uncounted(&rule("", "chain"), most), ToStock::NOTHING);
    }

    #[test]
    fn what_is_served_later_is_left_at_first() {
        let rule =
            |conditions: &str| format!("[[rule]]\ncollective = \"bcast\"\n{conditions}\nuse = \"chain\"\n");
        let at_first = |text: &str| {
            let table = Table::parse(&format!("version = 1\n{text}"), "a table").unwrap();
            let rules = Rules::new(&[], Some(&table), &table, None);
            let Passing { counted: (0, last), until, .. } = passing_at_first(rules, of(shape(16, 4)))[0]
            else {
                panic!("from 0 bytes on")
            };
            (if until == 0 { 0 } else { last }, until)
        };
        let short = rule("bytes = \"..1KiB\"\nearlier_calls = \"256..\"");
        let long = rule("bytes = \"1KiB..\"\nearlier_calls = \"32..\"");
        assert_eq!(at_first(&short), (u64::MAX, 256));
        assert_eq!(at_first(&(short.clone() + &long)), (1023, 256));
        assert_eq!(at_first(&long), (u64::MAX, 32));
        assert_eq!(at_first(&(short.clone() + &rule(""))), (0, 0), "others serve at once");
        assert_eq!(at_first(&(short.clone() + &rule("nodes = \"5..\""))), (u64::MAX, 256), "there are four");
        assert_eq!(at_first(&rule("earlier_calls = \"..5\"")), (0, 0));
        assert_eq!(at_first(""), (0, 0));
        let shipped = Table::shipped();
        let forced = [(Collective::Broadcast, "chain".parse().unwrap())];
        let rules = Rules::new(&forced, None, &shipped, None);
        assert_eq!(passing_at_first(rules, of(shape(2, 1)))[0], Passing::NOTHING);
    }

    #[test]
    fn what_is_forced_or_predicted_counts() {
        let (most, shipped) = (shape(16, 4), Table::shipped());
        for (forced, expected) in [("stock", u64::MAX), ("chain", 0)] {
            let forced = [(Collective::Broadcast, forced.parse().unwrap())];
            let rules = Rules::new(&forced, None, &shipped, None);
            assert_eq!(passing_at_first(rules, of(most))[0].uncounted.below, expected);
        }
        let below = |communicators| {
            let rules = Rules::new(&[], None, &shipped, None);
            passing_at_first(rules, communicators)[0].uncounted.below
        };
        assert_eq!(below(of(shape(4, 4))), 8 << 10);
        let more = |shape: CommunicatorShape| (Ranks { least: 3, most: shape.ranks }, shape);
        assert_eq!(below(more(shape(4, 1))), 1 << 10, "four ranks on one node, after some calls");
        assert_eq!(below(more(shape(4, 1).on_processors(2))), 0);
        assert_eq!(below(of(shape(4, 1))), 0, "two of them");
        assert_eq!([most, shape(32, 32)].map(|most| below(of(most))), [0, 0], "short messages by multicast");
    }

    proptest! {
        /// Of the built-in table.
        #[test]
        fn what_is_said_to_be_left_is_left(
            (nodes, per_node) in (1u32..40, 1u32..9),
            part in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
            bytes in prop::collection::vec((0u64..1 << 20, 0u32..20), 1..20),
            (crowd, earlier_calls) in (1u32..4, 0u64..600),
            network in prop::option::of((1u64..1 << 40, 1u64..1 << 20, 1u64..1 << 40)),
            challenges in any::<bool>(),
        ) {
            let shipped = Table::shipped();
            let rules = Rules::new(&[], None, &shipped, None).with_challengers(challenges);
            let most = shape(nodes * per_node, nodes).on_processors(crowd);
            let nodes = 1 + part.0.index(nodes as usize) as u32;
            let per_node = 1 + part.1.index(per_node as usize) as u32;
            let network = network.map(|(rate, latency, multicast_rate)| Network {
                rate: crate::units::Rate::from_bits_per_second(rate),
                latency: Some(crate::units::Nanos(latency)),
                multicast_rate: crate::units::Rate::from_bits_per_second(multicast_rate),
            });
            let ranks = Ranks { least: if nodes * per_node == 2 { 2 } else { 3 }, most: if nodes * per_node == 2 { 2 } else { most.ranks } };
            let passing = passing_at_first(rules, (ranks, most));
            let policy = Policy::new(rules, CommunicatorShape { network, ..shape(nodes * per_node, nodes).on_processors(crowd) });
            for (collective, passing) in Collective::ALL.into_iter().zip(passing) {
                for (number, shift) in &bytes {
                    let call = Call::new(collective, Bytes(number >> shift));
                    let (there, epoch) = (Capabilities::ALL, policy.epoch(collective, earlier_calls));
                    let is_left = policy.choose(&call, there, epoch).choice == Choice::Stock
                        && !policy.for_sizes_of(&call, epoch).is_challenged(there)
                        && !policy.asks_before(&call, there, epoch);
                    let passes = passing.passes(call.bytes.0, &mut { earlier_calls });
                    prop_assert!(is_left || !passes, "{collective:?}, {:?}, {passing:?}", call.bytes);
                }
            }
        }
    }
}
