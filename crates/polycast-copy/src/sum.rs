//! A sum of bytes that were written, for whoever reads them again.

/// Odd, so that no product hides a bit.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn step(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(29) ^ word).wrapping_mul(FACTOR)
}

/// Computes a checksum that tells whether bytes are those that were there before. It is against
/// damage, not against people: several times as fast as a hash of BLAKE3, which each block has
/// already. A word that changes always changes it.
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let (rows, _) = words.as_chunks::<4>();
    let rest = &bytes[rows.len() * 32..];
    // Products of four words are under way at a time.
    let [mut a, mut b, mut c, mut d] = [1, 2, 3, 4];
    for row in rows {
        let [e, f, g, h] = row.map(u64::from_le_bytes);
        (a, b, c, d) = (step(a, e), step(b, f), step(c, g), step(d, h));
    }
    let of_rest = rest.iter().fold(bytes.len() as u64, |sum, byte| step(sum, (*byte).into()));
    let all = [a, b, c, d].into_iter().fold(of_rest, step);
    all ^ all >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_tells_of_any_bit_and_any_length() {
        for length in [1, 31, 32, 33, 100] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let of_all = sum(&bytes);
            for bit in 0..length * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(sum(&damaged), of_all, "bit {bit} of {length} bytes");
            }
            assert_ne!(sum(&bytes[..length - 1]), of_all);
            assert_ne!(sum(&[&bytes[..], &[0]].concat()), of_all);
        }
        let (here, there) = ([vec![1; 32], vec![0; 32]].concat(), [vec![0; 32], vec![1; 32]].concat());
        assert_ne!(sum(&here), sum(&there), "what stands in another place");
    }
}
