//! Allreduce: everybody ends with the combination of everybody's data, the same to the last bit.

super::registry::files! {
    mod recursive_doubling;
}
