//! Allgather: everybody ends with everybody's block.

super::registry::files! {
    mod ring;
    mod recursive_doubling;
    mod bruck;
}
