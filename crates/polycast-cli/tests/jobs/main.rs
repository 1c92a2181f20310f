//! What needs `make build`: what is built and installed, and real MPI jobs on this machine and on the hosts of labs.

#[path = "../lab/cluster.rs"]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod datagram;
mod job;

mod activation;
mod applications;
mod bench;
mod blast;
mod cases;
mod collectives;
mod component;
mod conformance;
mod copy;
mod discover;
mod doctor;
mod doors;
mod ended;
mod environment;
mod generate;
mod hung;
mod install;
mod lab;
mod machine;
mod measure;
mod methods;
mod more_mpis;
mod multicast;
mod open_mpi_5;
mod packages;
mod placement;
mod recipes;
mod report;
mod several_programs;
mod site;
mod slurm;
mod small;
mod spawned;
mod standard_abi;
mod symbols;
mod topology_jobs;
mod traced;
mod tune;
mod unequal;
mod unserved;
mod verbs;
mod waiting;
mod wheel;
mod wrong;
