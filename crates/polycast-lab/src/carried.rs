//! The rate of links that this machine carries: the fastest of the usual ones at which the links,
//! and not its cores, are the limit.

use std::time::Duration;

use polycast_core::units::Rate;

use crate::{Lab, LabError, LabSpec, Lifetime};

/// Rates to choose from, the fastest first. On slower links 4 MiB take minutes by some broadcasts.
const USUAL_MBIT: [u64; 8] = [1000, 500, 200, 100, 50, 20, 10, 5];

/// No machine carries a lab of such links; it shows what it carries instead.
const TOO_FAST_MBIT: u64 = 10_000;

/// The part of what the cores can forward that links may ask of them: programs need cores, too.
const SHARE: f64 = 2.0 / 3.0;

const LOAD_TIME: Duration = Duration::from_millis(700);

/// The rate of a lab's links, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carried {
    /// The rate for links that have none in the topology.
    pub rate: Rate,
    /// The rate that each link got when all of them were loaded at once, with no limit but the
    /// machine.
    pub most_bits_per_second: u64,
    /// Whether all links at once were carried at that rate.
    pub is_verified: bool,
}

impl LabSpec {
    /// Chooses the rate of links that have none, by measurements in labs like this one that are removed again; nothing
    /// else should run meanwhile. `None` where there is nothing to choose: the rate is given, every link has its own in
    /// the topology, or there is only one host.
    pub fn carried_rate(&self) -> Result<Option<Carried>, LabError> {
        let of = |mbit: u64| LabSpec { rate: Some(mbit_rate(mbit)), name: None, ..self.clone() };
        if !self.has_open_links()? {
            return Ok(None);
        }
        let load = |mbit| Lab::up(&of(mbit).plan()?, None, Lifetime::Caller)?.load(LOAD_TIME);
        let all = load(TOO_FAST_MBIT)?;
        let most_bits_per_second = all.achieved_bits_per_second / all.flows.max(1) as u64;
        let mut carried = None;
        for &mbit in candidates(most_bits_per_second) {
            // Once more, because what disturbs for a moment says nothing about the machine.
            let is_verified = load(mbit)?.believable || load(mbit)?.believable;
            carried = Some(Carried { rate: mbit_rate(mbit), most_bits_per_second, is_verified });
            if is_verified {
                break;
            }
        }
        Ok(carried)
    }

    /// True if there are links between hosts for which neither the topology nor this specification
    /// gives a rate.
    fn has_open_links(&self) -> Result<bool, LabError> {
        if self.rate.is_some() {
            return Ok(false);
        }
        let plan = |mbit: u64| LabSpec { rate: Some(mbit_rate(mbit)), ..self.clone() }.plan();
        let (one, other) = (plan(TOO_FAST_MBIT)?, plan(USUAL_MBIT[0])?);
        Ok(one.hosts.len() > 1 && one != other)
    }
}

/// At most three rates, the fastest first, that a machine can carry which forwards this rate over each link; at least one.
fn candidates(most_bits_per_second: u64) -> &'static [u64] {
    let limit = SHARE * most_bits_per_second as f64;
    let first =
        USUAL_MBIT.iter().position(|mbit| *mbit as f64 * 1e6 <= limit).unwrap_or(USUAL_MBIT.len() - 1);
    &USUAL_MBIT[first..USUAL_MBIT.len().min(first + 3)]
}

fn mbit_rate(mbit: u64) -> Rate {
    Rate::from_bits_per_second(mbit * 1_000_000).unwrap_or(Rate::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_ask_for_a_part_of_what_the_cores_forward() {
        for (most_mbit, expected) in [
            (10_000, &[1000, 500, 200][..]),
            (1500, &[1000, 500, 200]),
            (1499, &[500, 200, 100]),
            (62, &[20, 10, 5]),
            (14, &[5]),
            (0, &[5]),
        ] {
            assert_eq!(candidates(most_mbit * 1_000_000), expected, "{most_mbit}");
        }
    }

    #[test]
    fn where_links_have_their_rates_there_is_nothing_to_choose() {
        let spec: LabSpec = "hosts=4,rate=20mbit".parse().unwrap();
        assert_eq!(spec.carried_rate().unwrap(), None);
        assert_eq!("hosts=1".parse::<LabSpec>().unwrap().carried_rate().unwrap(), None);
    }

    #[test]
    fn links_are_open_where_the_topology_says_no_rate_whatever_the_others_have() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, expected) in [
            ("SwitchName=s0 Nodes=a,b LinkSpeed=10000\n", false),
            ("SwitchName=s0 Nodes=a,b\n", true),
            ("SwitchName=s0 Nodes=a,b LinkSpeed=20\nSwitchName=s1 Nodes=c Switches=s0\n", true),
        ] {
            std::fs::write(file.path(), text).unwrap();
            let spec = LabSpec { topology: Some(file.path().into()), ..LabSpec::default() };
            assert_eq!(spec.has_open_links().unwrap(), expected, "{text}");
        }
    }
}
