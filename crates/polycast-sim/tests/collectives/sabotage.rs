//! A checker that lets a wrong schedule pass is caught: correct schedules are changed in one place at a time, in every place.
//!
//! Most changes make any schedule wrong. Those that may leave it right (a wait that was not needed) are run with bytes wherever
//! the checker lets them pass.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::{Between, Planner};
use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::schedule::{
    Action, After, Fabric, Kind, Lane, Listed, Posting, Schedule, Step, Stream, check,
};
use polycast_core::tree::Tree;
use polycast_core::units::{Bytes, Rank};
use polycast_sim::{Network, Schedules, SharedMemory};

use crate::support::{before, combination, expected};
use crate::two_level::{schedules, two_level};

/// The schedules of all ranks.
type All = Vec<Listed>;

/// Rank and lane.
type At = (usize, usize);

fn lanes(all: &All) -> Vec<At> {
    (0..all.len()).flat_map(|rank| (0..all[rank].lanes().len()).map(move |lane| (rank, lane))).collect()
}

fn steps(all: &All) -> Vec<(At, usize)> {
    let of = |at: At| (0..all[at.0].lanes()[at.1].steps as usize).map(move |step| (at, step));
    lanes(all).into_iter().flat_map(of).collect()
}

fn step(all: &All, (at, step): (At, usize)) -> Step {
    all[at.0].step(at.1, step as u64)
}

fn changed(all: &All, (rank, lane): At, change: impl FnOnce(&mut Vec<Step>)) -> All {
    let mut all = all.clone();
    all[rank].change_steps(lane, change);
    all
}

/// The lane at the other end of a lane of messages.
fn other_end(all: &All, (rank, lane): At) -> Option<At> {
    let stream = all[rank].lanes()[lane].stream()?;
    let peer = stream.peer.index();
    let is_other = |other: &Lane| {
        other.stream().is_some_and(|other| {
            (other.peer.index(), other.channel) == (rank, stream.channel)
                && other.direction != stream.direction
        })
    };
    Some((peer, all[peer].lanes().iter().position(is_other)?))
}

/// Waits for steps that are there no more wait for those that are left.
fn mended(mut all: All) -> All {
    for (rank, lane) in lanes(&all) {
        let counts: Vec<u64> = all[rank].lanes().iter().map(|lane| lane.steps).collect();
        all[rank].change_steps(lane, |steps| {
            for step in steps {
                if let After::Steps { lane, count } = &mut step.after {
                    *count = counts[*lane].min(*count);
                }
            }
        });
    }
    all
}

/// Changes that make any schedule wrong.
fn wrong(all: &All, call: &Call) -> Vec<All> {
    let mut found = Vec::new();
    for (at, index) in steps(all) {
        let Step { action, .. } = step(all, (at, index));
        // A step is missing: at one end, or at both. A signal beside data says when it is time, so without it all is right.
        let without = changed(all, at, |steps| {
            steps.remove(index);
        });
        let is_needed = action.length() > 0 || call.collective == Collective::Barrier;
        let both = other_end(all, at).filter(|_| is_needed).map(|other| {
            changed(&without, other, |steps| {
                steps.remove(index);
            })
        });
        found.extend([Some(mended(without)), both.map(mended)].into_iter().flatten());
        // One that waits for itself.
        let own = After::Steps { lane: at.1, count: index as u64 + 1 };
        found.push(changed(all, at, |steps| steps[index].after = own));
        // One that waits for what does not exist.
        let beyond = After::LanesBelow(all[at.0].lanes().len() + 1);
        found.push(changed(all, at, |steps| steps[index].after = beyond));
        if action.length() == 0 {
            continue;
        }
        // Bytes beside those that are meant.
        let element = call.element.get();
        found.push(changed(all, at, |steps| {
            let slice = match &mut steps[index].action {
                Action::Send(slice) | Action::Receive(slice) | Action::Copy { to: slice, .. } => slice,
                Action::Combine { into, .. } | Action::Fetch { to: into, .. } => into,
                Action::Publish(slice) => slice,
            };
            slice.bytes = slice.bytes.start + element..slice.bytes.end + element;
        }));
        // Fewer bytes at one end.
        found.push(changed(all, at, |steps| match &mut steps[index].action {
            Action::Send(slice) | Action::Receive(slice) | Action::Publish(slice) => {
                slice.bytes.end -= element
            }
            Action::Copy { to, .. } | Action::Combine { into: to, .. } | Action::Fetch { to, .. } => {
                to.bytes.end -= element;
            }
        }));
        if let Action::Fetch { .. } = action {
            // Other bytes of what is published.
            found.push(changed(all, at, |steps| {
                if let Action::Fetch { at, .. } = &mut steps[index].action {
                    *at += element;
                }
            }));
        }
        let is_copy = matches!(action, Action::Copy { .. });
        if is_copy {
            // What is there already.
            found.push(changed(all, at, |steps| steps.insert(index, steps[index].clone())));
        }
        if let Action::Combine { from, into } = action {
            // The wrong way round, and twice.
            let swapped = Action::Combine { from: into, into: from };
            found.push(changed(all, at, |steps| steps[index].action = swapped));
            found.push(changed(all, at, |steps| steps.insert(index, steps[index].clone())));
        }
        if !is_copy {
            found.extend(in_the_place_of_the_step_before(all, at, index));
        }
    }
    for (rank, lane) in lanes(all).into_iter().filter(|at| all[at.0].lanes()[at.1].steps > 0) {
        found.extend(other_kinds(&all[rank].lanes()[lane].kind, Rank(rank as u32)).into_iter().map(|kind| {
            let mut all = all.clone();
            all[rank].lane_mut(lane).kind = kind;
            all
        }));
    }
    found
}

fn in_the_place_of_the_step_before(all: &All, at: (usize, usize), index: usize) -> Option<All> {
    let before = step(all, (at, index.checked_sub(1)?)).action;
    (before != step(all, (at, index)).action).then(|| {
        changed(all, at, |steps| {
            steps[index - 1].action = std::mem::replace(&mut steps[index].action, before)
        })
    })
}

/// The kinds that a lane of `rank` may be taken for, and is not.
fn other_kinds(kind: &Kind, rank: Rank) -> Vec<Kind> {
    let other = |fabric: Fabric| if fabric == Fabric::Shared { Fabric::Multicast } else { Fabric::Shared };
    match kind.clone() {
        Kind::Messages(stream) => {
            let posting = if stream.posting == Posting::AtOnce { Posting::InTurn } else { Posting::AtOnce };
            let others = [
                Stream { channel: 7, ..stream },
                Stream { posting, ..stream },
                Stream { peer: rank, ..stream },
            ];
            others.map(Kind::Messages).to_vec()
        }
        Kind::Local => Vec::new(),
        Kind::Publish { fabric, channel, readers } => vec![
            Kind::Publish { fabric, channel: 7, readers: readers.clone() },
            Kind::Publish { fabric: other(fabric), channel, readers: readers.clone() },
            Kind::Publish { fabric, channel, readers: readers[1..].into() },
        ],
        Kind::Fetch { fabric, channel, writer } => vec![
            Kind::Fetch { fabric, channel: 7, writer },
            Kind::Fetch { fabric: other(fabric), channel, writer },
            Kind::Fetch { fabric, channel, writer: rank },
        ],
    }
}

/// Waits for less, or copies in another order: right only where something else makes up for it.
fn weaker(all: &All) -> Vec<All> {
    let mut found = Vec::new();
    for (at, index) in steps(all) {
        if let Action::Copy { .. } = step(all, (at, index)).action {
            found.extend(in_the_place_of_the_step_before(all, at, index));
        }
        let weaker = match step(all, (at, index)).after {
            After::Start => continue,
            After::Steps { lane, count } if count > 1 => {
                vec![After::Start, After::Steps { lane, count: count - 1 }]
            }
            After::LanesBelow(end) if end > 1 => vec![After::Start, After::LanesBelow(end - 1)],
            After::Steps { .. } | After::LanesBelow(_) => vec![After::Start],
        };
        found.extend(weaker.into_iter().map(|after| changed(all, at, |steps| steps[index].after = after)));
    }
    for (rank, lane) in lanes(all).into_iter().filter(|at| all[at.0].lanes()[at.1].opens_after.is_some()) {
        let mut all = all.clone();
        all[rank].lane_mut(lane).opens_after = None;
        found.push(all);
    }
    found
}

/// Whether all ranks end with what is promised, whoever is late; a barrier is not looked at.
fn runs_right(all: &All, call: &Call) -> bool {
    let ranks = || (0..call.ranks).map(Rank);
    (0..8u64).all(|seed| {
        let starts = ranks().map(|rank| (seed * 79_193 + u64::from(rank.0) * 104_729) % 200_000).collect();
        let shared = SharedMemory { latency_ns: 300, ns_per_byte: 10.0, buffers: 1 + seed as u32 % 3 };
        let network = Network { rendezvous_threshold: Some(seed * 20), shared, ..Network::ethernet(1e8) };
        let buffers = ranks().map(|rank| before(call, rank)).collect();
        let combine = combination(call);
        let run = Schedules::new(network, all.clone()).starts(starts).carry(buffers, combine).run();
        let delivered = run.ok().and_then(|outcome| outcome.delivered).unwrap_or_default();
        let is_promised = |(rank, found): (Rank, &Vec<u8>)| {
            expected(call, rank, combine).is_none_or(|expected| *found == expected)
        };
        delivered.len() == call.ranks as usize && ranks().zip(&delivered).all(is_promised)
    })
}

/// Correct schedules of all collectives.
fn correct() -> Vec<(String, Call, All)> {
    let mut found = Vec::new();
    for (collective, algorithm) in super::all() {
        let algorithm = Algorithm { segment: NonZeroU64::new(4), ..algorithm };
        for (ranks, root) in [(2, 0), (3, 1), (7, 2)] {
            // In any order, other operands than are meant may be right, too.
            let order = CombinationOrder::Tree;
            for is_in_place in [false, true] {
                let plain = Call::new(collective, ranks, Rank(root), Bytes(12));
                let element = NonZeroU64::new(2).expect("not 0");
                let call = crate::for_any_order(algorithm, &Call { element, order, is_in_place, ..plain });
                let schedule = |rank| algorithm.schedule(call, Rank(rank), &mut Planner::flat(ranks));
                let all = (0..ranks).map(|rank| Listed::copy_of(&schedule(rank))).collect();
                found.push((algorithm.to_string(), call, all));
            }
        }
    }
    for between in [Between::Multicast, Between::Tree(Tree::Chain), Between::ScatterRing] {
        for (root, overlap) in [(0, 2), (1, u64::MAX), (4, 0), (5, 2)] {
            let algorithm = two_level(between, 4, 2, overlap);
            let call = Call::broadcast(6, Rank(root), Bytes(11));
            let all = schedules(algorithm, &[0, 0, 1, 1, 1, 2], &call);
            found.push((format!("{algorithm:?}"), call, all.iter().map(Listed::copy_of).collect()));
        }
    }
    found
}

#[test]
fn no_wrong_schedule_passes() {
    let mut kinds = BTreeSet::new();
    let (mut rejected_of_weaker, mut mutants) = (0, 0);
    for (algorithm, call, all) in correct() {
        check(&all, &call).expect("correct before it is changed");
        for mutant in wrong(&all, &call) {
            let violation = check(&mutant, &call);
            let text = format!("{:?}", violation.as_ref().err());
            kinds.extend(text.split(&['(', ' '][..]).nth(1).map(str::to_owned));
            assert!(violation.is_err(), "{algorithm}, {call:?} passes: {mutant:#?}");
            mutants += 1;
        }
        for mutant in weaker(&all) {
            match check(&mutant, &call) {
                // Up to six ranks some rounds tell nothing new; of seven each tells something.
                Ok(_) if call.collective == Collective::Barrier => {
                    assert!(call.ranks < 7, "{call:?} passes: {mutant:#?}");
                }
                Ok(_) => assert!(runs_right(&mutant, &call), "{algorithm}, {call:?} passes: {mutant:#?}"),
                Err(violation) => {
                    let text = format!("{violation:?}");
                    kinds.extend(text.split(' ').next().map(str::to_owned));
                    rejected_of_weaker += 1;
                }
            }
        }
    }
    assert!(mutants > 3000 && rejected_of_weaker > 300, "{mutants} {rejected_of_weaker}");
    // Each of the proofs has found something that the others had not before it.
    for kind in [
        "Unmatched",
        "NoSuchPeer",
        "StepCount",
        "OtherLength",
        "Malformed",
        "OutOfBounds",
        "Twice",
        "NotYetReceived",
        "InUse",
        "WrongOperands",
        "Missing",
        "Wrong",
        "NotAwaited",
        "WaitsForNothing",
        "WaitingReceive",
        "Deadlock",
    ] {
        assert!(kinds.contains(kind), "nothing was rejected as {kind}: {kinds:?}");
    }
}
