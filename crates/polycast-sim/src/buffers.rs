//! Memory of ranks whose data is carried.

use polycast_core::schedule::{Action, Slice};

/// Reduces element by element: `right = left ∘ right`.
pub type Combine = fn(left: &[u8], right: &mut [u8]);

/// The buffers that a rank hands in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// The data that the program sends.
    pub input: Vec<u8>,
    /// The buffer for the result; also the rank's contribution, in a broadcast and under
    /// `MPI_IN_PLACE`.
    pub output: Vec<u8>,
}

/// A rank's input, output and scratch memory.
pub(crate) struct Data(pub [Vec<u8>; 3]);

impl Data {
    pub fn at(&self, slice: &Slice) -> &[u8] {
        &self.0[slice.buffer as usize][slice.bytes.start as usize..slice.bytes.end as usize]
    }

    pub fn at_mut(&mut self, slice: &Slice) -> &mut [u8] {
        &mut self.0[slice.buffer as usize][slice.bytes.start as usize..slice.bytes.end as usize]
    }

    /// Does a copy or combines, as `action` says.
    pub fn work(&mut self, action: &Action, combine: Combine) {
        let source = action.source().map(|source| self.at(source).to_vec());
        if let (Some(source), Some(target)) = (source, action.target()) {
            match action {
                Action::Combine { .. } => combine(&source, self.at_mut(target)),
                _ => self.at_mut(target).copy_from_slice(&source),
            }
        }
    }

    pub fn into_output(self) -> Vec<u8> {
        let [_, output, _] = self.0;
        output
    }
}
