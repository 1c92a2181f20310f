//! The arguments that the measuring verbs share: where jobs are started, and with which MPI.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polycast_lab::{LabError, LabSpec};

use crate::hosts;
use crate::install::Installation;
use crate::jobs::RankCounts;
use crate::jobs::target::{JobTarget, TargetRequest};
use crate::mpi::{Abi, Mpi};
use crate::network;
use crate::numbers::whole;
use crate::usage::wrong;

/// Arguments about the job.
#[derive(clap::Args)]
pub struct JobArgs {
    /// Measure in an emulated cluster that is made and removed again: hosts=16,rate=20mbit or topology=FILE, and
    /// burst=, loss=, block=, name=
    #[arg(long, value_name = "LAB", conflicts_with = "hosts", value_parser = parse_lab)]
    pub lab: Option<Arc<LabSpec>>,
    /// Hosts to run on, each with an optional number of ranks: a:2,n[0-7]
    #[arg(long, value_name = "HOSTS")]
    pub hosts: Option<String>,
    /// The same from a file as for mpiexec: a line per host, `a`, `a:2` or `a slots=2`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["hosts", "lab"])]
    pub hostfile: Option<PathBuf>,
    /// Ranks in all [default: all that the hosts or a batch job's allocation take; else as many as cores]. `bench` takes several, as
    /// 2,3,16 or 2..16 (doubling): communicators of the first so many ranks, one after the other in one job
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    pub ranks: Option<RankCounts>,
    /// Ranks on each host
    #[arg(long, value_name = "K", value_parser = whole(1..=hosts::MAX_RANKS))]
    pub ranks_per_host: Option<usize>,
    /// openmpi, mpich, or the path of an mpiexec [default: the mpiexec on PATH]. `bench` takes several, as openmpi,mpich: jobs with
    /// each in turn
    #[arg(long, value_name = "MPI")]
    pub mpi: Option<String>,
    /// A variable for the ranks, whatever this environment says; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub variables: Vec<(String, String)>,
    /// Further options for mpiexec, as one word
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub mpiexec_args: Option<String>,
    /// The measuring program, where the installed one was built with another MPI of this family; see
    /// docs/benchmarking.md
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
}

fn parse_lab(text: &str) -> Result<Arc<LabSpec>, LabError> {
    text.parse().map(Arc::new)
}

impl JobArgs {
    /// The MPI that was asked for.
    pub fn mpi(&self) -> Result<Mpi, Box<dyn Error>> {
        match self.mpi_names() {
            1 => self.mpis()?.pop().ok_or_else(|| wrong("--mpi: expected one")),
            _ => Err(wrong("--mpi: expected one: only `polycast bench` measures several in turn")),
        }
    }

    /// The number of MPIs that were named.
    pub fn mpi_names(&self) -> usize {
        self.mpi.as_deref().map_or(1, |list| list.split(',').count())
    }

    /// The MPIs that were named, where several may be.
    pub fn mpis(&self) -> Result<Vec<Mpi>, Box<dyn Error>> {
        let Some(list) = &self.mpi else { return Ok(vec![Mpi::default_on_path()?]) };
        let mut mpis: Vec<Mpi> = Vec::new();
        for name in list.split(',') {
            let mpi = Mpi::resolve(name)?;
            if mpis.iter().any(|other| other.title() == mpi.title()) {
                let again = mpi.title();
                return Err(wrong(format_args!("--mpi {list}: expected each MPI once, found {again} again")));
            }
            mpis.push(mpi);
        }
        Ok(mpis)
    }

    /// The place of the job; a lab is made for it.
    pub fn target(&self) -> Result<JobTarget, Box<dyn Error>> {
        match &self.ranks {
            Some(ranks) if ranks.all().len() > 1 => Err(wrong(
                "--ranks: expected one number: only `polycast bench` measures several one after the other",
            )),
            _ => self.target_for_most(),
        }
    }

    /// The place of the largest job, where several numbers of ranks are measured; a lab is made for
    /// it.
    pub fn target_for_most(&self) -> Result<JobTarget, Box<dyn Error>> {
        let options = self.mpiexec_args.as_deref().map(shell_words::split).transpose();
        JobTarget::open(TargetRequest {
            lab: self.lab.as_deref().cloned(),
            hosts: hosts::given(self.hosts.as_deref(), self.hostfile.as_deref())?,
            ranks: self.ranks.as_ref().map(RankCounts::most),
            ranks_per_host: self.ranks_per_host,
            mpiexec_args: options
                .map_err(|error| wrong(format_args!("--mpiexec-args: {error}")))?
                .unwrap_or_default(),
        })
    }

    /// The measuring program for this MPI.
    pub fn measuring_program(&self, installation: &Installation, mpi: &Mpi) -> Result<PathBuf, String> {
        if let Some(program) = &self.program {
            // Launchers look for a bare name on PATH, and hosts of a lab have other current directories.
            return program
                .canonicalize()
                .map_err(|error| format!("--program {}: {error}", program.display()));
        }
        installed_program(installation, mpi)
    }

    /// The variables that ranks need which run without polycast.
    pub fn stock_variables(&self, mpi: &Mpi) -> Result<Vec<(String, String)>, String> {
        let mut variables = own_libraries(mpi)?;
        self.prefer_wanted(&mut variables);
        Ok(variables)
    }

    /// Puts the user's variables in the place of those of the same name.
    pub fn prefer_wanted(&self, variables: &mut Vec<(String, String)>) {
        network::set(variables, self.variables.clone());
    }
}

/// The measuring program that was built with an MPI of this family.
pub fn installed_program(installation: &Installation, mpi: &Mpi) -> Result<PathBuf, String> {
    let name = format!("polycast-bench-{}", mpi.family());
    let program = installation.library_directory().join("bench").join(name);
    if program.is_file() {
        return Ok(program);
    }
    let mpicc = Abi::from(mpi.family()).example_mpicc();
    Err(format!(
        "no measuring program for {}: expected {}; build it with `make doors MPICC={mpicc}`",
        mpi.title(),
        program.display()
    ))
}

/// The variables by which ranks find the libraries of an MPI that is installed on its own.
pub fn own_libraries(mpi: &Mpi) -> Result<Vec<(String, String)>, String> {
    let libraries = libraries_beside(mpi.path(), Abi::from(mpi.family()));
    libraries
        .iter()
        .map(|libraries| Ok(("LD_LIBRARY_PATH".to_owned(), network::text_of(libraries)?)))
        .collect()
}

/// The folder of an MPI's libraries where it is installed on its own: ranks must load those of their mpiexec, also if
/// another MPI with the same interface stands first on the loader's way.
fn libraries_beside(mpiexec: &Path, abi: Abi) -> Option<PathBuf> {
    let folder = mpiexec.parent()?.parent()?.join("lib");
    abi.sonames().iter().any(|soname| folder.join(soname).exists()).then_some(folder)
}

/// Reads `NAME=VALUE`.
pub fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_a_name() {
        assert_eq!(parse_variable("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(parse_variable("A="), Ok(("A".into(), String::new())));
        assert!(parse_variable("=b").is_err() && parse_variable("A").is_err());
    }
}
