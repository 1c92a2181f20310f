//! Scatter: everybody ends with a block of the root's.

super::registry::files! {
    mod trees;
}
