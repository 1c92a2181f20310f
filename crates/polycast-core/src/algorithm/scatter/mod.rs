//! Scatter: everybody ends with a block of the root's.

super::registry::files! {
    pub(in crate::algorithm) mod trees;
}
