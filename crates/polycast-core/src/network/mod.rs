//! What a job finds out about the network between its nodes by a few messages of its own, before it chooses.
//!
//! ```text
//!  each leader of a node  ──Exchange──▶ times ──Estimate──▶ Told ──┐
//!      ▲              to the next one in the ring                  │ all ranks hear all
//!      │                                                           ▼
//!      └───────────── again, until it agrees ──────────────────── Links: which node's link is how fast
//!                                                                  ▼
//!                                          Network::agreed: the classes that tables ask for
//! ```
//! The messages go by the MPI's own transport, for what they are to tell is what the MPI can do, be it over sockets or over what we
//! never see.

mod estimate;
mod exchange;
mod links;

pub use estimate::Estimate;
pub use exchange::{Exchange, MAX_MESSAGE_BYTES, Next};
pub use links::{Alike, Links};

use crate::units::{Nanos, Rate};

/// The network between the nodes of a communicator, as far as it is known; the same on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Network {
    /// Rate of the MPI's messages between neighbours, while all nodes send at once.
    pub rate: Option<Rate>,
    /// Latency of the shortest message, one way.
    pub latency: Option<Nanos>,
    /// Rate of multicast, as the slowest node and the receive buffers let it go. `None`: nothing
    /// limits it.
    pub multicast_rate: Option<Rate>,
}

/// A rank's message about the link of its node; ranks that lead no node tell nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The way to the next node in the ring; `None` if it could not be measured.
    pub estimate: Option<Estimate>,
    /// Rate at which the node's interface lets multicast go.
    pub interface_rate: Option<Rate>,
    /// Rate at which the receive buffer that the node's kernel grants lets multicast go.
    pub buffer_rate: Option<Rate>,
}

impl Told {
    /// Length of the message, in bytes.
    pub const BYTES: usize = 32;

    /// Writes the message: four numbers of 8 bytes, the lowest byte first; 0 for what is not known.
    pub fn to_bytes(self) -> [u8; Told::BYTES] {
        let rate = |rate: Option<Rate>| rate.map_or(0, Rate::bits_per_second);
        let estimate = self.estimate;
        let fields = [
            estimate.map_or(0, |estimate| estimate.latency.0.max(1)),
            rate(estimate.map(|estimate| estimate.rate)),
            rate(self.interface_rate),
            rate(self.buffer_rate),
        ];
        let mut bytes = [0; Told::BYTES];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads a message of [`Told::to_bytes`]. A number that cannot be counts as not known.
    pub fn from_bytes(bytes: &[u8; Told::BYTES]) -> Told {
        let field = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[8 * index + at]));
        let rate = |index| Rate::from_bits_per_second(field(index));
        let latency = Some(Nanos(field(0))).filter(|latency| latency.0 > 0);
        let estimate = latency.zip(rate(1)).map(|(latency, rate)| Estimate { latency, rate });
        Told { estimate, interface_rate: rate(2), buffer_rate: rate(3) }
    }

    /// Rate at which multicast can go on this node, as its interface and its receive buffer let it.
    pub fn multicast_rate(&self) -> Option<Rate> {
        self.interface_rate.into_iter().chain(self.buffer_rate).min()
    }

    /// Rate to which the node's receive buffer holds multicast up, if that is half or less of what
    /// the network and the node's interface carry.
    pub fn held_up(&self, network: &Network) -> Option<Rate> {
        let carries =
            network.rate.into_iter().chain(self.interface_rate).min().filter(|_| network.rate.is_some());
        self.buffer_rate.zip(carries).and_then(|(buffer, carries)| {
            (buffer.bits_per_second() * 2 <= carries.bits_per_second()).then_some(buffer)
        })
    }
}

impl Network {
    /// Draws the conclusion of all ranks, from what the nodes have told in the last round and from
    /// what is known of their links.
    ///
    /// The latency is the median of the nodes', the rate is [`Links::rate`]. The rate of multicast
    /// is the slowest node's, for that is the pace at which all are sent to.
    pub fn agreed(told: &[Told], links: &Links) -> Network {
        let mut latencies: Vec<u64> = told.iter().filter_map(|told| Some(told.estimate?.latency.0)).collect();
        latencies.sort_unstable();
        Network {
            rate: links.rate(),
            latency: latencies.get(latencies.len() / 2).map(|latency| Nanos(class(*latency))),
            multicast_rate: told.iter().filter_map(Told::multicast_rate).min(),
        }
    }

    /// Rate of multicast in percent of the rate of the MPI's own messages, 100 at most; 100 where
    /// one of the two is not known.
    pub fn multicast_percent(&self) -> u64 {
        let (Some(rate), Some(multicast)) = (self.rate, self.multicast_rate) else { return 100 };
        (u128::from(multicast.bits_per_second()) * 100 / u128::from(rate.bits_per_second())).min(100) as u64
    }
}

/// The nearest of 1, 2, 5, 10, 20, 50 …, as a ratio: what two measurements of the same network have in common.
fn class(value: u64) -> u64 {
    let decades = (0..20).map(|power| 10u64.pow(power));
    let classes = decades.flat_map(|decade| [1, 2, 5].map(|digit| decade.saturating_mul(digit)));
    let distance = |class: &u64| {
        let ratio = *class as f64 / value.max(1) as f64;
        ratio.max(1.0 / ratio)
    };
    classes.min_by(|one, other| distance(one).total_cmp(&distance(other))).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(mbit: u64, micros: u64) -> Told {
        let rate = Rate::from_bits_per_second(mbit * 1_000_000).unwrap();
        Told { estimate: Some(Estimate { latency: Nanos::from_micros(micros), rate }), ..Told::default() }
    }

    /// After one round.
    fn agreed(told: &[Told]) -> Network {
        let mut links = Links::default();
        links.add(told);
        Network::agreed(told, &links)
    }

    #[test]
    fn what_is_measured_falls_into_classes() {
        for (value, of) in [(1, 1), (3, 2), (4, 5), (7, 5), (8, 10), (19, 20), (938_000_000, 1_000_000_000)] {
            assert_eq!(class(value), of, "{value}");
        }
        assert_eq!((class(0), class(u64::MAX)), (1, u64::MAX));
    }

    #[test]
    fn a_few_outliers_do_not_matter() {
        let links = [told(930, 21), told(940, 23), told(3, 9000), told(950, 20), told(941, 19)];
        let network = agreed(&links);
        assert_eq!((network.rate, network.latency), ("1gbit".parse().ok(), Some(Nanos::from_micros(20))));
    }

    #[test]
    fn nodes_that_could_not_measure_say_nothing() {
        let all = [Told::default(), told(95, 60), Told::default(), Told::default()];
        assert_eq!(agreed(&all).rate, "100mbit".parse().ok());
        assert_eq!(agreed(&[Told::default()]), Network::default());
        assert_eq!(agreed(&[]), Network::default());
    }

    #[test]
    fn the_slowest_node_sets_the_pace_of_multicast() {
        let with = |rate: &str| Told { interface_rate: rate.parse().ok(), ..told(9400, 20) };
        let network = agreed(&[with("10gbit"), with("1gbit"), with("none")]);
        assert_eq!((network.multicast_rate, network.multicast_percent()), ("1gbit".parse().ok(), 10));
        assert_eq!(agreed(&[told(100, 1)]).multicast_percent(), 100, "nothing limits it");
        assert_eq!(Network { rate: None, ..network }.multicast_percent(), 100);
    }

    #[test]
    fn small_buffers_hold_multicast_up_where_they_halve_the_rate() {
        let rate = |text: &str| text.parse::<Rate>().ok();
        let network = |text| Network { rate: rate(text), ..Network::default() };
        let small = Told { interface_rate: rate("10gbit"), buffer_rate: rate("1700mbit"), ..Told::default() };
        assert_eq!(small.multicast_rate(), rate("1700mbit"));
        assert_eq!(small.held_up(&network("10gbit")), rate("1700mbit"));
        assert_eq!(small.held_up(&network("3400mbit")), rate("1700mbit"), "half");
        assert_eq!(small.held_up(&network("2gbit")), None, "the network carries no more");
        assert_eq!(small.held_up(&Network::default()), None, "nobody knows what it carries");
        let slow = Told { interface_rate: rate("1gbit"), ..small };
        assert_eq!(slow.held_up(&network("100gbit")), None, "a slow interface is not helped by buffers");
        assert_eq!(Told { interface_rate: None, ..small }.held_up(&network("10gbit")), rate("1700mbit"));
        assert_eq!(Told::default().held_up(&network("10gbit")), None);
    }

    proptest! {
        #[test]
        fn what_is_told_survives_the_wire(bytes in any::<[u8; Told::BYTES]>(), latency in 1u64.., bits in 8_000u64..=1_000_000_000_000) {
            let rate = Rate::from_bits_per_second(bits);
            let estimate = rate.map(|rate| Estimate { latency: Nanos(latency), rate });
            let told = Told { estimate, interface_rate: Rate::from_bits_per_second(bits - 1), buffer_rate: rate };
            prop_assert_eq!(Told::from_bytes(&told.to_bytes()), told);
            let _ = agreed(&[Told::from_bytes(&bytes)]);
        }
    }
}
