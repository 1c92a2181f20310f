//! What all pictures have in common: colours that mean the same on each of them, and texts that stay within them.

pub mod colour;
pub mod inside;
pub mod words;
