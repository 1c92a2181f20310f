use std::fmt;
use std::str::FromStr;

use polycast_core::topology::Topology;

/// The way in which ranks are placed on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Hosts in the order of their names, each filled before the next.
    ByName,
    /// Hosts in the order of their names, one rank each, then again from the first.
    Cyclic,
    /// Hosts in a random order that this seed repeats, each filled before the next.
    Shuffled(u64),
}

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Placement, String> {
        let error =
            || format!("expected by-name, cyclic or shuffled:SEED with a whole number, found {text:?}");
        match text.split_once(':') {
            None if text == "by-name" => Ok(Placement::ByName),
            None if text == "cyclic" => Ok(Placement::Cyclic),
            Some(("shuffled", seed)) => seed.parse().map(Placement::Shuffled).map_err(|_| error()),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::ByName => f.pad("by-name"),
            Placement::Cyclic => f.pad("cyclic"),
            Placement::Shuffled(seed) => f.pad(&format!("shuffled:{seed}")),
        }
    }
}

impl Placement {
    /// The host of each rank; all hosts are filled unless `ranks` is less.
    pub fn hosts_of_ranks(
        self,
        topology: &Topology,
        ranks: Option<u32>,
        ranks_per_host: u32,
    ) -> Result<Vec<String>, String> {
        let mut hosts = topology.hosts_by_name();
        if let Placement::Shuffled(seed) = self {
            fastrand::Rng::with_seed(seed).shuffle(&mut hosts);
        }
        let each = ranks_per_host as usize;
        let places = hosts.len() * each;
        let ranks = ranks.map_or(places, |ranks| ranks as usize);
        if !(1..=places).contains(&ranks) {
            return Err(format!(
                "--ranks {ranks}: expected 1 to {places} ranks, for {} hosts take {each} each (--ranks-per-host)",
                hosts.len()
            ));
        }
        // A job takes only the hosts that it needs.
        hosts.truncate(ranks.div_ceil(each));
        let host_of = |rank: usize| match self {
            Placement::Cyclic => hosts[rank % hosts.len()],
            Placement::ByName | Placement::Shuffled(_) => hosts[rank / each],
        };
        Ok((0..ranks).map(|rank| topology.hosts[host_of(rank)].name.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(placement: &str, ranks: Option<u32>, each: u32) -> Result<String, String> {
        let topology = Topology::flat(["n10", "n1", "n2"].map(str::to_owned));
        let placement: Placement = placement.parse()?;
        Ok(placement.hosts_of_ranks(&topology, ranks, each)?.join(" "))
    }

    #[test]
    fn ranks_fill_hosts_or_go_around() {
        assert_eq!(hosts("by-name", None, 1).unwrap(), "n1 n2 n10");
        assert_eq!(hosts("by-name", Some(3), 2).unwrap(), "n1 n1 n2");
        assert_eq!(hosts("cyclic", Some(5), 2).unwrap(), "n1 n2 n10 n1 n2");
        assert_eq!(hosts("cyclic", Some(4), 2).unwrap(), "n1 n2 n1 n2");
    }

    #[test]
    fn a_shuffle_is_repeated_by_its_seed() {
        let orders: Vec<_> =
            (0..20).map(|seed| hosts(&format!("shuffled:{seed}"), None, 1).unwrap()).collect();
        assert_eq!(hosts("shuffled:7", None, 1).unwrap(), orders[7]);
        assert!(orders.iter().any(|order| *order != orders[0]), "twenty times the same order");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        assert!(hosts("by-name", Some(4), 1).unwrap_err().contains("expected 1 to 3 ranks"));
        assert!(hosts("by-name", Some(0), 1).is_err());
        assert!(hosts("shuffled", None, 1).unwrap_err().contains("shuffled:SEED"));
        assert!(hosts("shuffled:x", None, 1).is_err() && hosts("by-name:1", None, 1).is_err());
    }
}
