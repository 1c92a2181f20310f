use polycast_core::collective::Collective;
use polycast_core::policy::{
    Call, Capabilities, Choice, CommunicatorShape, Epoch, Policy, Rules as Chosen, Table,
};
use polycast_core::units::Bytes;

use super::names::RADIX;
use super::{Library, Rule, Rules, Way};

/// Translates a table of ours into rules of the stock library for communicators of a shape, with a
/// clause for each choice that the library lacks. Collectives without rules are left out.
pub fn of_table(table: &Table, library: Library, shape: CommunicatorShape) -> (Rules, Vec<String>) {
    let shipped = Table::shipped();
    let policy = Policy::new(Chosen::new(&[], Some(table), &shipped, None), shape);
    let mut lacking = Vec::new();
    let mut of = Vec::new();
    for collective in Collective::ALL {
        let sizes = policy.sizes(&Call::new(collective, Bytes(0)), Capabilities::PRIVATE, Epoch::FIRST);
        if sizes.iter().all(|(_, choice)| *choice == Choice::Stock) {
            continue;
        }
        let blocks = blocks(collective, shape.ranks);
        let rule = |(bytes, choice): (Bytes, Choice)| {
            let way = way_of(library, collective, choice).unwrap_or_else(|| {
                lacking.push(format!(
                    "{collective} from {bytes}: the library has no {choice}, and decides itself"
                ));
                Way::STOCK
            });
            Rule { bytes: bytes.0.saturating_mul(blocks), way, because: None }
        };
        of.push((collective, sizes.into_iter().map(rule).collect()));
    }
    (Rules::for_ranks(shape.ranks, of), lacking)
}

/// Returns the factor from the bytes that we count to those that Open MPI counts: the number of
/// ranks where we count one block and Open MPI all.
fn blocks(collective: Collective, ranks: u32) -> u64 {
    match collective {
        Collective::Scatter | Collective::Gather | Collective::Allgather | Collective::Alltoall => {
            ranks.into()
        }
        _ => 1,
    }
}

fn way_of(library: Library, collective: Collective, choice: Choice) -> Option<Way> {
    let Choice::Algorithm(algorithm) = choice else { return Some(Way::STOCK) };
    if library == Library::Mpich {
        // Its segments are no matter of choice.
        return name_in_mpich(collective, algorithm.entry.name)
            .filter(|_| algorithm.segment.is_none())
            .and_then(|name| library.named(collective, name, 0, 0));
    }
    let segment = algorithm.segment.map_or(0, |segment| segment.get());
    let fan = algorithm.given("k").unwrap_or(0) as u32;
    let name = match (collective, algorithm.entry.name) {
        (Collective::Broadcast, "flat") => "basic_linear",
        (Collective::Broadcast | Collective::Reduce, "chain") => "pipeline",
        (Collective::Broadcast, "binary") => "binary_tree",
        (Collective::Broadcast, "k-nomial") if fan == RADIX => "knomial",
        (Collective::Broadcast, "split-binary") => "split_binary_tree",
        (Collective::Broadcast, "scatter-doubling") => "scatter_allgather",
        (Collective::Broadcast, "scatter-ring") => "scatter_allgather_ring",
        (Collective::Scatter | Collective::Gather, "flat") => "basic_linear",
        (Collective::Reduce, "flat") => "linear",
        (Collective::Reduce, "binary") => "binary",
        (
            Collective::Broadcast | Collective::Scatter | Collective::Gather | Collective::Reduce,
            "binomial",
        ) => "binomial",
        (Collective::Allgather | Collective::Allreduce, "recursive-doubling") => "recursive_doubling",
        (Collective::Allreduce, "ring") if segment > 0 => "segmented_ring",
        (Collective::Allgather | Collective::Allreduce, "ring") => "ring",
        (Collective::Allgather, "bruck") => "bruck",
        (Collective::Alltoall, "pairwise") => "pairwise",
        (Collective::Alltoall, "linear") => "linear",
        (Collective::Alltoall, "bruck") => "modified_bruck",
        (Collective::Barrier, "dissemination") => "bruck",
        (Collective::Allreduce, "flat") => "basic_linear",
        (Collective::Allreduce, "halving-doubling") => "rabenseifner",
        _ => return None,
    };
    let way = Way::named(collective, name, fan, segment);
    way.filter(|way| segment == 0 || way.can_be_cut(collective))
}

fn name_in_mpich(collective: Collective, name: &str) -> Option<&'static str> {
    Some(match (collective, name) {
        (Collective::Broadcast | Collective::Reduce, "binomial") => "binomial",
        (Collective::Broadcast, "scatter-doubling") => "scatter_recursive_doubling_allgather",
        (Collective::Broadcast, "scatter-ring") => "scatter_ring_allgather",
        (Collective::Allgather, "ring") => "ring",
        (Collective::Allgather | Collective::Allreduce, "recursive-doubling") => "recursive_doubling",
        (Collective::Allgather | Collective::Alltoall, "bruck") => "brucks",
        (Collective::Alltoall, "pairwise") => "pairwise",
        (Collective::Alltoall, "linear") => "scattered",
        (Collective::Allreduce, "halving-doubling") => "reduce_scatter_allgather",
        _ => return None,
    })
}
