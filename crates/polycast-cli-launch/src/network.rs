//! What a job is to know of its network, as options of the verbs that start one.

use std::path::{Path, PathBuf};

use polycast_lab::Lab;

use crate::settings::{CACHE, PARAMETERS, TOPOLOGY, read_parameters, read_topology};

/// The variables of ranks, with their values.
pub type Variables = Vec<(String, String)>;

/// Options on where the hosts are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct KnownTopology {
    /// The switches that join the hosts: a file of Slurm's, or what `polycast topology` writes
    #[arg(long, value_name = "FILE", conflicts_with = "no_topology")]
    topology: Option<PathBuf>,
    #[command(flatten)]
    no_topology: NoTopology,
}

/// The option to know nothing of the network.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct NoTopology {
    /// Take the network for one switch, whatever the environment, Slurm or the lab say
    #[arg(long)]
    no_topology: bool,
}

/// Options on how fast messages are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct KnownParameters {
    /// Choose algorithms by prediction, from parameters that `polycast measure` has written
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
}

impl KnownTopology {
    /// Returns the variables for the ranks, with the file checked.
    pub fn variables(&self) -> Result<Variables, Box<dyn std::error::Error>> {
        let Some(file) = &self.topology else { return Ok(self.no_topology.variables()) };
        read_topology(file)?;
        Ok(vec![(TOPOLOGY.to_owned(), absolute(file)?)])
    }
}

impl NoTopology {
    /// Returns the variables for the ranks.
    pub fn variables(self) -> Variables {
        if self.no_topology { vec![(TOPOLOGY.to_owned(), "off".to_owned())] } else { Vec::new() }
    }
}

impl KnownParameters {
    /// Returns the variables for the ranks, with the file checked.
    pub fn variables(&self) -> Result<Variables, Box<dyn std::error::Error>> {
        let Some(file) = &self.params else { return Ok(Vec::new()) };
        read_parameters(file)?;
        Ok(vec![(PARAMETERS.to_owned(), absolute(file)?)])
    }
}

/// Returns the absolute path of a file, for ranks have other current directories.
pub fn absolute(file: &Path) -> Result<String, Box<dyn std::error::Error>> {
    Ok(text_of(&file.canonicalize()?)?)
}

/// Returns a path as text, as launchers want it; a path that is not UTF-8 is an error.
pub fn text_of(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("{}: expected a path in UTF-8", path.display()))
}

/// Adds `later` to `variables`, in place of variables of the same names.
pub fn set(variables: &mut Variables, later: Variables) {
    variables.retain(|(name, _)| later.iter().all(|(other, _)| other != name));
    variables.extend(later);
}

/// Turns off the cache that keeps ranks' findings for later jobs, unless the variables set it.
pub fn forget(variables: &mut Variables) {
    if variables.iter().all(|(name, _)| name != CACHE) {
        variables.push((CACHE.to_owned(), "off".to_owned()));
    }
}

/// Tells ranks in a lab its switches, unless the variables name a topology. The cache is turned
/// off, for the ranks' findings hold in no other network.
pub fn tell_of_lab(variables: &mut Variables, lab: &Lab) {
    forget(variables);
    let is_told = variables.iter().any(|(name, _)| name == TOPOLOGY);
    if let Some(file) = lab.topology_file().filter(|_| !is_told) {
        variables.push((TOPOLOGY.to_owned(), file.to_string_lossy().into_owned()));
    }
}
