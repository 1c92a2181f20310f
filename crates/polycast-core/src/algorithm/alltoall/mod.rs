//! All-to-all: everybody has a block for everybody.

super::registry::files! {
    mod pairwise;
    mod bruck;
    mod linear;
}
