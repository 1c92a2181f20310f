//! Chooses an algorithm for a call from a table of rules.
