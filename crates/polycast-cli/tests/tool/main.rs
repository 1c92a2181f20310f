//! The tool without any MPI job: launchers, installations and clusters are files that only look like them.

#[path = "../common/mod.rs"]
mod common;
#[path = "../fake/mod.rs"]
mod fake;

mod bench;
mod browser;
mod cache;
mod command_line;
mod copy;
mod documents;
mod explain;
mod info;
mod json;
mod lab;
mod madcap;
mod predict;
mod predict_collectives;
mod replaced;
mod report;
mod run;
mod simulate;
mod table;
mod times;
mod topology;
mod tree;
mod tune;
mod versions;
mod width;
