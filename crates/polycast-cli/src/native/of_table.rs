use polycast_core::collective::Collective;
use polycast_core::policy::{Capabilities, Choice, CommunicatorShape, Epoch, Policy, Rules as Chosen, Table};

use super::{Library, Rule, Rules, Way};

/// What a table of ours says for communicators of a shape, as far as the stock library can do it by itself, with a clause for each choice that it
/// cannot. Collectives without rules are left out.
pub fn of_table(table: &Table, library: Library, shape: CommunicatorShape) -> (Rules, Vec<String>) {
    let shipped = Table::shipped();
    let policy = Policy::new(Chosen::new(&[], Some(table), &shipped, None), shape);
    let mut lacking = Vec::new();
    let mut of = Vec::new();
    for collective in Collective::ALL {
        let sizes = policy.sizes(collective, Capabilities::PRIVATE, Epoch::FIRST);
        if sizes.iter().all(|(_, choice)| *choice == Choice::Stock) {
            continue;
        }
        let blocks = blocks(collective, shape.ranks);
        let rule = |(bytes, choice): (polycast_core::units::Bytes, Choice)| {
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

/// How many of ours make what Open MPI counts.
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
    let (name, fan) = match (collective, algorithm.entry.name) {
        (Collective::Broadcast, "flat") => ("basic_linear", 0),
        (Collective::Broadcast | Collective::Reduce, "chain") => ("pipeline", 0),
        (Collective::Broadcast, "binary") => ("binary_tree", 0),
        (Collective::Broadcast, "k-nomial") => ("knomial", fan),
        (Collective::Broadcast, "split-binary") => ("split_binary_tree", 0),
        (Collective::Broadcast, "scatter-doubling") => ("scatter_allgather", 0),
        (Collective::Broadcast, "scatter-ring") => ("scatter_allgather_ring", 0),
        (Collective::Scatter | Collective::Gather, "flat") => ("basic_linear", 0),
        (Collective::Reduce, "flat") => ("linear", 0),
        (Collective::Reduce, "binary") => ("binary", 0),
        (
            Collective::Broadcast | Collective::Scatter | Collective::Gather | Collective::Reduce,
            "binomial",
        ) => ("binomial", 0),
        (Collective::Allgather | Collective::Allreduce, "recursive-doubling") => ("recursive_doubling", 0),
        (Collective::Allgather | Collective::Allreduce, "ring") => ("ring", 0),
        (Collective::Allgather, "bruck") => ("bruck", 0),
        (Collective::Alltoall, "pairwise") => ("pairwise", 0),
        (Collective::Alltoall, "linear") => ("linear", 0),
        (Collective::Alltoall, "bruck") => ("modified_bruck", 0),
        (Collective::Barrier, "dissemination") => ("bruck", 0),
        (Collective::Allreduce, "flat") => ("basic_linear", 0),
        (Collective::Allreduce, "halving-doubling") => ("rabenseifner", 0),
        _ => return None,
    };
    Way::named(collective, name, fan, segment)
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
