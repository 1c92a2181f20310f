//! Gather: the root ends with everybody's block.

super::registry::files! {
    pub(in crate::algorithm) mod trees;
}
