//! Barrier: nobody ends before all have begun.

super::registry::files! {
    mod dissemination;
}
