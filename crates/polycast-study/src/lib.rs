//! The study of networks: what papers have published about broadcasts, in virtual time and on paper. Nothing that a job needs is here.
//!
//! [`wormhole`] has networks of wormhole routers, [`multicast_figures`] the figures of those who measured multicast
//! broadcasts, and [`generate`] writes a broadcast for given hosts as a C file.
#![forbid(unsafe_code)]

pub mod generate;
pub mod multicast_figures;
pub mod wormhole;

use polycast_sim::{event_queue, random};
