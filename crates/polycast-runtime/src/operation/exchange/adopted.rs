//! Memory of a rank that goes on with a call of another size than its own: where the other size has no place in its buffers.
//!
//! ```text
//!   broadcast, scatter   in the program's buffer if there is room, else here; of that, what fits is kept
//!   gather, at its root  here; each block is kept where this rank has said that it belongs, as much of it as fits
//! ```

use polycast_core::collective::{Call, Collective};

use crate::call::Buffers;

/// See the module.
pub struct Adopted {
    /// The program's buffers.
    own: Buffers,
    own_bytes: u64,
    bytes: u64,
    input: Vec<u8>,
    /// Empty if the output is the program's.
    output: Vec<u8>,
}

impl Adopted {
    /// Memory for a call of `bytes`, on a rank that was called with `own_bytes`; `None` if there is none.
    pub fn new(of: &Call, (own_bytes, bytes): (u64, u64), own: Buffers) -> Option<Adopted> {
        let mut adopted = Adopted { own, own_bytes, bytes, input: Vec::new(), output: Vec::new() };
        if of.collective == Collective::Gather {
            adopted.output = zeros(bytes.checked_mul(of.ranks.into())?)?;
            adopted.input = zeros(bytes)?;
            // What this rank contributes goes the way of the other blocks, though its place knows it already.
            let (block, place) = (bytes.min(own_bytes) as usize, u64::from(of.root.0) * own_bytes);
            let contributed =
                if of.is_in_place { own.output.wrapping_add(place as usize) } else { own.input.cast_mut() };
            // SAFETY: the contribution has as many bytes as this rank was called with (see `Operations::start`).
            let contributed = unsafe { std::slice::from_raw_parts(contributed, block) };
            adopted.input[..block].copy_from_slice(contributed);
            let place = bytes as usize * of.root.0 as usize;
            adopted.output[place..][..block].copy_from_slice(contributed);
        } else if bytes > own_bytes {
            adopted.output = zeros(bytes)?;
        }
        Some(adopted)
    }

    /// The buffers of the call.
    pub fn buffers(&mut self) -> Buffers {
        let mut buffers = self.own;
        if !self.input.is_empty() {
            buffers.input = self.input.as_ptr();
        }
        if !self.output.is_empty() {
            buffers.output = self.output.as_mut_ptr();
        }
        buffers
    }

    /// Gives the memory back. The call has ended.
    pub fn rest(&mut self) {
        (self.input, self.output) = Default::default();
    }

    /// Puts what has come into the program's buffers. True if there was room for all.
    pub fn keep(&self, of: &Call) -> bool {
        let (own, block) = (self.own_bytes as usize, self.bytes.min(self.own_bytes) as usize);
        let blocks = if of.collective == Collective::Gather { of.ranks as usize } else { 1 };
        for (index, data) in self.output.chunks(self.bytes.max(1) as usize).take(blocks).enumerate() {
            // SAFETY: the output has as many blocks, each of as many bytes as this rank was called with (see `Operations::start`).
            unsafe {
                let place = self.own.output.add(index * own);
                let is_contributed = of.collective == Collective::Gather && index == of.root.index();
                match is_contributed {
                    true if of.is_in_place => {}
                    true => place.copy_from_nonoverlapping(self.own.input, own),
                    false => place.copy_from_nonoverlapping(data.as_ptr(), block),
                }
            }
        }
        self.bytes <= self.own_bytes
    }
}

fn zeros(bytes: u64) -> Option<Vec<u8>> {
    let (mut memory, bytes) = (Vec::new(), usize::try_from(bytes).ok()?);
    memory.try_reserve_exact(bytes).ok()?;
    memory.resize(bytes, 0);
    Some(memory)
}
