//! Allreduce: everybody ends with the combination of everybody's data, the same to the last bit.

super::registry::files! {
    mod trees;
    mod recursive_doubling;
    mod ring;
    mod halving_doubling;
}
