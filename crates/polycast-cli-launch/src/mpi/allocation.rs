//! The nodes that a batch system has allotted to the job of this process, as the system's variables
//! say.

use std::env;
use std::path::Path;

use crate::hosts;

/// Nodes that a batch system has allotted. mpiexec knows them by itself, except for [`Allocation::hosts`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Ranks for which there is room, if that is known.
    pub places: Option<usize>,
    /// Hosts with their places where the batch system lists them in a file: Open MPI reads it only if it was built with the
    /// batch system's library (PBS).
    pub hosts: Vec<(String, usize)>,
}

impl Allocation {
    /// The allocation of the batch job that this process is in; `None` outside of a job.
    pub fn of_this_process() -> Option<Allocation> {
        Self::of(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Allocation> {
        let number = |name| variable(name).and_then(|text| text.parse().ok());
        if variable("SLURM_JOB_ID").is_some() {
            let places = variable("SLURM_TASKS_PER_NODE").and_then(|text| sum_of_tasks(&text));
            return Some(Allocation { places, hosts: Vec::new() });
        }
        if let Some(file) = variable("PBS_NODEFILE") {
            let listed = hosts::read_file(Path::new(&file)).unwrap_or_default();
            let hosts: Vec<_> = listed.into_iter().map(|host| (host.name, host.ranks.unwrap_or(1))).collect();
            let places = hosts.iter().map(|(_, ranks)| ranks).sum();
            return Some(Allocation { places: Some(places).filter(|places| *places > 0), hosts });
        }
        if variable("LSB_HOSTS").is_some() {
            return Some(Allocation { places: number("LSB_DJOB_NUMPROC"), hosts: Vec::new() });
        }
        variable("PE_HOSTFILE").map(|_| Allocation { places: number("NSLOTS"), hosts: Vec::new() })
    }
}

/// Slurm's `2(x3),1`: two tasks on each of three nodes and one on a fourth.
fn sum_of_tasks(text: &str) -> Option<usize> {
    let nodes = text.split(',').map(|word| match word.split_once("(x") {
        None => word.parse().ok(),
        Some((tasks, times)) => {
            tasks.parse::<usize>().ok()?.checked_mul(times.strip_suffix(')')?.parse().ok()?)
        }
    });
    nodes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allocation(variables: &[(&str, &str)]) -> Option<Allocation> {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Allocation::of(|name| value(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn batch_systems_say_how_many_ranks_fit() {
        assert_eq!(allocation(&[]), None);
        for (variables, places) in [
            (&[("SLURM_JOB_ID", "7"), ("SLURM_TASKS_PER_NODE", "2(x3),1")][..], Some(7)),
            (&[("SLURM_JOB_ID", "7"), ("SLURM_TASKS_PER_NODE", "4")], Some(4)),
            (&[("SLURM_JOB_ID", "7"), ("SLURM_TASKS_PER_NODE", "4(y")], None),
            (&[("LSB_HOSTS", "a a b"), ("LSB_DJOB_NUMPROC", "3")], Some(3)),
            (&[("PE_HOSTFILE", "/x"), ("NSLOTS", "8")], Some(8)),
            (&[("PBS_NODEFILE", "/nowhere")], None),
        ] {
            assert_eq!(allocation(variables).unwrap().places, places, "{variables:?}");
        }
    }

    #[test]
    fn the_node_file_of_pbs_has_a_line_per_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("nodes");
        std::fs::write(&file, "n1\nn1\nn0\n").unwrap();
        let found = allocation(&[("PBS_NODEFILE", file.to_str().unwrap())]).unwrap();
        assert_eq!(found, Allocation { places: Some(3), hosts: vec![("n1".into(), 2), ("n0".into(), 1)] });
    }
}
