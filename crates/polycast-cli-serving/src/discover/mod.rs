//! Finds the tree of switches by measurement: which flows between hosts disturb each other.
//!
//! ```text
//!  infer ── quartet of hosts ──▶ Flows ── orders ──▶ RankServer: a → c alone, b → d alone, both
//!        ◀── disturbed? ────────
//!  findings: the topology with rates, notes on what it rests on and what cannot be seen, comparison with the truth
//! ```

pub mod findings;
pub mod flows;
pub mod infer;
