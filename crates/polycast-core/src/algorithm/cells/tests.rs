use super::*;
use crate::algorithm::Registry;
use crate::collective::CombinationOrder;
use crate::schedule::Buffer;
use crate::schedule::{Action, After, Listed, Schedule, Violation, check};
use crate::units::Bytes;
use Collective::{Allgather, Allreduce, Alltoall, Broadcast, Gather, Reduce, Scatter};

fn algorithm(collective: Collective, text: &str) -> Algorithm {
    Registry::BUILT_IN.read(collective, text).unwrap()
}

fn call(collective: Collective, ranks: u32, bytes: u64) -> Call {
    let plain = Call::new(collective, ranks, Rank(1), Bytes(bytes));
    Call { element: NonZeroU64::new(4).unwrap(), order: CombinationOrder::Tree, ..plain }
}

fn lanes(text: &str, call: &Call) -> Vec<Listed> {
    let algorithm = algorithm(call.collective, text);
    (0..call.ranks).map(|rank| Listed::copy_of(&lanes::schedule(&algorithm, call, Rank(rank)))).collect()
}

/// Everything that one rank does has a reason: without it, or with another place, the others or it itself end with something else.
#[test]
fn whoever_changes_a_step_is_found_out() {
    let mut broken = 0;
    for collective in [Broadcast, Scatter, Gather, Allgather, Alltoall, Reduce, Allreduce] {
        for (is_in_place, text) in [(false, "cells:segment=16"), (true, "cells:segment=16,shares=16")] {
            let call = Call { is_in_place, ..call(collective, 4, 40) };
            let right = lanes(text, &call);
            check(&right, &call).unwrap_or_else(|violation| panic!("{call:?}: {violation}"));
            for (rank, lane) in (0..4).flat_map(|rank| (0..right[rank].lanes().len()).map(move |l| (rank, l)))
            {
                if right[rank].lanes()[lane].steps == 0 {
                    continue;
                }
                let sabotages: [fn(&mut Vec<crate::schedule::Step>); 4] = [
                    |steps| steps.rotate_left(1),
                    |steps| steps.truncate(steps.len() - 1),
                    |steps| {
                        for step in steps {
                            match &mut step.action {
                                Action::Fetch { to, .. } | Action::Copy { to, .. } => to.bytes.start += 4,
                                Action::Publish(from) | Action::Combine { from, .. } => from.bytes.end -= 4,
                                _ => {}
                            }
                        }
                    },
                    |steps| steps.iter_mut().for_each(|step| step.after = After::Start),
                ];
                for (kind, sabotage) in sabotages.into_iter().enumerate() {
                    let mut wrong = right.clone();
                    wrong[rank].change_steps(lane, sabotage);
                    let found: Result<_, Violation> = check(&wrong, &call);
                    // Waiting for nothing is wrong only where something is waited for.
                    assert!(
                        [0, 3].contains(&kind) || wrong == right || found.is_err(),
                        "{call:?} {rank} {lane} {kind}"
                    );
                    broken += usize::from(found.is_err());
                }
            }
        }
    }
    assert!(broken > 300, "{broken}");
}

fn taken_from(rounds: &Rounds, round: u64) -> Vec<String> {
    let told = |take: Take| {
        let from = match take.from {
            CellSource::Own(slice) if slice.buffer == Buffer::Scratch => format!("waiting {:?}", slice.bytes),
            CellSource::Own(slice) => format!("own {:?}", slice.bytes),
            CellSource::Cell { writer, at } => format!("{writer}+{at}"),
        };
        let to = if take.to.buffer == Buffer::Scratch { "waiting " } else { "" };
        format!("{from}{}{to}{:?}", if take.combines { " with " } else { " to " }, take.to.bytes)
    };
    rounds.takes(round).map(told).collect()
}

#[test]
fn rounds_of_an_allreduce() {
    let call = call(Allreduce, 3, 40);
    let of = |text, rank| Rounds::new(&algorithm(Allreduce, text), &call, Rank(rank), 1 << 10);
    let whole = of("cells", 1);
    assert_eq!(whole.count(), 1);
    assert_eq!(
        taken_from(&whole, 0),
        ["2+0 to 0..40", "own 0..40 to waiting 0..40", "0+0 with waiting 0..40", "waiting 0..40 with 0..40"]
    );
    let shared = of("cells:segment=24,shares=16", 1);
    assert_eq!(shared.count(), 4);
    assert_eq!(
        taken_from(&shared, 0),
        ["2+8 to 8..16", "own 8..16 to waiting 0..8", "0+8 with waiting 0..8", "waiting 0..8 with 8..16"]
    );
    assert_eq!(taken_from(&shared, 1), ["2+0 to 16..24", "0+0 to 0..8"]);
    assert_eq!(taken_from(&shared, 3), ["2+0 to 36..40", "0+0 to 24..32"]);
}

#[test]
fn parts_of_an_alltoall_lie_side_by_side() {
    let call = call(Alltoall, 4, 1000);
    let rounds = Rounds::new(&algorithm(Alltoall, "cells"), &call, Rank(2), 1 << 10);
    assert_eq!((rounds.count(), rounds.puts(0).count()), (4, 3));
    let first: Vec<Put> = rounds.puts(1).collect();
    assert_eq!(first[0], Put { at: 3 * 256, from: Slice::input(3256..3512) });
    assert_eq!(
        taken_from(&rounds, 3),
        ["3+512 to 3768..4000", "0+512 to 768..1000", "1+512 to 1768..2000", "own 2768..3000 to 2768..3000"]
    );
}
