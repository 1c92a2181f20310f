//! What a trial has found, as a line of a file that later jobs read.
//!
//! ```text
//! {"version":1,"mpi":"/usr/lib/libmpi.so.40.30.4","hosts":"node#","build":"9f…","ranks":16,…,"collective":"bcast","first_bytes":65536,
//!  …,"ways":[{"choice":"multicast-pull","nanos":2100000},{"choice":"stock","nanos":9000000}],"stays":"multicast-pull","again":1024,"day":20780}
//! ```
//! Whoever writes adds a line, so of two jobs that write at once nothing is lost; of lines about the same calls the last one counts. What
//! cannot be read, is of another version, of rules that choose among other ways, or older than [`MAX_AGE_DAYS`] counts as not there.

use std::collections::HashSet;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::{Arm, Finding, MAX_ARMS, Sameness};
use crate::policy::{Capabilities, Choice, Collective, CommunicatorShape, Epoch, Policy};

/// The version of the format.
const VERSION: u32 = 1;
/// The file's name in its folder.
pub const CACHE_FILE: &str = "trials.jsonl";
/// The largest ratio of neighbouring classes of rates, 1, 2, 5, 10 ….
const NEAR_RATE: f64 = 2.5;
/// Days for which a finding counts, for networks change.
pub const MAX_AGE_DAYS: u64 = 30;

/// The setting in which trials hold: jobs that have the same learn from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The MPI that serves below: the file of its library.
    pub mpi: String,
    /// The hosts: rank 0's name, with `#` for numbers.
    pub hosts: String,
    /// The build of polycast.
    pub build: u64,
    /// The shape of the communicator.
    pub shape: CommunicatorShape,
}

impl Setting {
    /// The kind of a host: its name with `#` for numbers, by which a cluster's hosts differ.
    pub fn kind_of_host(name: &str) -> String {
        let parts = name.split(|letter: char| letter.is_ascii_digit()).filter(|part| !part.is_empty());
        let joined = parts.collect::<Vec<_>>().join("#");
        let ends = |at: Option<char>| at.is_some_and(|letter| letter.is_ascii_digit());
        let mark = |is_number: bool| if is_number { "#" } else { "" };
        format!("{}{joined}{}", mark(ends(name.chars().next())), mark(ends(name.chars().last())))
    }
}

/// A finding in its setting: the keys of its line, one after the other, for reading nested ones takes twice as long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    version: u32,
    mpi: String,
    hosts: String,
    /// The build, in hexadecimal digits.
    build: String,
    ranks: u32,
    nodes: u32,
    ranks_per_node: u32,
    #[serde(default = "own_processors", skip_serializing_if = "are_own_processors")]
    ranks_per_processor: u32,
    switches: u32,
    /// Bits per second, if the job has measured them: what is best on a fast network is not on a slow one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    collective: String,
    /// The fewest bytes of a call; the most are less than twice as many.
    first_bytes: u64,
    interval: u16,
    epoch: usize,
    capabilities: u8,
    ways: Vec<Way>,
    stays: String,
    /// The call of its size at which the finding is looked at again; a power of two.
    again: u64,
    /// The day on which it was found, counted from 1970.
    day: u64,
}

/// The number that is not written: each rank has a processor of its own.
fn own_processors() -> u32 {
    1
}

fn are_own_processors(ranks_per_processor: &u32) -> bool {
    *ranks_per_processor == own_processors()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Way {
    choice: String,
    nanos: u64,
}

/// A finding that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// The calls that the finding is of.
    pub of: Sameness,
    /// The ways that were compared, each with the nanoseconds of its median call.
    pub times: Vec<(Choice, u64)>,
    /// The place among these of the way that stays.
    pub arm: Arm,
    /// The call until which that way stays.
    pub until_calls: u64,
}

/// The choices that are open to such calls; none if the rules know no such.
pub(super) fn ways(policy: &Policy, of: Sameness) -> Vec<Choice> {
    match usize::from(of.interval) < policy.intervals(of.collective, of.epoch) {
        true => policy.ways_of(of).collect(),
        false => Vec::new(),
    }
}

impl Memory {
    /// The memory of a finding among these ways, whose best stays until call `until_calls`.
    pub fn new(setting: &Setting, ways: &[Choice], finding: &Finding, until_calls: u64, day: u64) -> Memory {
        let CommunicatorShape { ranks, nodes, ranks_per_node, ranks_per_processor, switches, .. } =
            setting.shape;
        let Sameness { collective, epoch, interval, there, .. } = finding.of;
        Memory {
            version: VERSION,
            mpi: setting.mpi.clone(),
            hosts: setting.hosts.clone(),
            build: digits(setting.build),
            ranks,
            nodes,
            ranks_per_node,
            ranks_per_processor,
            switches,
            rate: rate_of(&setting.shape),
            collective: collective.to_string(),
            first_bytes: finding.of.first_bytes(),
            interval,
            epoch: epoch.0,
            capabilities: there.bits(),
            stays: ways[usize::from(finding.arm)].to_string(),
            ways: ways
                .iter()
                .zip(finding.nanos)
                .map(|(way, nanos)| Way { choice: way.to_string(), nanos })
                .collect(),
            again: until_calls,
            day,
        }
    }

    /// Reads a file's findings of this version, if young enough, in order; of the same calls the last.
    pub fn read(text: &str, today: u64) -> Vec<Memory> {
        Memory::read_all(text, today).0
    }

    /// Reads as [`Memory::read`] does, and counts the lines that are none of this version.
    pub fn read_all(text: &str, today: u64) -> (Vec<Memory>, usize) {
        let (mut young, mut unread): (Vec<Memory>, usize) = (Vec::new(), 0);
        for line in text.lines().filter(|line| !line.is_empty()) {
            match serde_json::from_str::<Memory>(line).ok().filter(|memory| memory.version == VERSION) {
                Some(memory) if memory.day.saturating_add(MAX_AGE_DAYS) >= today => young.push(memory),
                Some(_) => {}
                None => unread += 1,
            }
        }
        let mut seen = HashSet::new();
        let is_last: Vec<bool> = young.iter().rev().map(|memory| seen.insert(memory.calls())).collect();
        let counts = young.iter().zip(is_last.iter().rev()).filter(|(_, is_last)| **is_last);
        (counts.map(|(memory, _)| memory.clone()).collect(), unread)
    }

    /// Writes the finding as a line, without the line's end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts")
    }

    /// The finding for this setting, if it is from there, and chosen among the ways of these rules.
    pub fn recall(&self, setting: &Setting, policy: &Policy) -> Option<Recalled> {
        let of = self.sameness()?;
        if of.digits == 0 || of.is_tuned() || !self.is_of(setting) {
            return None;
        }
        let ways = ways(policy, of);
        let is_same = ways.len() == self.ways.len()
            && ways.iter().zip(&self.ways).all(|(way, known)| way.to_string() == known.choice);
        let arm = ways.iter().position(|way| way.to_string() == self.stays)?;
        let times = ways.into_iter().zip(self.ways.iter().map(|way| way.nanos)).collect();
        is_same.then_some(Recalled { of, times, arm: arm as Arm, until_calls: self.again.max(1) })
    }

    /// The calls that the finding is about, and its setting; equal where one replaces another.
    fn calls(&self) -> impl Eq + Hash {
        let Memory {
            mpi,
            hosts,
            build,
            ranks,
            nodes,
            ranks_per_node,
            ranks_per_processor,
            switches,
            rate,
            ..
        } = self;
        let Memory { collective, first_bytes, interval, epoch, capabilities, .. } = self;
        let place = (mpi, hosts, build, ranks, nodes, ranks_per_node, ranks_per_processor, switches, rate);
        (place, collective, first_bytes, interval, epoch, capabilities)
    }

    /// The calls that the finding is about; `None`: no line of ours is about such.
    fn sameness(&self) -> Option<Sameness> {
        let of = Sameness {
            collective: self.collective.parse().ok()?,
            epoch: Epoch(self.epoch),
            interval: self.interval,
            digits: Sameness::digits_of(self.first_bytes),
            there: Capabilities::from_bits(self.capabilities)?,
        };
        (self.first_bytes == of.first_bytes()).then_some(of)
    }

    /// Whether the finding is from this setting, on whatever network.
    fn is_from(&self, setting: &Setting) -> bool {
        let Setting { mpi, hosts, build, shape } = setting;
        self.has_shape(shape) && self.hosts == *hosts && self.mpi == *mpi && self.build == digits(*build)
    }

    fn has_shape(&self, shape: &CommunicatorShape) -> bool {
        (self.ranks, self.nodes, self.ranks_per_node, self.ranks_per_processor, self.switches)
            == (shape.ranks, shape.nodes, shape.ranks_per_node, shape.ranks_per_processor, shape.switches)
    }

    /// Whether the finding is from this setting.
    pub fn is_of(&self, setting: &Setting) -> bool {
        self.is_from(setting) && self.rate == rate_of(&setting.shape) && self.sameness().is_some()
    }

    /// The distance from a setting to the finding's own, 0 if they are the same; `None`: it is another one. Each job
    /// measures the network's rate and rounds it. On a busy machine it finds less than there is, or nothing, but never more.
    pub fn distance(&self, setting: &Setting) -> Option<u64> {
        if !self.is_from(setting) || self.sameness().is_none() {
            return None;
        }
        Some(match (self.rate, rate_of(&setting.shape)) {
            (one, other) if one == other => 0,
            (Some(one), Some(other)) if one.max(other) as f64 <= NEAR_RATE * one.min(other) as f64 => 1,
            (Some(there), Some(here)) => (there > here).then(|| 2 + there / here.max(1))?,
            (_, None) if setting.shape.network.is_none() => return None,
            _ => u64::MAX,
        })
    }

    /// The finding, if it was tuned, whatever the rules.
    pub fn recall_tuned(&self) -> Option<Recalled> {
        let of = self.sameness().filter(|of| of.is_tuned())?;
        let read = |way: &Way| Some((Choice::read(of.collective, &way.choice).ok()?, way.nanos));
        let times: Vec<(Choice, u64)> = self.ways.iter().map(read).collect::<Option<_>>()?;
        let arm = times.iter().position(|(way, _)| way.to_string() == self.stays)?;
        let is_possible = (2..=MAX_ARMS).contains(&times.len()) && times.last()?.0 == Choice::Stock;
        is_possible.then_some(Recalled { of, times, arm: arm as Arm, until_calls: self.again.max(1) })
    }

    /// The ways that were compared, each with the nanoseconds of its median call.
    pub fn times(&self) -> impl Iterator<Item = (&str, u64)> {
        self.ways.iter().map(|way| (way.choice.as_str(), way.nanos))
    }

    /// The way that stays.
    pub fn stays(&self) -> &str {
        &self.stays
    }

    /// The MPI below (the file of its library), and the hosts.
    pub fn place(&self) -> (&str, &str) {
        (&self.mpi, &self.hosts)
    }

    /// The calls: collective, fewest bytes (the most are below twice as many), ranks, nodes.
    pub fn about(&self) -> (&str, u64, u32, u32) {
        (&self.collective, self.first_bytes, self.ranks, self.nodes)
    }

    /// The day on which it was found, counted from 1970.
    pub fn day(&self) -> u64 {
        self.day
    }

    /// Whether the finding is about calls of this collective and size on communicators of this
    /// shape, with whatever MPI and build; on whatever network, if the shape's is not known.
    pub fn is_about(&self, shape: CommunicatorShape, collective: Collective, bytes: u64) -> bool {
        self.has_shape(&shape)
            && rate_of(&shape).is_none_or(|rate| self.rate == Some(rate))
            && self.collective == collective.to_string()
            && Sameness::digits_of(self.first_bytes) == Sameness::digits_of(bytes)
    }
}

fn digits(build: u64) -> String {
    format!("{build:016x}")
}

fn rate_of(shape: &CommunicatorShape) -> Option<u64> {
    Some(shape.network?.rate?.bits_per_second())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::network::Network;
    use crate::policy::trials::MAX_ARMS;
    use crate::policy::{Rules, Table};

    const TABLE: &str = "version = 1\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"8KiB..\"\nuse = \"multicast-pull\"\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"1KiB..\"\nuse = \"chain:segment=1KiB\"\n";

    fn policy(table: &str) -> Policy {
        let table = Table::parse(table, "a table").unwrap();
        Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), setting().shape)
    }

    fn setting() -> Setting {
        let shape = CommunicatorShape::new(16, 16, None).unwrap();
        Setting { mpi: "/usr/lib/libmpi.so.40".to_owned(), hosts: "node#".to_owned(), build: 0xabc, shape }
    }

    /// Of calls with 8 to 16 KiB.
    fn finding(arm: Arm) -> Finding {
        let policy = policy(TABLE);
        let call = crate::policy::Call::new(Collective::Broadcast, crate::units::Bytes(9000));
        let there = Capabilities::ALL;
        let interval = policy.interval(&call, Epoch::default());
        let of = Sameness {
            collective: Collective::Broadcast,
            epoch: Epoch::default(),
            interval: interval as u16,
            digits: 14,
            there,
        };
        Finding { of, arm, nanos: [10, 30, 20, 0] }
    }

    fn memory(arm: Arm, day: u64) -> Memory {
        let ways = ways(&policy(TABLE), finding(arm).of);
        Memory::new(&setting(), &ways, &finding(arm), 512, day)
    }

    #[test]
    fn the_next_job_reads_what_was_found() {
        let text = format!("{}\n\n{}\n", memory(2, 7).line(), memory(0, 8).line());
        let read = Memory::read(&text, 9);
        assert_eq!(read, [memory(0, 8)], "the last one counts");
        let recalled = read[0].recall(&setting(), &policy(TABLE)).unwrap();
        assert_eq!((recalled.of, recalled.arm, recalled.until_calls), (finding(0).of, 0, 512));
        let times: Vec<_> = recalled.times.iter().map(|(way, nanos)| (way.to_string(), *nanos)).collect();
        let expected = [("multicast-pull", 10), ("chain:segment=1KiB", 30), ("stock", 20)];
        assert_eq!(times, expected.map(|(way, nanos)| (way.to_owned(), nanos)));
        let shape = setting().shape;
        assert!(read[0].is_about(shape, Collective::Broadcast, 16_383));
        assert!(!read[0].is_about(shape, Collective::Broadcast, 16_384));
    }

    fn gigabit() -> Network {
        Network { rate: "1gbit".parse().ok(), ..Network::default() }
    }

    /// What was tuned stands for itself, and holds on a network that seems a little faster or slower today, or much slower: see docs/tuning.md.
    #[test]
    fn what_was_tuned_is_recalled_whatever_the_rules() {
        let shape = setting().shape.on_network(gigabit());
        let of = Sameness::tuned(Collective::Broadcast, 9000, Capabilities::ALL);
        let ways =
            ["chain:segment=1KiB", "stock"].map(|way| Choice::read(Collective::Broadcast, way).unwrap());
        let finding = Finding { of, arm: 0, nanos: [10, 30, 0, 0] };
        let known = Memory::new(&Setting { shape, ..setting() }, &ways, &finding, 256, 8);
        assert_eq!(Memory::read(&known.line(), 9), std::slice::from_ref(&known));
        let recalled = known.recall_tuned().unwrap();
        assert_eq!((recalled.of, recalled.arm, recalled.times.len()), (of, 0, 2));
        assert_eq!(known.recall(&Setting { shape, ..setting() }, &policy(TABLE)), None, "no rule has it");
        assert_eq!(memory(0, 8).recall_tuned(), None, "it was not tuned");
        let far = Some(u64::MAX);
        for (rate, expected) in [
            ("1gbit", Some(0)),
            ("500mbit", Some(1)),
            ("2gbit", Some(1)),
            ("200mbit", Some(7)),
            ("20mbit", Some(52)),
            ("5gbit", None),
            ("", far),
        ] {
            let network = Network { rate: rate.parse().ok(), ..Network::default() };
            let shape = setting().shape.on_network(network);
            assert_eq!(known.distance(&Setting { shape, ..setting() }), expected, "{rate}");
        }
        assert_eq!(known.distance(&setting()), None, "where nobody has asked");
    }

    #[test]
    fn hosts_of_a_cluster_have_one_kind_of_name() {
        for (name, kind) in [("node017", "node#"), ("r2i3n14", "r#i#n#"), ("login", "login"), ("7a", "#a")] {
            assert_eq!(Setting::kind_of_host(name), kind);
        }
    }

    #[test]
    fn what_holds_elsewhere_is_not_recalled() {
        let known = memory(0, 8);
        let setting = setting();
        for other in [
            Setting { mpi: "/opt/libmpi.so.40".to_owned(), ..setting.clone() },
            Setting { hosts: "lab#".to_owned(), ..setting.clone() },
            Setting { build: 1, ..setting.clone() },
            Setting { shape: CommunicatorShape { switches: 2, ..setting.shape }, ..setting.clone() },
            Setting { shape: setting.shape.on_processors(2), ..setting.clone() },
            Setting { shape: setting.shape.on_network(gigabit()), ..setting.clone() },
        ] {
            assert_eq!(known.recall(&other, &policy(TABLE)), None);
        }
        assert_eq!(known.recall(&setting, &policy(&TABLE.replace("chain", "binary"))), None, "another table");
        assert_eq!(known.recall(&setting, &policy("version = 1\n")), None, "fewer intervals");
        assert_eq!(Memory::read(&known.line(), 8 + MAX_AGE_DAYS + 1), [], "too old");
        let later = known.line().replace("\"version\":1", "\"version\":2");
        assert_eq!(Memory::read(&later, 8), [], "another version");
    }

    proptest! {
        /// Whatever a file has become, what can be read is right, and nothing panics.
        #[test]
        fn damage_loses_lines_and_nothing_else(at in 0usize..900, byte in any::<u8>(), cut in 0usize..900) {
            let text = format!("{}\n{}\n", memory(1, 7).line(), memory(0, 8).line());
            let mut bytes = text.into_bytes();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            for memory in Memory::read(&text, 8) {
                if let Some(recalled) = memory.recall(&setting(), &policy(TABLE)) {
                    prop_assert!(usize::from(recalled.arm) < MAX_ARMS.min(recalled.times.len()));
                }
            }
        }
    }
}
