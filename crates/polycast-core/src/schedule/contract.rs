use super::{Buffer, Slice};
use crate::collective::{Call, Collective};
use crate::units::Rank;

/// The contents of some bytes of a buffer: the combination of what these ranks contribute, each
/// from its byte `offset` on. Of a single rank that is just its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// The bytes.
    pub slice: Slice,
    /// The contributors, from the first to the one before the second.
    pub ranks: (u32, u32),
    /// The offset in each contribution at which the slice begins.
    pub offset: u64,
}

impl Holding {
    pub(super) fn of(rank: u32, slice: Slice, offset: u64) -> Holding {
        Holding { slice, ranks: (rank, rank + 1), offset }
    }
}

/// The promise of a call: what every buffer of every rank holds before the call, and must hold
/// after it.
///
/// ```text
///              before                          after
///  bcast       root  output  root 0..n         all   output  root 0..n            one buffer, as with MPI_IN_PLACE
///  scatter     root  input   root 0..P·b       r     output  root r·b..
///  gather      r     input   r 0..b            root  output  0 0..b, 1 0..b, …
///  allgather   r     input   r 0..b            all   output  0 0..b, 1 0..b, …
///  alltoall    r     input   r 0..P·b          r     output  0 r·b.., 1 r·b.., …
///  barrier     –                               –     and nobody ends before all have begun
///  reduce      r     input   r 0..n            root  output  0 ∘ 1 ∘ … ∘ P-1
///  allreduce   r     input   r 0..n            all   output  0 ∘ 1 ∘ … ∘ P-1
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Contract {
    /// The call that is to be fulfilled.
    pub call: Call,
}

impl Contract {
    /// The bytes of `rank`'s input or output; 0 for scratch memory.
    pub fn size(&self, rank: Rank, buffer: Buffer) -> u64 {
        let Call { collective, ranks, root, bytes, .. } = self.call;
        let (block, all) = (bytes.0, bytes.0 * u64::from(ranks));
        let (is_root, is_in_place) = (rank == root, self.call.is_in_place_at(rank));
        let (input, output) = match collective {
            Collective::Broadcast => (0, block),
            Collective::Scatter => (if is_root { all } else { 0 }, block),
            Collective::Gather => (block, if is_root { all } else { 0 }),
            Collective::Allgather => (block, all),
            Collective::Alltoall => (all, all),
            Collective::Barrier => (0, 0),
            Collective::Reduce => (block, if is_root { block } else { 0 }),
            Collective::Allreduce => (block, block),
        };
        match buffer {
            Buffer::Output if is_in_place && collective == Collective::Scatter => 0,
            Buffer::Input if is_in_place && collective != Collective::Scatter => 0,
            Buffer::Input => input,
            Buffer::Output => output,
            Buffer::Scratch => 0,
        }
    }

    /// Returns the place of `rank`'s contribution before the call; `None` if the rank contributes
    /// nothing.
    pub fn before(&self, Rank(rank): Rank) -> Option<Holding> {
        let Call { collective, root, bytes, .. } = self.call;
        let (has_root_only, is_in_place) = match collective {
            Collective::Broadcast => (true, true),
            Collective::Scatter => (true, false),
            _ => (false, self.call.is_in_place_at(Rank(rank))),
        };
        let input = self.size(Rank(rank), Buffer::Input);
        let slice = match collective {
            Collective::Barrier => return None,
            _ if has_root_only && Rank(rank) != root => return None,
            Collective::Gather | Collective::Allgather if is_in_place => {
                let start = bytes.0 * u64::from(rank);
                Slice::output(start..start + bytes.0)
            }
            _ if is_in_place => Slice::output(0..self.size(Rank(rank), Buffer::Output)),
            _ => Slice::input(0..input),
        };
        Some(Holding::of(rank, slice, 0))
    }

    /// Returns the contents that `rank`'s output must have after the call.
    pub fn after(&self, rank: Rank) -> Vec<Holding> {
        let Call { collective, ranks, root, bytes, .. } = self.call;
        let block = |number: u32| {
            let start = bytes.0 * u64::from(number);
            Slice::output(start..start + bytes.0)
        };
        let own_offset = bytes.0 * u64::from(rank.0);
        let size = self.size(rank, Buffer::Output);
        match collective {
            _ if size == 0 => Vec::new(),
            Collective::Barrier => Vec::new(),
            Collective::Broadcast => vec![Holding::of(root.0, Slice::output(0..size), 0)],
            Collective::Scatter => vec![Holding::of(root.0, Slice::output(0..size), own_offset)],
            Collective::Gather | Collective::Allgather => {
                (0..ranks).map(|from| Holding::of(from, block(from), 0)).collect()
            }
            Collective::Alltoall => {
                (0..ranks).map(|from| Holding::of(from, block(from), own_offset)).collect()
            }
            Collective::Reduce | Collective::Allreduce => {
                vec![Holding { slice: Slice::output(0..size), ranks: (0, ranks), offset: 0 }]
            }
        }
    }
}
