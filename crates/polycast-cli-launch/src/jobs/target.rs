//! Where jobs are started: on this machine, on hosts, or in a lab that lives as long as the measurement.

use std::error::Error;
use std::ffi::OsString;
use std::process::Command;

use polycast_core::topology::Topology;
use polycast_lab::{Lab, LabSpec};

use crate::hosts::{self, HostsError, Listed};
use crate::mpi::{Allocation, Launch, Mpi};
use crate::reach::Reach;
use crate::usage::wrong;

/// The user's request for hosts and ranks.
#[derive(Clone, Debug, Default)]
pub struct TargetRequest {
    /// An emulated cluster.
    pub lab: Option<LabSpec>,
    /// Hosts as for `polycast run`.
    pub hosts: Option<Vec<Listed>>,
    /// Ranks in all.
    pub ranks: Option<usize>,
    /// Ranks on each host.
    pub ranks_per_host: Option<usize>,
    /// Further options for mpiexec.
    pub mpiexec_args: Vec<String>,
}

/// A place where jobs can be started.
pub struct JobTarget {
    reach: Reach,
    launch: Launch,
    ranks: usize,
    /// All hosts with their ranks, of which jobs may use fewer.
    all: Vec<(String, usize)>,
}

impl JobTarget {
    /// Makes the lab if there is to be one. It is removed when the target is dropped.
    pub fn open(request: TargetRequest) -> Result<JobTarget, Box<dyn Error>> {
        let mut launch = Launch { extra: request.mpiexec_args.clone(), ..Launch::default() };
        let reach = request.lab.as_ref().map_or(Ok(Reach::Here), Reach::new_lab)?;
        launch.hosts = match (reach.lab(), &request.hosts) {
            (Some(lab), _) => {
                let hosts = lab.hosts().iter().map(|host| Listed { name: host.name.clone(), ranks: None });
                fill(&hosts.collect::<Vec<_>>(), request.ranks, request.ranks_per_host.unwrap_or(1))
                    .map_err(wrong)?
            }
            (None, Some(hosts)) => match request.ranks_per_host {
                None => cut(hosts::place(hosts, request.ranks)?, request.ranks),
                Some(each) => fill(hosts, request.ranks, each).map_err(wrong)?,
            },
            (None, None) => Vec::new(),
        };
        reach.require_known_hosts(&launch)?;
        let ranks = match launch.hosts.is_empty() {
            false => launch.hosts.iter().map(|(_, ranks)| ranks).sum(),
            true => request.ranks.or_else(|| Allocation::of_this_process()?.places).unwrap_or_else(cores),
        };
        launch.ranks = Some(ranks);
        let all = launch.hosts.clone();
        Ok(JobTarget { reach, launch, ranks, all })
    }

    /// Limits further jobs to the first `hosts` of all, with `ranks_per_host` ranks on each, or
    /// with the hosts' own numbers.
    ///
    /// # Errors
    /// There are fewer.
    pub fn narrow(&mut self, hosts: usize, ranks_per_host: Option<usize>) -> Result<(), String> {
        let some = self.all.get(..hosts).filter(|some| !some.is_empty()).ok_or_else(|| {
            format!("expected at most {} hosts, as are there, found {hosts}", self.all.len())
        })?;
        self.launch.hosts =
            some.iter().map(|(name, ranks)| (name.clone(), ranks_per_host.unwrap_or(*ranks))).collect();
        self.ranks = self.launch.hosts.iter().map(|(_, ranks)| ranks).sum();
        self.launch.ranks = Some(self.ranks);
        Ok(())
    }

    /// Limits further jobs to as many hosts as `hosts` says, those with the most ranks, which keep
    /// their ranks.
    ///
    /// # Errors
    /// There are fewer.
    pub fn narrow_to_fullest(&mut self, hosts: usize) -> Result<(), String> {
        let mut fullest = self.all.clone();
        fullest.sort_by_key(|(_, ranks)| std::cmp::Reverse(*ranks));
        std::mem::swap(&mut self.all, &mut fullest);
        let narrowed = self.narrow(hosts, None);
        self.all = fullest;
        narrowed
    }

    /// Lets further jobs use all hosts again.
    pub fn widen(&mut self) {
        // Where hosts are not known, no job used fewer.
        let _ = self.narrow(self.all.len(), None);
    }

    /// Returns the number of ranks of a job here.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the lab, if the target is one.
    pub fn lab(&self) -> Option<&Lab> {
        self.reach.lab()
    }

    /// The switches between the hosts, where they are known: in a lab.
    pub fn topology(&self) -> Option<Topology> {
        Some(self.lab()?.plan().topology())
    }

    /// The hosts that a job uses; empty for this machine or a batch job's allocation.
    pub fn hosts(&self) -> &[(String, usize)] {
        &self.launch.hosts
    }

    /// The command that starts `program` here, with these variables for its ranks.
    pub fn command(
        &self,
        mpi: &Mpi,
        variables: &[(String, String)],
        program: &[OsString],
    ) -> Result<Command, Box<dyn Error>> {
        let launch = Launch { env: variables.to_vec(), ..self.launch.clone() };
        Ok(self.reach.job(mpi, launch, program)?)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

/// Gives host after host its ranks: `each` where a host does not say how many; all hosts unless
/// `ranks` is less.
pub fn fill(hosts: &[Listed], ranks: Option<usize>, each: usize) -> Result<Vec<(String, usize)>, String> {
    let placed: Vec<_> = hosts.iter().map(|host| (host.name.clone(), host.ranks.unwrap_or(each))).collect();
    let places: usize = placed.iter().map(|(_, here)| here).sum();
    if let Some(ranks) = ranks.filter(|ranks| *ranks > places) {
        // Where hosts have their own numbers, neither more of them nor a larger `each` need be what is missing.
        if hosts.iter().any(|host| host.ranks.is_some()) {
            return Err(HostsError::TooFewPlaces { ranks, places }.to_string());
        }
        return Err(format!(
            "{ranks} ranks with {each} on each host need {} hosts, there are {}: choose fewer ranks or \
             --ranks-per-host {}",
            ranks.div_ceil(each),
            hosts.len(),
            ranks.div_ceil(hosts.len().max(1))
        ));
    }
    Ok(cut(placed, ranks))
}

/// Limits the ranks to `ranks` in all, host after host, as mpiexec does where hosts take more.
fn cut(mut placed: Vec<(String, usize)>, ranks: Option<usize>) -> Vec<(String, usize)> {
    let mut left = ranks.unwrap_or(usize::MAX);
    for (_, here) in &mut placed {
        *here = left.min(*here);
        left -= *here;
    }
    placed.retain(|(_, here)| *here > 0);
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_ranks_run_than_are_asked_for_where_hosts_take_more() {
        for (hosts, expected) in [("a:4,b:4", &[("a", 4), ("b", 2)][..]), ("a:8,b:4", &[("a", 6)])] {
            let request = TargetRequest {
                hosts: Some(hosts::parse(hosts).unwrap()),
                ranks: Some(6),
                // Names need no addresses then.
                mpiexec_args: vec!["-launcher".into()],
                ..TargetRequest::default()
            };
            let target = JobTarget::open(request).unwrap();
            let placed: Vec<_> = target.hosts().iter().map(|(name, ranks)| (&name[..], *ranks)).collect();
            assert_eq!((placed.as_slice(), target.ranks()), (expected, 6));
        }
    }

    #[test]
    fn hosts_are_filled_in_their_order() {
        let hosts = hosts::parse("a,b,c").unwrap();
        let placed = |ranks, each| fill(&hosts, ranks, each);
        assert_eq!(placed(None, 2).unwrap().len(), 3);
        assert_eq!(placed(Some(3), 2).unwrap(), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        let error = placed(Some(7), 2).unwrap_err();
        assert!(
            error.contains("need 4 hosts, there are 3") && error.contains("--ranks-per-host 3"),
            "{error}"
        );
        let error = fill(&hosts::parse("a:1,b:1").unwrap(), Some(4), 4).unwrap_err();
        assert!(error.contains("4 ranks are to run, but the hosts take 2"), "{error}");
        let placed = fill(&hosts::parse("n[0-1]:3,x").unwrap(), None, 2).unwrap();
        assert_eq!(placed, [("n0".to_owned(), 3), ("n1".to_owned(), 3), ("x".to_owned(), 2)]);
    }
}
