//! The attempt at multicast: all nodes join a group, and those that hear the source's datagrams
//! take part.

use polycast_copy::{SOURCE, Segments, Standing, place_above, places_below};
use polycast_core::units::Nanos;
use polycast_core::variables::{GROUPS, MULTICAST, NET, PORTS, SWITCH, is_off};
use polycast_net::{Family, Group, GroupBlock, Range};
use polycast_protocol::message::MAX_FRAGMENT_BYTES;
use polycast_protocol::wire::HEADER_BYTES;

use crate::settings::variable;

use super::coordinator::Copy;
use super::message::{Command, Joined, Seat};
use super::node::Node;

/// The least bytes for which multicast is tried. Shorter streams are there by a chain before a
/// group has been joined.
const WORTH_BYTES: u64 = 1 << 20;
/// The times that nodes have to join, and then to hear the source. Where the user names a protocol,
/// the request's patience counts instead: multicast is wanted.
const JOIN_LIMIT: Nanos = Nanos::from_micros(500_000);
const HEAR_LIMIT: Nanos = Nanos::from_micros(250_000);

/// Datagrams of one call, with their headers: as many as go through the kernel, and a token bucket, in one piece.
const BATCH_WIRE_BYTES: u32 = 1 << 16;
/// The bytes of the headers of Ethernet, IPv6 and UDP.
const HEADERS_BYTES: u32 = 62;
/// The bits per second that a byte of receive buffer allows. The kernel's book-keeping takes half
/// of the buffer; what comes in 1 ms must fit, since the buffer's owner may be away for so long.
const BITS_PER_BUFFER_BYTE: u64 = 1_000 * 8 / 2;

/// The progress of the attempt at multicast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Attempt {
    /// No attempt has been made.
    None,
    Joining(Nanos),
    Hearing(Nanos),
    /// The outcome is known.
    Over,
}

/// The state of a node in the group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Membership {
    None,
    Asked,
    Joined(Joined),
    /// The node has joined, and the source's datagrams come to it.
    Hears(Joined),
}

impl Membership {
    pub(super) fn joined(&mut self, joined: Option<Joined>) {
        *self = joined.map_or(Membership::None, Membership::Joined);
    }

    pub(super) fn heard(&mut self) {
        if let Membership::Joined(joined) = *self {
            *self = Membership::Hears(joined);
        }
    }

    fn get(&self) -> Option<Joined> {
        match self {
            Membership::Joined(joined) | Membership::Hears(joined) => Some(*joined),
            Membership::None | Membership::Asked => None,
        }
    }
}

/// The terms that all members of a group agree on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GroupTerms {
    payload_bytes: u32,
    batch_datagrams: u32,
    bits_per_second: Option<u64>,
}

impl GroupTerms {
    fn of(members: &[Joined]) -> Option<GroupTerms> {
        let datagram_bytes = members.iter().map(|joined| joined.datagram_bytes).min()?;
        let buffer_bytes = members.iter().map(|joined| joined.buffer_bytes).min()?;
        let payload_bytes =
            datagram_bytes.saturating_sub(HEADER_BYTES as u32).clamp(1, MAX_FRAGMENT_BYTES as u32);
        let batch = BATCH_WIRE_BYTES / (payload_bytes + HEADER_BYTES as u32 + HEADERS_BYTES);
        let fits = buffer_bytes / 8 / u64::from(payload_bytes + HEADER_BYTES as u32);
        let rates = || members.iter().filter_map(|joined| joined.bits_per_second);
        let (slowest, fastest) = (rates().min(), rates().max());
        let into_buffers = buffer_bytes * BITS_PER_BUFFER_BYTE;
        // Where all links are alike the sender's own holds it up.
        let by_links = slowest.filter(|_| slowest < fastest);
        let is_too_fast = fastest.is_none_or(|fastest| into_buffers < fastest);
        Some(GroupTerms {
            payload_bytes,
            batch_datagrams: u64::from(batch).min(fits).max(1) as u32,
            bits_per_second: by_links.into_iter().chain(is_too_fast.then_some(into_buffers)).min(),
        })
    }
}

/// True if the value of POLYCAST_MULTICAST names a protocol that copies can use; they go by IP
/// only.
fn is_named(multicast: &str) -> bool {
    ["ipv4", "ipv4-global", "ipv6"].iter().any(|name| multicast.eq_ignore_ascii_case(name))
}

impl Copy<'_> {
    /// Begins the attempt at multicast; false if that is not worth it.
    pub(super) fn try_multicast(&mut self) -> bool {
        let variable = |name| variable(name).unwrap_or_default();
        let (Some(source), Some(fleet)) = (&self.source, &self.fleet) else { return false };
        let ready: Vec<u32> =
            (1..self.nodes.len() as u32).filter(|node| *fleet.standing(*node) == Standing::Taking).collect();
        let least = ready.iter().map(|node| fleet.have(*node)).min().unwrap_or(0);
        let to_come = source.stream.bytes - source.stream.range(least).start;
        let is_wanted =
            self.request.fanout.is_none() && !is_off(&variable(MULTICAST)) && !is_off(&variable(SWITCH));
        if !is_wanted || ready.len() < 2 || to_come < WORTH_BYTES {
            return false;
        }
        let family = if variable(MULTICAST).eq_ignore_ascii_case("ipv6") { Family::V6 } else { Family::V4 };
        let mut is_random = true;
        let block = variable(GROUPS).parse::<GroupBlock>().ok().filter(|block| block.family() == family);
        let range = block.map_or_else(|| Range::of(family), Range::Block);
        let ports = variable(PORTS).parse().unwrap_or_default();
        let group = Group::random_of(range, ports, &mut || {
            let mut word = [0; 8];
            is_random &= getrandom::fill(&mut word).is_ok();
            u64::from_le_bytes(word)
        });
        if !is_random {
            return false;
        }
        let join = Command::Join((group.address, group.port), variable(NET));
        for node in ready.into_iter().chain([SOURCE]) {
            self.nodes[node as usize].membership = Membership::Asked;
            self.tell(node, &join);
        }
        self.attempt = Attempt::Joining(self.now());
        true
    }

    /// Goes on with the attempt; true when it has become clear who takes part.
    pub(super) fn attempt_is_over(&mut self) -> bool {
        let is_named = is_named(&variable(MULTICAST).unwrap_or_default());
        let (now, patience) = (self.now(), Nanos(self.request.patience.as_nanos() as u64));
        let within = |since: Nanos, limit| now - since < if is_named { patience } else { limit };
        match self.attempt {
            Attempt::None | Attempt::Over => false,
            Attempt::Joining(since) => {
                let mut nodes = self.nodes.iter();
                let is_missing =
                    nodes.any(|node| node.membership == Membership::Asked && node.agent.is_some());
                if is_missing && within(since, JOIN_LIMIT) {
                    return false;
                }
                let members: Vec<Joined> =
                    self.nodes.iter().filter_map(|node| node.membership.get()).collect();
                let has_source = self.nodes[SOURCE as usize].membership.get().is_some();
                let Some(terms) = GroupTerms::of(&members).filter(|_| has_source && members.len() > 2) else {
                    self.attempt = Attempt::Over;
                    return true;
                };
                self.terms = Some(terms);
                self.tell(SOURCE, &Command::Probe(terms.payload_bytes));
                self.attempt = Attempt::Hearing(now);
                false
            }
            Attempt::Hearing(since) => {
                let mut others = self.nodes.iter().skip(1);
                let has_not_heard = |node: &Node| matches!(node.membership, Membership::Joined(_));
                let is_missing = others.any(|node| has_not_heard(node) && node.agent.is_some());
                if is_missing && within(since, HEAR_LIMIT) {
                    return false;
                }
                self.attempt = Attempt::Over;
                true
            }
        }
    }

    /// Begins the copy on the nodes that are ready, by multicast as far as it goes.
    pub(super) fn begin(&mut self) {
        let now = self.now();
        let (Some(source), Some(fleet)) = (&self.source, &mut self.fleet) else { return };
        let unread = Segments::new(source.stream, 0).blocks_unread();
        let hears = |node: u32| matches!(self.nodes[node as usize].membership, Membership::Hears(_));
        fleet.begin_by_multicast(self.order, hears, unread, now);
        self.has_ring = fleet.is_ring();
        if !self.has_ring && self.terms.is_some() {
            self.tell(SOURCE, &Command::Leave);
        }
    }

    /// Tells all nodes of a ring their places in it.
    pub(super) fn seat(&mut self) {
        let now = self.now();
        let Some(ring) = self.fleet.as_mut().and_then(|fleet| fleet.next_ring(now)) else { return };
        let Some(terms) = self.terms.filter(|_| !ring.members.is_empty()) else {
            return self.tell(SOURCE, &Command::Leave);
        };
        let nodes = ring.members.len() as u32 + 1;
        let seated: Vec<u32> = [SOURCE].into_iter().chain(ring.members).collect();
        for (place, node) in (0..).zip(&seated) {
            let addresses = |place: u32| self.nodes[seated[place as usize] as usize].addresses.clone();
            let seat = Seat {
                number: ring.number,
                place,
                nodes,
                first_block: ring.first_block,
                addresses: place.checked_sub(1).map_or(Vec::new(), addresses),
                above: if place > 0 { addresses(place_above(place)) } else { Vec::new() },
                payload_bytes: terms.payload_bytes,
                batch_datagrams: terms.batch_datagrams,
                bits_per_second: terms.bits_per_second,
            };
            let below = places_below(place, nodes).chain((place + 1 < nodes).then_some(place + 1));
            self.tell(*node, &Command::Expect(below.flat_map(addresses).collect()));
            self.tell(*node, &Command::Sit(seat));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_what_copies_do_not_use_is_not_made_to_wait() {
        let named = ["", "on", "verbs", "ipv4", "IPv6", "ipv4-global"].map(is_named);
        assert_eq!(named, [false, false, false, true, true, true]);
    }
}
