//! Reduce: the root ends with the combination of everybody's data.

super::registry::files! {
    mod trees;
}
