use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use polycast_core::topology::{Reading, Topology, expand_hostlist};
use polycast_core::units::Rate;

use crate::error::at;
use crate::quantity::{DEFAULT_BUCKET_BYTES, parse_bucket_bytes};
use crate::state::check_name;
use crate::{LabError, MAX_HOSTS, Plan};

/// A lab as people ask for it: `hosts=16,rate=20mbit`, `topology=FILE,rate=100mbit,burst=64KiB,loss=0.5%,block=h3,name=x`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabSpec {
    /// Number of hosts on one switch; excludes `topology`.
    pub hosts: Option<usize>,
    /// A topology file in any format that polycast reads; excludes `hosts`.
    pub topology: Option<PathBuf>,
    /// Rate of links that have none in the topology; [`LabSpec::DEFAULT_RATE`] if absent.
    pub rate: Option<Rate>,
    /// Bucket of every link in bytes; one packet if absent.
    pub burst_bytes: Option<u32>,
    /// Packets that every link loses, in each direction, per million; none if absent.
    pub loss_per_million: Option<u32>,
    /// Hosts from and to which switches forward no UDP multicast; the key `block` may be repeated.
    pub block_multicast: Vec<String>,
    /// Name of the lab; the first free one if absent.
    pub name: Option<String>,
}

impl LabSpec {
    /// The rate that shows what an algorithm does on any machine: links, not cores, are the limit.
    pub const DEFAULT_RATE: &str = "20mbit";
    /// Hosts where neither their number nor a topology is given.
    pub const DEFAULT_HOSTS: usize = 16;

    /// The plan of this lab; reads the topology file.
    pub fn plan(&self) -> Result<Plan, LabError> {
        let rate = match self.rate {
            Some(rate) => rate,
            None => Self::DEFAULT_RATE.parse()?,
        };
        let mut plan = match (&self.topology, self.hosts) {
            (Some(file), None) => Plan::from_topology(&read_topology(file)?, rate)?,
            (None, hosts) => Plan::one_switch(hosts.unwrap_or(Self::DEFAULT_HOSTS), rate)?,
            (Some(_), Some(hosts)) => {
                let expected = "either a number of hosts or a topology file, which has its own hosts";
                return Err(LabError::Value {
                    key: "hosts",
                    expected: expected.into(),
                    found: hosts.to_string(),
                });
            }
        };
        plan.burst_bytes = self.burst_bytes.unwrap_or(DEFAULT_BUCKET_BYTES);
        plan.loss_per_million = self.loss_per_million.unwrap_or(0);
        for list in &self.block_multicast {
            let hosts = expand_hostlist(list, MAX_HOSTS).map_err(|problem| LabError::Value {
                key: "block-multicast",
                expected: format!("hosts such as h1,h[3-7] ({problem})"),
                found: list.clone(),
            })?;
            hosts.iter().try_for_each(|name| plan.block_multicast(name.trim()))?;
        }
        Ok(plan)
    }
}

/// Reads a topology file, which must describe a tree: a lab does not take a spanning tree out of a
/// graph.
fn read_topology(file: &Path) -> Result<Topology, LabError> {
    let text = fs::read_to_string(file).map_err(at("read", file))?;
    Ok(Topology::parse(&text, &file.display().to_string(), Reading::default())?)
}

/// Reads a loss: `1%`, `0.01%`; one packet in a million is the least, all but one in a million the most.
pub fn parse_loss_per_million(text: &str) -> Result<u32, LabError> {
    let error = || LabError::Value {
        key: "loss",
        expected: "a percentage below 100 such as 1%, or 0.0001%, the least".into(),
        found: text.into(),
    };
    let percent: f64 =
        text.trim().strip_suffix('%').ok_or_else(error)?.trim().parse().map_err(|_| error())?;
    let per_million = (percent * 10_000.0).round();
    // What is less than that is not nothing.
    let is_one = percent == 0.0 || (1.0..1_000_000.0).contains(&per_million);
    if is_one { Ok(per_million as u32) } else { Err(error()) }
}

impl FromStr for LabSpec {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let mut spec = LabSpec::default();
        for entry in text.split(',').filter(|entry| !entry.trim().is_empty()) {
            let (key, value) = entry.split_once('=').ok_or_else(|| unknown_key(entry))?;
            let value = value.trim();
            let twice = match key.trim() {
                "hosts" => spec.hosts.replace(parse_hosts(value)?).is_some(),
                "topology" => spec.topology.replace(value.into()).is_some(),
                "rate" => spec.rate.replace(value.parse()?).is_some(),
                "burst" => spec.burst_bytes.replace(parse_bucket_bytes(value)?).is_some(),
                "loss" => spec.loss_per_million.replace(parse_loss_per_million(value)?).is_some(),
                "block" => {
                    spec.block_multicast.push(value.into());
                    false
                }
                "name" => {
                    check_name(value)?;
                    spec.name.replace(value.into()).is_some()
                }
                _ => return Err(unknown_key(entry)),
            };
            if twice {
                return Err(LabError::Value {
                    key: "lab",
                    expected: "every key once".into(),
                    found: entry.into(),
                });
            }
        }
        Ok(spec)
    }
}

fn parse_hosts(value: &str) -> Result<usize, LabError> {
    let error =
        |_| LabError::Value { key: "hosts", expected: "a number such as 16".into(), found: value.into() };
    value.parse().map_err(error)
}

fn unknown_key(entry: &str) -> LabError {
    let expected = "hosts=N, rate=20mbit, topology=FILE, burst=64KiB, loss=1%, block=HOST or name=x, separated by commas";
    LabError::Value { key: "lab", expected: expected.into(), found: entry.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_are_read() {
        let spec: LabSpec = "topology=a/b.conf,rate=100mbit,burst=64KiB,loss=0.5%,name=x".parse().unwrap();
        assert_eq!(spec.topology, Some("a/b.conf".into()));
        assert_eq!(spec.rate, Some("100mbit".parse().unwrap()));
        assert_eq!((spec.burst_bytes, spec.loss_per_million), (Some(65_536), Some(5_000)));
        assert_eq!(spec.name.as_deref(), Some("x"));
    }

    #[test]
    fn one_packet_in_a_million_is_the_least_loss() {
        for (text, per_million) in [("0%", 0), ("0.0001%", 1), ("99.9999%", 999_999)] {
            assert_eq!(parse_loss_per_million(text).unwrap(), per_million, "{text}");
        }
    }

    #[test]
    fn several_hosts_may_be_blocked() {
        let plan = "hosts=6,block=h1,block=h[3-4]".parse::<LabSpec>().unwrap().plan().unwrap();
        let blocked: Vec<_> =
            plan.hosts.iter().filter(|host| host.blocks_multicast).map(|host| &host.name).collect();
        assert_eq!(blocked, ["h1", "h3", "h4"]);
        assert!("hosts=4,block=h4".parse::<LabSpec>().unwrap().plan().is_err());
    }

    #[test]
    fn an_empty_specification_is_the_usual_lab() {
        let plan = "".parse::<LabSpec>().unwrap().plan().unwrap();
        assert_eq!(
            (plan.hosts.len(), plan.burst_bytes, plan.slowest_rate().to_string()),
            (16, 1_600, "20mbit".into())
        );
    }

    #[test]
    fn errors_name_the_key() {
        for (text, named) in [
            ("hosts=x", "hosts"),
            ("rate=20", "rate"),
            ("burst=1", "burst"),
            ("loss=1", "loss"),
            ("loss=100%", "loss"),
            ("loss=0.00004%", "loss"),
            ("loss=-0.00004%", "loss"),
            ("name=a/b", "name"),
            ("color=red", "color"),
            ("hosts", "hosts"),
            ("hosts=2,hosts=3", "every key once"),
        ] {
            let error = text.parse::<LabSpec>().unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
        let both = "hosts=2,topology=x".parse::<LabSpec>().unwrap();
        assert!(LabSpec { topology: Some("/dev/null".into()), ..both }.plan().is_err());
    }
}
