//! Trees: who sends to whom, in which order.
