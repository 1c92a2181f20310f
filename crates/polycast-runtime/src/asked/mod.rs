//! Measurement of the network between a communicator's nodes: made before the first call whose
//! choice depends on it, and known to the process from then on.
//!
//! ```text
//!   every rank    what this process knows of these nodes          beside the agreement on a number, as the bits that all have: all the
//!                                                                 same, and it is over
//!   every rank    the same, where they differ                     MPI_Allgather: what the first knows counts
//!   leaders       messages to the next one in the ring            by the MPI, on the communicator's own tags
//!   every rank    latency and rate, and how fast multicast is     MPI_Allgather
//!                 … both again, where links seem to differ        until two rounds agree, three at most
//! ```
//!
//! Invariant: what is concluded follows from what all have told, so it is the same on all ranks; a rank that cannot measure says so.

mod way;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use polycast_core::network::{Links, Network, Told};
use polycast_core::units::{Nanos, Rank, Rate};

use self::way::NetworkInquiry;
use crate::abi::MpiError;
use crate::attach::{Layout, World};
use crate::digest::Digest;
use crate::door::Door;
use crate::multicast;
use crate::of_process::change;
use crate::report;
use crate::say::warn_once;

/// Most sets of nodes that a process remembers; a job that has more asks some of them again.
const MAX_SETS: usize = 1024;

/// What a process knows of networks, by the nodes that they join.
#[derive(Default)]
pub struct Networks(Mutex<BTreeMap<u64, Network>>);

/// Result of a measurement.
pub struct NetworkFinding {
    pub network: Network,
    /// True if no message of the measurement is on its way any more.
    pub is_clean: bool,
}

/// Number that names the nodes of a communicator, whatever its ranks there are.
fn set_of(layout: &Layout) -> u64 {
    let leaders = layout.nodes.leaders().iter();
    let mut hosts: Vec<u64> = leaders.map(|leader| layout.hosts[leader.index()]).collect();
    hosts.sort_unstable();
    hosts.into_iter().fold(Digest::of("polycast network"), Digest::number).finish()
}

impl Networks {
    /// The network of these nodes, if this process knows it.
    pub fn known(&self, layout: &Layout) -> Option<Network> {
        let set = set_of(layout);
        change(&self.0, |known| known.get(&set).copied())
    }

    fn remember(&self, layout: &Layout, network: Network) {
        let set = set_of(layout);
        change(&self.0, |known| {
            if known.len() >= MAX_SETS && !known.contains_key(&set) {
                known.clear();
            }
            known.insert(set, network);
        });
    }

    /// All networks that this process knows.
    #[cfg(test)]
    pub fn all(&self) -> Vec<Network> {
        change(&self.0, |known| known.values().copied().collect())
    }
}

/// A network as numbers; 0 stands for what is not known.
fn to_words(network: Option<Network>) -> [u64; 4] {
    let network_or = network.unwrap_or_default();
    let rate = |rate: Option<Rate>| rate.map_or(0, Rate::bits_per_second);
    let latency = network_or.latency.map_or(0, |latency| latency.0);
    [network.is_some().into(), latency, rate(network_or.rate), rate(network_or.multicast_rate)]
}

fn from_words([is_known, latency, rate, multicast_rate]: [u64; 4]) -> Option<Network> {
    (is_known == 1).then(|| Network {
        latency: (latency > 0).then_some(Nanos(latency)),
        rate: Rate::from_bits_per_second(rate),
        multicast_rate: Rate::from_bits_per_second(multicast_rate),
    })
}

/// Number of words whose common bits tell whether all ranks know the same.
pub const COMPARED_WORDS: usize = 8;

/// Words of a rank that knows `mine`, to compare it by the bits that all have.
pub fn compared(mine: Option<Network>) -> [u64; COMPARED_WORDS] {
    let words = to_words(mine);
    let mut both = [0; COMPARED_WORDS];
    both[..4].copy_from_slice(&words);
    // A bit that all have, and one that nobody has, is the same everywhere.
    both[4..].copy_from_slice(&words.map(|word| !word));
    both
}

/// The network that all ranks' processes know alike, if they do, from the bits that all have in
/// [`compared`].
pub fn in_common(both: &[u64; COMPARED_WORDS]) -> Option<Network> {
    let is_same = (0..4).all(|index| both[index] == !both[4 + index]);
    from_words([both[0], both[1], both[2], both[3]]).filter(|_| is_same)
}

/// Measures the network, or takes it from a rank that knows it, and remembers it among `networks`.
/// Collective. Messages go by the tags of `number`.
pub fn find_out(
    networks: &Networks,
    door: &Door,
    world: &World,
    layout: &Layout,
    number: u32,
) -> Result<NetworkFinding, MpiError> {
    let ranks = layout.hosts.len();
    let words = to_words(networks.known(layout)).map(u64::to_le_bytes);
    let all = door.allgather_bytes(words.as_flattened(), ranks)?;
    let (all, _) = all.as_chunks().0.as_chunks();
    let heard = all.iter().find_map(|words| from_words(words.map(u64::from_le_bytes)));
    if let Some(network) = heard {
        networks.remember(layout, network);
        return Ok(NetworkFinding { network, is_clean: true });
    }
    let (mut links, mut is_clean) = (Links::default(), true);
    let (told, network) = loop {
        let mut mine = Told::default();
        if layout.nodes.my_leader() == layout.rank && layout.nodes.count() > 1 {
            let mut way = NetworkInquiry::new(*door, layout, world.tags.first_tag(number));
            let measured = catch_unwind(AssertUnwindSafe(|| way.measure()));
            is_clean = way.is_clean();
            // The connections that MPI has used are there now.
            let prospect = catch_unwind(multicast::prospect).unwrap_or_default();
            mine = Told { estimate: measured.unwrap_or_default(), ..prospect };
        }
        let all = door.allgather(&mine.to_bytes(), ranks)?;
        let told: Vec<Told> = all.iter().map(Told::from_bytes).collect();
        // As they stand in the ring; others have nothing to tell.
        let ring: Vec<Told> = layout.nodes.leaders().iter().map(|leader| told[leader.index()]).collect();
        links.add(&ring);
        // All know the same, so all go on or none.
        if links.are_settled() {
            let network = Network::agreed(&ring, &links);
            break (told, network);
        }
    };
    networks.remember(layout, network);
    let name = |rank: usize| world.told.host_name(layout.world_ranks[rank]);
    let of_node = |node: usize| name(layout.nodes.leaders()[node].index());
    report::asked(layout.nodes.count(), network, &links, of_node);
    if layout.rank == Rank(0) {
        multicast::warning(&told, &network, name).inspect(|warning| warn_once(warning));
    }
    Ok(NetworkFinding { network, is_clean })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_survives_the_wire() {
        let rate = |text: &str| text.parse().ok();
        for network in [
            Network::default(),
            Network { rate: rate("1gbit"), latency: Some(Nanos(20_000)), multicast_rate: rate("100mbit") },
            Network { rate: rate("20mbit"), ..Network::default() },
        ] {
            assert_eq!(from_words(to_words(Some(network))), Some(network));
        }
        assert_eq!(from_words(to_words(None)), None);
    }

    #[test]
    fn only_what_all_know_alike_is_known_to_all() {
        let network = |latency| Some(Network { latency: Some(Nanos(latency)), ..Network::default() });
        let common = |all: &[Option<Network>]| {
            let mut both = [u64::MAX; COMPARED_WORDS];
            for mine in all {
                both.iter_mut().zip(compared(*mine)).for_each(|(common, mine)| *common &= mine);
            }
            in_common(&both)
        };
        assert_eq!(common(&[network(5); 3]), network(5));
        assert_eq!(common(&[network(5), network(7)]), None);
        assert_eq!(common(&[network(5), None]), None);
        assert_eq!(common(&[None; 2]), None);
        assert_eq!(in_common(&[0; COMPARED_WORDS]), None, "a rank that cannot even say what it knows");
    }
}
