//! Reductions by the program's own operation, of which nobody knows how long it takes, nor whether it minds that contributions are cut.

use crate::call::Wanted;

/// Most bytes of a reduction by the program's own operation that is served. Rules are measured with
/// operations that take next to nothing. Where one rank combines more than others would, a dear one
/// costs more than messages do: 32 KiB of doubles, 100 multiplications for each, 8 ranks on two
/// processors, two levels: 13 ms, Open MPI 7. And programs are seen that hand in records as bytes,
/// which an MPI that does not cut adds up rightly.
const MOST_BYTES: u64 = 4 << 10;

/// True if the call is the MPI's because it is a long reduction by the program's own operation.
#[inline]
pub fn is_long(call: &Wanted) -> bool {
    call.is_own && call.of.bytes.0 > MOST_BYTES
}
