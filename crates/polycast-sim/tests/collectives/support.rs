//! The buffers that ranks hand in, and the results that MPI promises.

use polycast_core::collective::{Call, Collective, CombinationOrder};
use polycast_core::schedule::{Buffer, Contract};
use polycast_core::units::Rank;
use polycast_sim::{Buffers, Combine};

/// An element is a map `x -> ax + b` modulo 256, with odd `a`; combining two applies one after the other. That is associative,
/// does not commute, and forgets nothing.
pub fn compose(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.chunks_exact(2).zip(right.chunks_exact_mut(2)) {
        let [(a, b), (c, d)] = [(left[0], left[1]), (right[0], right[1])];
        right[0] = a.wrapping_mul(c);
        right[1] = a.wrapping_mul(d).wrapping_add(b);
    }
}

pub fn add(left: &[u8], right: &mut [u8]) {
    left.iter().zip(right).for_each(|(left, right)| *right = left.wrapping_add(*right));
}

/// The contribution of `rank`, `length` bytes; first bytes of elements are odd.
fn contribution(rank: u32, length: u64) -> Vec<u8> {
    let byte = |at: u64| (u64::from(rank) * 37 + at * 11 + at / 127) as u8;
    (0..length).map(|at| if at % 2 == 0 { byte(at) | 1 } else { byte(at) }).collect()
}

fn contributed(call: &Call, rank: Rank) -> Vec<u8> {
    let contract = Contract { call: *call };
    contract.before(rank).map_or(Vec::new(), |holding| contribution(rank.0, holding.slice.length()))
}

/// The buffers before the call; what holds nothing yet is 0xEE.
pub fn before(call: &Call, rank: Rank) -> Buffers {
    let contract = Contract { call: *call };
    let empty = |buffer| vec![0xEE; contract.size(rank, buffer) as usize];
    let mut buffers = Buffers { input: empty(Buffer::Input), output: empty(Buffer::Output) };
    if let Some(holding) = contract.before(rank) {
        let buffer = match holding.slice.buffer {
            Buffer::Input => &mut buffers.input,
            _ => &mut buffers.output,
        };
        let place = holding.slice.bytes.start as usize..holding.slice.bytes.end as usize;
        buffer[place].copy_from_slice(&contributed(call, rank));
    }
    buffers
}

/// The output that MPI promises, written down once more without the contract.
pub fn expected(call: &Call, rank: Rank, combine: Combine) -> Option<Vec<u8>> {
    let bytes = call.bytes.0 as usize;
    let of = |rank: u32| contributed(call, Rank(rank));
    let own = rank.index() * bytes;
    let blocks =
        |from: usize| (0..call.ranks).flat_map(|rank| of(rank)[from..from + bytes].to_vec()).collect();
    let (is_root, is_kept) = (rank == call.root, call.is_in_place_at(rank));
    match call.collective {
        Collective::Scatter => (!is_kept).then(|| of(call.root.0)[own..own + bytes].to_vec()),
        Collective::Gather => is_root.then(|| blocks(0)),
        Collective::Allgather => Some(blocks(0)),
        Collective::Alltoall => Some(blocks(own)),
        Collective::Reduce | Collective::Allreduce => (is_root || call.collective == Collective::Allreduce)
            .then(|| {
                let rising = (0..call.ranks).rev().map(of);
                rising
                    .reduce(|mut right, left| {
                        combine(&left, &mut right);
                        right
                    })
                    .unwrap_or_default()
            }),
        Collective::Broadcast => Some(of(call.root.0)),
        Collective::Barrier => None,
    }
}

/// The combination that a call is simulated with.
pub fn combination(call: &Call) -> Combine {
    if call.order > CombinationOrder::Any { compose } else { add }
}
