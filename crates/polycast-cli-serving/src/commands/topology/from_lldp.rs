//! `polycast topology from-lldp`.

use std::fs;
use std::path::{Path, PathBuf};

use polycast_core::files::FileKind;
use polycast_core::topology::{Neighbours, Topology, counting_key};

use super::super::Outcome;
use super::convert::Output;
use super::input::{Input, InputError};

/// Arguments of `polycast topology from-lldp`.
#[derive(clap::Args)]
#[command(after_help = "\
A host sees the switch that it is joined to and nothing above it: if there are
several, one switch is assumed to join them.

Examples:
  clush -w 'dev[0-15]' \\
    'lldpcli -f json0 show neighbors > /shared/lldp/$(hostname).json'
  polycast topology from-lldp /shared/lldp -o cluster.json
  polycast topology from-lldp dev0=a.json dev1=b.json --to slurm-conf")]
pub struct Args {
    /// What `lldpcli -f json0 show neighbors` prints on each host: folders of files HOST.json, or HOST=FILE
    #[arg(value_name = "FOLDER|HOST=FILE", required = true)]
    files: Vec<String>,

    #[command(flatten)]
    output: Output,
}

/// Runs the verb.
pub fn run(args: &Args) -> Outcome {
    let mut hosts: Vec<(String, Input)> = Vec::new();
    for argument in &args.files {
        match argument.split_once('=') {
            Some((host, file)) if !Path::new(argument).is_dir() => {
                hosts.push((host.to_owned(), Input::read(Path::new(file), FileKind::Neighbours)?));
            }
            _ => {
                for (host, file) in files_of(Path::new(argument))? {
                    hosts.push((host, Input::read(&file, FileKind::Neighbours)?));
                }
            }
        }
    }
    let neighbours: Vec<Neighbours<'_>> =
        hosts.iter().map(|(host, input)| Neighbours { host, file: &input.name, text: &input.text }).collect();
    args.output.write(&Topology::from_lldp(&neighbours)?)
}

/// The files HOST.json of a folder, in the order in which people count hosts.
fn files_of(folder: &Path) -> Result<Vec<(String, PathBuf)>, Box<dyn std::error::Error>> {
    let error = |source| InputError::new(folder, source);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        if let Some(host) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_json) {
            files.push((host.to_owned(), path));
        }
    }
    if files.is_empty() {
        return Err(format!("expected files HOST.json in {}, found none", folder.display()).into());
    }
    files.sort_by(|(one, _), (other, _)| counting_key(one).cmp(&counting_key(other)));
    Ok(files)
}
