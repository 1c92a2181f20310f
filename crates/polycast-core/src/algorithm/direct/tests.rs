use std::num::NonZeroU64;

use super::*;
use crate::algorithm::Registry;
use crate::collective::CombinationOrder;
use crate::schedule::{Buffer, Step, check};
use crate::units::Bytes;
use Collective::{Allgather, Allreduce, Alltoall, Gather, Reduce, Scatter};

const ALL: [Collective; 6] = [Scatter, Gather, Allgather, Alltoall, Reduce, Allreduce];

fn schedules(text: &str, call: &Call) -> Vec<Listed> {
    let algorithm = Registry::BUILT_IN.read(call.collective, text).unwrap();
    let of = |rank| match call.collective {
        Reduce | Allreduce => reductions::schedule(&algorithm, call, rank),
        _ => blocks(&algorithm, call, rank),
    };
    (0..call.ranks).map(|rank| Listed::copy_of(&of(Rank(rank)))).collect()
}

fn call(collective: Collective, ranks: u32, bytes: u64) -> Call {
    let plain = Call::new(collective, ranks, Rank(ranks / 2), Bytes(bytes));
    Call { element: NonZeroU64::new(4).unwrap(), order: CombinationOrder::Tree, ..plain }
}

/// Shares of several segments, of one, of none; the property tests of all algorithms have segments of one kind.
#[test]
fn shares_of_all_lengths_are_right() {
    for (ranks, bytes) in [(1, 8), (2, 4), (2, 400), (3, 8), (4, 40), (5, 404), (9, 1000)] {
        for (collective, is_in_place) in ALL.iter().flat_map(|of| [(*of, false), (*of, true)]) {
            let text = if matches!(collective, Reduce | Allreduce) { "direct:segment=16" } else { "direct" };
            let call = Call { is_in_place, ..call(collective, ranks, bytes) };
            check(&schedules(text, &call), &call).unwrap_or_else(|violation| panic!("{call:?}: {violation}"));
        }
    }
}

/// What goes over memory: nothing twice.
#[test]
fn every_byte_is_copied_once() {
    let ranks = 4;
    for (collective, blocks) in [(Scatter, 3), (Gather, 3), (Allgather, 12), (Alltoall, 12)] {
        let call = call(collective, ranks, 100);
        let all = schedules("direct", &call);
        let lanes = all.iter().flat_map(|list| (0..list.lanes().len()).map(move |lane| (list, lane)));
        let steps = lanes
            .flat_map(|(list, lane)| (0..list.lanes()[lane].steps).map(move |step| list.step(lane, step)));
        let fetched = |step: Step| if let Action::Fetch { to, .. } = step.action { to.length() } else { 0 };
        assert_eq!(steps.map(fetched).sum::<u64>(), blocks * 100, "{collective}");
    }
}

/// Its operands take a few segments, however long the message is.
#[test]
fn scratch_memory_has_a_limit() {
    let of = |is_in_place| {
        let call = Call { is_in_place, ..call(Allreduce, 4, 64 << 20) };
        schedules("direct", &call).iter().map(Schedule::scratch_bytes).max()
    };
    assert_eq!(of(false), Some(4 * 2 * (32 << 10)));
    assert_eq!(of(true), Some((16 << 20) + 4 * 2 * (32 << 10)));
}

/// Each step has a reason: what goes without it, or another way, is found out.
#[test]
fn whoever_changes_a_step_is_found_out() {
    let mut broken = 0;
    for (collective, is_in_place) in ALL.iter().flat_map(|of| [(*of, false), (*of, true)]) {
        let text = if matches!(collective, Reduce | Allreduce) { "direct:segment=8" } else { "direct" };
        let call = Call { is_in_place, ..call(collective, 3, 60) };
        let right = schedules(text, &call);
        for (rank, lane) in
            (0..3).flat_map(|rank| (0..right[rank].lanes().len()).map(move |lane| (rank, lane)))
        {
            let sabotages: [fn(&mut Vec<Step>); 3] = [
                |steps| steps.truncate(steps.len().saturating_sub(1)),
                |steps| {
                    for step in steps {
                        match &mut step.action {
                            Action::Fetch { to: slice, .. } | Action::Publish(slice) => {
                                slice.bytes.start += 4
                            }
                            Action::Combine { from, .. } => from.bytes.end -= 4,
                            _ => {}
                        }
                    }
                },
                |steps| steps.iter_mut().for_each(|step| step.after = After::Start),
            ];
            for (kind, sabotage) in sabotages.into_iter().enumerate() {
                let mut wrong = right.clone();
                wrong[rank].change_steps(lane, sabotage);
                let is_found = check(&wrong, &call).is_err();
                // Not every wait is for what is not there yet; and what a local step copies is not changed here.
                let is_local = right[rank].lanes()[lane].kind == Kind::Local;
                assert!(kind == 2 || is_local || wrong == right || is_found, "{call:?} {rank} {lane} {kind}");
                broken += usize::from(is_found);
            }
        }
    }
    assert!(broken > 150, "{broken}");
}

#[test]
fn in_place_an_alltoall_keeps_what_others_still_need() {
    let call = Call { is_in_place: true, ..call(Alltoall, 3, 40) };
    let mut wrong = schedules("direct", &call);
    for list in &mut wrong {
        let lane = list.lanes().iter().position(|lane| matches!(lane.kind, Kind::Publish { .. })).unwrap();
        list.change_steps(lane, |steps| {
            steps[0] = Step {
                action: Action::Publish(Slice { buffer: Buffer::Output, bytes: 0..120 }),
                after: After::Start,
            }
        });
    }
    assert!(check(&wrong, &call).is_err());
}
