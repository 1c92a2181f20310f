//! How long an algorithm takes, from the measured model and the topology.
