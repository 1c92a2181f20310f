//! Allreduce: everybody ends with the combination of everybody's data, the same to the last bit.

pub mod recursive_doubling;
