//! Allgather: everybody ends with everybody's block.

super::registry::files! {
    mod ring;
    mod bruck;
}
