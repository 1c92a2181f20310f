//! The switches that join the hosts of a communicator, if anybody knows them.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use polycast_core::topology::{Address, Locality, Placed, Reading, Topology, may_order};

use super::record::RankRecord;
use super::texts::Texts;
use crate::abi::MpiError;
use crate::digest::Digest;
use crate::door::Door;
use crate::machine;
use crate::settings::{NetworkSetting, Settings};

/// Variable with a host's place, as Slurm tells it: its switches from the top, and its name, with
/// dots between them.
const ADDRESS: &str = "SLURM_TOPOLOGY_ADDR";
/// Variable that tells the parts of the address: `switch.switch.node`; `node` where Slurm knows of
/// no switches.
const ADDRESS_PATTERN: &str = "SLURM_TOPOLOGY_ADDR_PATTERN";
/// Most bytes of an address: a longer one is taken for none, for it is not Slurm's.
const MAX_ADDRESS_BYTES: usize = 1024;
/// Most hosts that a warning names.
const MAX_NAMED: usize = 3;

/// Knowledge of this process about its host.
pub struct Here {
    pub host_name: String,
    /// Digest of the kernel that runs now, and of the processors that this process is bound to:
    /// ranks that are bound to others do not share them.
    pub kernel: u64,
    /// Digest of the kernel and the host's name.
    pub host: u64,
    /// Digest of the kernel alone.
    pub kernel_start: u32,
    /// Slurm's address; empty where Slurm says nothing, or knows of no switches.
    address: String,
}

impl Here {
    /// Finds out about this process's host.
    pub fn new() -> Here {
        let (host_name, boot) = machine::host();
        let variable = |name| machine::variable(name).and_then(|value| value.into_string().ok());
        let address = variable(ADDRESS).unwrap_or_default();
        let is_name_only = variable(ADDRESS_PATTERN).is_some_and(|pattern| pattern == "node");
        let says_something = !is_name_only && address.contains('.') && address.len() <= MAX_ADDRESS_BYTES;
        Here {
            kernel: Digest::of("polycast kernel").bytes(boot.as_bytes()).bytes(&machine::binding()).finish(),
            host: Digest::of("polycast host").bytes(boot.as_bytes()).bytes(host_name.as_bytes()).finish(),
            kernel_start: Digest::of("polycast start").bytes(boot.as_bytes()).finish() as u32,
            host_name,
            address: if says_something { address } else { String::new() },
        }
    }

    pub fn name_bytes(&self) -> u16 {
        self.host_name.len() as u16
    }

    pub fn address_bytes(&self) -> u16 {
        self.address.len() as u16
    }
}

/// The ranks on a network that is known.
pub struct Known {
    pub placed: Placed,
    /// Origin of the knowledge, for the report.
    pub origin: String,
    /// Warning for the user.
    pub warning: Option<String>,
}

impl Known {
    fn new(topology: &Topology, host_names: &[&str], origin: String) -> Known {
        let placed = topology.place(host_names);
        let warning = named_hosts(&placed.unplaced_hosts).map(|hosts| {
            format!("topology {origin} lacks {hosts} of this job: placed apart, as if nothing were near")
        });
        Known { placed, origin, warning }
    }

    /// Number of leaf switches that hold these ranks.
    pub fn switches(&self, ranks: &[u32]) -> u32 {
        let Placed { topology, host_of, .. } = &self.placed;
        let switch_of = |rank: &u32| topology.hosts[host_of[*rank as usize]].switch;
        ranks.iter().map(switch_of).collect::<BTreeSet<_>>().len() as u32
    }
}

/// Words of all ranks on where they are.
#[derive(Default)]
pub struct Told {
    host_names: Texts,
    addresses: Texts,
    /// Place of each rank on its host; empty if it makes no difference.
    localities: Vec<Locality>,
}

/// Gathers the words of all ranks. Collective. Addresses are exchanged only if some rank has one,
/// and places on hosts only if they may be of use. `beside`: text that goes along, as long on all
/// ranks, which is returned.
pub fn ask(
    door: &Door,
    records: &[RankRecord],
    here: &Here,
    beside: &str,
) -> Result<(Told, Vec<String>), MpiError> {
    let has_addresses = records.iter().any(|record| record.address_bytes > 0);
    let bound: Vec<(u64, u64)> = records.iter().map(|record| (record.host, record.kernel)).collect();
    let (mut before, mut mine) = (0, here.host_name.clone());
    if may_order(&bound) {
        let locality = catch_unwind(machine::locality).unwrap_or_default();
        (before, mine) = (Locality::DIGITS as u32, locality.put_before(&mine));
    }
    let along = beside.len() as u32;
    let bytes_of = |record: &RankRecord| along + before + u32::from(record.name_bytes);
    let mut along = gather(door, records, bytes_of, &format!("{beside}{mine}"))?;
    let end = |text: &String| beside.len().min(text.len());
    let mut host_names: Vec<String> = along.iter_mut().map(|text| text.split_off(end(text))).collect();
    let localities = host_names.iter_mut().filter(|_| before > 0).map(Locality::take_from).collect();
    let addresses = match has_addresses {
        true => gather(door, records, |record| record.address_bytes.into(), &here.address)?,
        false => Vec::new(),
    };
    Ok((Told { host_names: Texts::new(&host_names), addresses: Texts::new(&addresses), localities }, along))
}

impl Told {
    /// Places of these ranks of MPI_COMM_WORLD on their hosts; empty if nobody knows them, or they
    /// are not to matter.
    pub fn localities(&self, settings: &Settings, ranks: &[u32]) -> Vec<Locality> {
        match settings.network {
            NetworkSetting::Flat => Vec::new(),
            _ if self.localities.is_empty() => Vec::new(),
            _ => ranks.iter().map(|rank| self.localities[*rank as usize]).collect(),
        }
    }

    /// Name of the host of this rank of MPI_COMM_WORLD.
    pub fn host_name(&self, rank: u32) -> String {
        self.host_names.get(rank as usize).to_owned()
    }

    /// The network as settings or addresses tell it; `None`: nothing is known.
    pub fn find_out(&self, settings: &Settings) -> Option<Known> {
        let names = || self.host_names.iter().collect::<Vec<&str>>();
        match &settings.network {
            NetworkSetting::Flat => None,
            NetworkSetting::Known(known) => Some(Known::new(&known.content, &names(), known.file.clone())),
            NetworkSetting::Unsaid if self.addresses.is_empty() => None,
            NetworkSetting::Unsaid => {
                let names = names();
                let told = names.iter().zip(self.addresses.iter());
                let told: Vec<_> = told.map(|(host, address)| Address { line: 0, host, address }).collect();
                // Addresses that name no switch, or no names at all, say nothing.
                let topology = Topology::from_addresses(&told, ADDRESS, Reading { spanning_tree: true }).ok();
                topology.map(|topology| Known::new(&topology, &names, ADDRESS.to_owned()))
            }
        }
    }
}

/// The placement where nothing is known: all hosts on one switch. `host_of` has an entry per rank.
pub fn flat(host_of: &[u64]) -> Placed {
    let names: Vec<String> = host_of.iter().map(u64::to_string).collect();
    let hosts: BTreeSet<String> = names.iter().cloned().collect();
    Topology::flat(hosts).place(&names)
}

/// Text that names some of these hosts; `None` if there are none.
pub fn named_hosts(names: &[String]) -> Option<String> {
    let named = names.iter().take(MAX_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MAX_NAMED);
    match (names.len(), more) {
        (0, _) => None,
        (1, _) => Some(format!("host {named}")),
        (_, 0) => Some(format!("hosts {named}")),
        _ => Some(format!("hosts {named} and {more} more")),
    }
}

/// Gathers the text of every rank; all ranks know its length from the records.
fn gather(
    door: &Door,
    records: &[RankRecord],
    bytes_of: impl Fn(&RankRecord) -> u32,
    mine: &str,
) -> Result<Vec<String>, MpiError> {
    let most = records.iter().map(&bytes_of).max().unwrap_or(0) as usize;
    let mut padded = mine.as_bytes().to_vec();
    padded.resize(most, 0);
    let all = door.allgather_bytes(&padded, records.len())?;
    let text = |(index, record)| {
        let start = index * most;
        let bytes = &all[start..start + bytes_of(record) as usize];
        String::from_utf8_lossy(bytes).into_owned()
    };
    Ok(records.iter().enumerate().map(text).collect())
}
