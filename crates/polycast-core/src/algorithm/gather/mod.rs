//! Gather: the root ends with everybody's block.

super::registry::files! {
    mod trees;
}
