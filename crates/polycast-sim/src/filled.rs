//! Data of which every byte is known without running anything: elements are numbers of 64 bits, and combining adds them.

use polycast_core::schedule::{Buffer, Contract, Holding};
use polycast_core::units::Rank;

use crate::buffers::Buffers;

const ELEMENT_BYTES: u64 = 8;
/// Factors of a byte's rank and place. Odd, with bits all over: ranks and places differ in many
/// bytes.
const OF_RANK: u64 = 0x9E37_79B9_7F4A_7C15;
const OF_PLACE: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// The bytes of a holding. Rank `r` contributes `(r + 1) · OF_RANK + place · OF_PLACE` at each
/// place, so that sums over ranks need no loop.
fn bytes(holding: &Holding) -> impl Iterator<Item = u8> {
    let (first, end) = (u64::from(holding.ranks.0), u64::from(holding.ranks.1));
    let ranks = (end * (end + 1) - first * (first + 1)) / 2;
    let of_ranks = ranks.wrapping_mul(OF_RANK);
    let of_place = (end - first).wrapping_mul(OF_PLACE);
    (holding.offset..holding.offset + holding.slice.length()).map(move |at| {
        let element = of_ranks.wrapping_add((at / ELEMENT_BYTES).wrapping_mul(of_place));
        (element >> (at % ELEMENT_BYTES * 8)) as u8
    })
}

/// Adds 64-bit numbers: the reduction of such data.
pub(crate) fn add(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.as_chunks().0.iter().zip(right.as_chunks_mut().0) {
        *right = u64::from_le_bytes(*left).wrapping_add(u64::from_le_bytes(*right)).to_le_bytes();
    }
}

/// The buffers of a rank before the call.
pub(crate) fn before(contract: &Contract, rank: Rank) -> Buffers {
    let empty = |buffer| vec![0; contract.size(rank, buffer) as usize];
    let mut buffers = Buffers { input: empty(Buffer::Input), output: empty(Buffer::Output) };
    if let Some(holding) = contract.before(rank) {
        let buffer =
            if holding.slice.buffer == Buffer::Input { &mut buffers.input } else { &mut buffers.output };
        buffer
            .iter_mut()
            .skip(holding.slice.bytes.start as usize)
            .zip(bytes(&holding))
            .for_each(|(to, byte)| *to = byte);
    }
    buffers
}

/// True if the output is what MPI promises.
pub(crate) fn is_right(contract: &Contract, rank: Rank, output: &[u8]) -> bool {
    contract.after(rank).iter().all(|holding| {
        let place = holding.slice.bytes.start as usize..holding.slice.bytes.end as usize;
        output[place].iter().copied().eq(bytes(holding))
    })
}
