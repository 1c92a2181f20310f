//! Doubles whose sums tell orders of combination apart: what tests of sums contribute, and how they add it.

use crate::units::Rank;

/// What a rank contributes at a place: over all places numbers from 2^-200 to 2^200, at each of like size and both signs, so that what is
/// lost depends on who is added to whom.
pub fn contribution(Rank(rank): Rank, at: u64) -> f64 {
    let mut bits = (u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ (at + 1).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    for shift in [33, 29, 32] {
        bits = (bits ^ bits >> shift).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    }
    let size = (at * 37 % 400) as i32 - 200 + (bits >> 8 & 7) as i32;
    let value = (1.0 + (bits >> 12) as f64 / (1u64 << 52) as f64) * 2f64.powi(size);
    if bits & 1 == 0 { value } else { -value }
}

/// Adds the doubles on the left to those on the right, in the bytes of a little-endian machine.
pub fn add(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.as_chunks().0.iter().zip(right.as_chunks_mut().0) {
        *right = (f64::from_le_bytes(*left) + f64::from_le_bytes(*right)).to_le_bytes();
    }
}
