//! Where the parts of an installation are.
