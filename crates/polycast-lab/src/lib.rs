//! A cluster in a box.
