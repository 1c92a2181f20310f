//! Reduce: the root ends with the combination of everybody's data.

super::registry::files! {
    pub(in crate::algorithm) mod trees;
}
