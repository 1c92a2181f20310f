//! Before a communicator's first multicast: all ranks agree that it works, or that it does not.
//!
//! ```text
//!   every rank      offer         what can this leader do, what does it have already        MPI_Allgather
//!   rank 0          plan          group, key, numbers; or the group that all have           MPI_Bcast
//!   leaders         join                                                                    MPI_Allgather
//!                   └─ taken by somebody else: another plan, three times at most
//!   leaders         probe         full datagrams from everybody to everybody                MPI_Allgather per round
//!                   └─ over verbs, where all have them: nothing comes, or a port fails: the same again, by IP multicast
//! ```
//!
//! Invariant: whether to go on is decided after each step from what all ranks have, so all decide alike, and whoever
//! fails, or panics, still takes part in the next exchange. Where MPI itself fails in an exchange, a rank cannot know what the others
//! decide: the broadcast ends there with MPI's error.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use polycast_core::protocol::{Endpoint, Key, Membership, Probe, ROUNDS};
use polycast_core::schedule::Nodes;
use polycast_core::units::Rank;
use polycast_madcap::LeaseRenewer;
use polycast_net::{Datagrams, Family, Interface, Range};
use zeroize::Zeroizing;

use super::choose_group::choose_group;
use super::datagrams::join;
use super::group::{Group, Pace, next_communicator};
use super::offer::{GroupPlan, Offer, VerbsOffer};
use super::probe::Question;
use super::prospect::interface_of;
use super::registry::{self, Standing};
use super::terms::Terms;
use super::verbs;
use crate::abi::MpiError;
use crate::attach::named_hosts;
use crate::digest::Digest;
use crate::door::Door;
use crate::fault::{self, Point};
use crate::machine::{self, random, random_bytes};
use crate::reason::Reason;
use crate::say::warn_once;
use crate::settings;

/// Most plans that are tried until a group is found that nobody else has.
const MAX_PLANS: usize = 3;

/// Time between joining and the first probe.
const SWITCHES_LEARN: Duration = Duration::from_millis(10);

/// The reason why multicast is not used, and the rank whose node gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable {
    pub reason: Reason,
    /// The first rank that gives the reason.
    pub rank: usize,
}

impl Unavailable {
    /// Multicast has nowhere to go: there is but one node, and nothing to warn of.
    pub fn nowhere() -> Unavailable {
        Unavailable { reason: Reason::Nowhere, rank: 0 }
    }

    /// True if the reason concerns one way of multicast, so that another may work.
    fn is_of_a_way(self) -> bool {
        matches!(self.reason, Reason::Socket | Reason::Silence | Reason::Conflict)
    }

    /// True if multicast may work later, without the user's doing.
    pub fn may_pass(self) -> bool {
        !matches!(self.reason, Reason::Off | Reason::Setting | Reason::Nowhere)
    }

    /// Warning for the user; none if multicast is off by the user's wish. `on_one_kernel`: hosts
    /// that only look like several.
    pub fn warning(self, on_one_kernel: impl FnOnce() -> Vec<String>) -> Option<String> {
        let Unavailable { reason, rank } = self;
        // Nobody else has so many groups: those who are in each other's way are on one network stack.
        if reason == Reason::Conflict
            && let Some(hosts) = named_hosts(&on_one_kernel())
        {
            return Some(format!(
                "no multicast: {hosts} only look like several nodes: their ranks run on one kernel and in each other's way on its network; \
                 give them one host name (containers: --uts=host), and shared memory serves them; until then trees do"
            ));
        }
        let remedy = "trees serve; `polycast doctor` finds out more, POLYCAST_MULTICAST=off silences this";
        (![Reason::Off, Reason::Nowhere].contains(&reason))
            .then(|| format!("no multicast: rank {rank}: {}; {remedy}", reason.text()))
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Nowhere => f.write_str(Reason::Nowhere.text()),
            reason => write!(f, "rank {}: {}", self.rank, reason.text()),
        }
    }
}

/// A leader's place among the nodes that multicast connects.
pub struct Seat {
    pub endpoint: Endpoint,
    pub communicator: u32,
    pub group: Arc<Group>,
    pub node: u32,
    /// Number that names the set of leaders.
    pub set: u64,
}

/// Sets multicast up. Collective. Inside: a seat, on the leaders of nodes; or the reason why there
/// is none, the same on all ranks.
pub fn set_up(
    door: &Door,
    rank: Rank,
    nodes: &Nodes,
    hosts: &[u64],
    processes: &[u64],
) -> Result<Result<Option<Seat>, Unavailable>, MpiError> {
    let me = Party { door, rank, nodes, ranks: hosts.len(), set: set_of(nodes, hosts, processes) };
    let outcome = me.agree()?;
    if let Err(Unavailable { reason: Reason::Silence | Reason::Socket | Reason::Interface, .. }) = outcome {
        registry::remember_refusal(me.set);
    }
    Ok(outcome)
}

/// Number that names the set of leaders.
pub fn set_of(nodes: &Nodes, hosts: &[u64], processes: &[u64]) -> u64 {
    let leaders = nodes.leaders().iter().map(|leader| leader.index());
    let set = leaders.fold(Digest::of("polycast nodes"), |set, leader| {
        set.number(hosts[leader]).number(processes[leader])
    });
    set.finish()
}

/// The means of this process, if it leads a node.
struct Means {
    interface: Option<Interface>,
    /// The interface of the port for verbs.
    verbs: Option<Interface>,
    existing: Option<Arc<Group>>,
}

impl Means {
    fn join(&self, plan: &GroupPlan, is_verbs: bool) -> Result<Datagrams, Reason> {
        let interface = if is_verbs { &self.verbs } else { &self.interface };
        join(interface.as_ref().ok_or(Reason::Interface)?, plan.group, is_verbs)
    }
}

/// A rank in the agreement.
struct Party<'a> {
    door: &'a Door,
    rank: Rank,
    nodes: &'a Nodes,
    ranks: usize,
    set: u64,
}

impl Party<'_> {
    fn leads(&self) -> bool {
        self.nodes.my_leader() == self.rank
    }

    fn agree(&self) -> Result<Result<Option<Seat>, Unavailable>, MpiError> {
        let (mine, means) = if self.leads() {
            guarded(|| Ok(self.offer())).unwrap_or_else(|reason| (Offer::refuse(reason), None))
        } else {
            (Offer::none(), None)
        };
        let offers = self.door.allgather(&mine.to_bytes(), self.ranks)?;
        let offers: Vec<Offer> = offers.into_iter().map(Offer::from_bytes).collect();
        let leaders: Vec<&Offer> = self.nodes.leaders().iter().map(|rank| &offers[rank.index()]).collect();
        let refusal = first_refusal(offers.iter().map(|offer| offer.refusal));
        let over_verbs = Terms::over_verbs(&leaders);
        let by_ip = if refusal.is_none() { Terms::of(&leaders) } else { None };
        if over_verbs.is_none() && self.rank == Rank(0) {
            warn_if_wanted(&leaders, self.nodes);
        }
        let existing = leaders[0].existing;
        let is_reused = existing != 0 && leaders.iter().all(|offer| offer.existing == existing);
        // What follows takes time, and they are as many as ranks.
        drop(leaders);
        drop(offers);
        let mut outcome = Err(refusal.unwrap_or(Unavailable { reason: Reason::Setting, rank: 0 }));
        let ways = [over_verbs, by_ip];
        let last = ways.iter().rposition(Option::is_some);
        for (way, terms) in ways.into_iter().enumerate() {
            let Some(terms) = terms else { continue };
            outcome = self.agree_on(terms, is_reused, means.as_ref(), last == Some(way))?;
            // What has no device, or no network behind it, may have the other.
            if !matches!(&outcome, Err(refusal) if refusal.is_of_a_way()) {
                break;
            }
        }
        Ok(outcome)
    }

    /// Agrees on multicast over verbs, or by IP. `is_reused`: all leaders have the same group.
    /// `is_last`: nothing else will be tried.
    fn agree_on(
        &self,
        mut terms: Terms,
        is_reused: bool,
        means: Option<&Means>,
        is_last: bool,
    ) -> Result<Result<Option<Seat>, Unavailable>, MpiError> {
        for _ in 0..MAX_PLANS {
            let group = means.and_then(|means| means.existing.clone()).filter(|_| is_reused);
            let (plan, renewer) = self.plan(&terms, group.is_some())?;
            if let Some(reason) = plan.refusal {
                return Ok(Err(Unavailable { reason, rank: 0 }));
            }
            if is_reused {
                return Ok(Ok(group.map(|group| seat(self.nodes, self.set, plan.communicator, group))));
            }
            let socket = means.map(|means| guarded(|| means.join(&plan, terms.is_verbs)));
            let failure = socket.as_ref().and_then(|socket| socket.as_ref().err().copied());
            let opened = socket.as_ref().and_then(|socket| socket.as_ref().ok());
            match self.exchange_buffers(failure, opened, &mut terms)? {
                None => {
                    let socket = socket.and_then(Result::ok);
                    return self.probe(&plan, &terms, socket, renewer, is_last);
                }
                Some(Unavailable { reason: Reason::Conflict, .. }) => {}
                Some(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Err(Unavailable { reason: Reason::Conflict, rank: 0 }))
    }

    fn offer(&self) -> (Offer, Option<Means>) {
        fault::point(Point::Offer);
        let existing = match registry::standing(self.set) {
            Standing::New => None,
            Standing::Open(group) => Some(group),
            Standing::Refused => return (Offer::refuse(Reason::TriedBefore), None),
            Standing::Full => return (Offer::refuse(Reason::TooManyGroups), None),
        };
        let Ok(wanted) = settings::Multicast::current() else {
            return (Offer::refuse(Reason::Setting), None);
        };
        let Some(family) = wanted.family else { return (Offer::refuse(Reason::Off), None) };
        let verbs = verbs::port(&wanted);
        let interface = interface_of(&wanted, family).ok();
        let ip_and_udp_bytes = if family == Family::V6 { 48 } else { 28 };
        let mtu_bytes = interface.as_ref().map_or(0, |interface| interface.mtu_bytes);
        let offer = Offer {
            refusal: interface.is_none().then_some(Reason::Interface),
            is_ipv6: family == Family::V6,
            verbs: verbs.as_ref().map(|port| VerbsOffer {
                is_ipv6: port.family == Family::V6,
                datagram_bytes: port.datagram_bytes,
                bits_per_second: port.bits_per_second,
            }),
            existing: existing.as_ref().map_or(0, |group| group.job()),
            datagram_bytes: mtu_bytes.saturating_sub(ip_and_udp_bytes),
            bits_per_second: interface.as_ref().and_then(|found| found.bits_per_second).unwrap_or(0),
        };
        let verbs = verbs.map(|port| port.interface);
        (offer, Some(Means { interface, verbs, existing }))
    }

    /// Hands out the plan of rank 0, which leads the first node.
    fn plan(&self, terms: &Terms, is_reused: bool) -> Result<(GroupPlan, Option<LeaseRenewer>), MpiError> {
        let mut bytes = Zeroizing::new([0; GroupPlan::BYTES]);
        let mut renewer = None;
        if self.rank == Rank(0) {
            let plan = guarded(|| new_plan(terms, is_reused, &mut renewer)).unwrap_or_else(GroupPlan::refuse);
            bytes = plan.to_bytes();
        }
        self.door.broadcast(&mut bytes[..], 0)?;
        Ok((GroupPlan::from_bytes(&bytes), renewer))
    }

    /// Tells all ranks whether this one failed; returns the first failure.
    fn exchange(&self, failure: Option<Reason>) -> Result<Option<Unavailable>, MpiError> {
        let codes = self.door.allgather(&[failure.map_or(0, |reason| reason as u8)], self.ranks)?;
        Ok(first_refusal(codes.into_iter().map(|[code]| Reason::from_code(code))))
    }

    /// Tells all ranks whether this one failed, and fits `terms` into the smallest receive buffer;
    /// returns the first failure.
    fn exchange_buffers(
        &self,
        failure: Option<Reason>,
        socket: Option<&Datagrams>,
        terms: &mut Terms,
    ) -> Result<Option<Unavailable>, MpiError> {
        let mut mine = [0; 16];
        mine[0] = failure.map_or(0, |reason| reason as u8);
        let bytes = socket.map_or(u64::MAX, |socket| socket.receive_buffer_bytes() as u64);
        mine[8..].copy_from_slice(&bytes.to_le_bytes());
        let all = self.door.allgather(&mine, self.ranks)?;
        let bytes = |of: &[u8; 16]| u64::from_le_bytes(std::array::from_fn(|at| of[8 + at]));
        terms.fit_into(all.iter().map(bytes).min().unwrap_or(0));
        Ok(first_refusal(all.iter().map(|of| Reason::from_code(of[0]))))
    }

    /// Finds the node at fault from the nodes that each leader has missed. A node that is outside
    /// of what works between others refuses at once in other sets, too.
    fn find_whose_fault(&self, probe: Option<&Probe>) -> Result<(), MpiError> {
        let mut missed = probe.map_or_else(|| Probe::no_word(self.nodes.count()), Probe::missed);
        self.door.intersect(&mut missed)?;
        if probe.is_some_and(|probe| probe.is_outside(&missed)) {
            registry::remember_refusal(registry::ANY_NODES);
        }
        Ok(())
    }

    /// Lets nodes that were missed send again in the next round.
    fn repeat(&self, probe: &mut Probe) -> Result<(), MpiError> {
        let mut heard = if self.leads() { probe.heard() } else { Probe::no_word(self.nodes.count()) };
        self.door.intersect(&mut heard)?;
        probe.repeat(&heard);
        Ok(())
    }

    fn probe(
        &self,
        plan: &GroupPlan,
        terms: &Terms,
        mut socket: Option<Datagrams>,
        mut renewer: Option<LeaseRenewer>,
        is_last: bool,
    ) -> Result<Result<Option<Seat>, Unavailable>, MpiError> {
        let node = self.nodes.mine();
        let mut probe = Probe::new(node, self.nodes.count(), terms.datagram_wire_bytes(), terms.slowest());
        let mut question =
            Question::new(plan.job, plan.communicator, node, terms.pace.payload_bytes as usize);
        for round in 1..=ROUNDS.len() {
            // Switches learn of a membership from a report that the kernel sends within a few milliseconds.
            machine::sleep(SWITCHES_LEARN);
            let failure = socket.as_mut().and_then(|socket| {
                let heard = guarded(|| Ok(question.ask(&mut probe, socket, &plan.key)));
                heard.map_or_else(Some, |has_heard_all| (!has_heard_all).then_some(Reason::Silence))
            });
            if let Some(refusal) = self.exchange(failure)? {
                if round == ROUNDS.len() {
                    if refusal.reason == Reason::Silence && is_last {
                        self.find_whose_fault(socket.is_some().then_some(&probe))?;
                    }
                    return Ok(Err(refusal));
                }
                if let Some(socket) = socket.as_mut().filter(|_| !probe.has_heard_all()) {
                    // The report may have got lost, and the kernel takes up to a second (IGMPv3), or ten (IGMPv2), to send another.
                    let _ = socket.renew_membership();
                }
                self.repeat(&mut probe)?;
                continue;
            }
            let group = socket.map(|socket| {
                let socket = (socket, question.filter);
                Arc::new(Group::new(socket, plan.job, plan.key.clone(), terms.pace, renewer.take()))
            });
            if let Some(group) = &group {
                registry::remember(self.set, group);
            }
            return Ok(Ok(group.map(|group| seat(self.nodes, self.set, plan.communicator, group))));
        }
        Ok(Err(Unavailable { reason: Reason::Silence, rank: 0 }))
    }
}

/// Seat of this process in a group that all leaders have; `communicator` is the communicator's
/// number there.
pub fn seat(nodes: &Nodes, set: u64, communicator: u32, group: Arc<Group>) -> Seat {
    group.enroll(communicator);
    let Pace { payload_bytes, batch_datagrams, bits_per_second } = group.pace();
    let endpoint = Endpoint::new(Membership {
        job: group.job(),
        communicator,
        key: group.key().clone(),
        node: nodes.mine(),
        nodes: nodes.count(),
        payload_bytes,
        batch_datagrams,
        bits_per_second,
        first_operation: 1,
    });
    Seat { endpoint, communicator, group, node: nodes.mine(), set }
}

/// Warns users who ask for verbs in so many words, if a node has none.
fn warn_if_wanted(leaders: &[&Offer], nodes: &Nodes) {
    let is_wanted =
        settings::Multicast::current().is_ok_and(|wanted| wanted.verbs == settings::Verbs::Wanted);
    if let Some(node) = leaders.iter().position(|offer| offer.verbs.is_none()).filter(|_| is_wanted) {
        warn_once(&format!(
            "POLYCAST_MULTICAST=verbs: rank {} has no port of InfiniBand or RoCE that can be used; IPv4 multicast is tried; \
             `polycast doctor` finds out more",
            nodes.leaders()[node].index()
        ));
    }
}

/// Runs a step; a panic is a failure like others.
fn guarded<R>(step: impl FnOnce() -> Result<R, Reason>) -> Result<R, Reason> {
    catch_unwind(AssertUnwindSafe(step)).unwrap_or(Err(Reason::Internal))
}

fn first_refusal(reasons: impl Iterator<Item = Option<Reason>>) -> Option<Unavailable> {
    let mut refusals = reasons.enumerate().filter_map(|(rank, reason)| Some((rank, reason?)));
    let (rank, reason) = refusals.next()?;
    // A conflict is cured by another plan, but not if something else is wrong, too.
    let (rank, reason) = refusals.find(|(_, reason)| *reason != Reason::Conflict).unwrap_or((rank, reason));
    Some(Unavailable { reason, rank })
}

fn new_plan(terms: &Terms, is_reused: bool, renewer: &mut Option<LeaseRenewer>) -> Result<GroupPlan, Reason> {
    let entropy = |_| Reason::Entropy;
    let communicator = next_communicator();
    if is_reused {
        // The group keeps its address and key; only the communicator is new.
        return Ok(GroupPlan { refusal: None, communicator, ..GroupPlan::refuse(Reason::Off) });
    }
    let family = if terms.is_ipv6 { Family::V6 } else { Family::V4 };
    let is_infiniband = terms.is_verbs && terms.is_ipv6;
    let settings = settings::Multicast::current().ok();
    // Ranks agree on the family only; this one draws, where its own settings say from.
    let range =
        settings.as_ref().filter(|settings| settings.family == Some(family)).map(|settings| settings.range);
    let ports = settings.as_ref().map(|settings| settings.ports).unwrap_or_default();
    let server = settings.and_then(|settings| settings.madcap_server);
    let range = range.unwrap_or_else(|| Range::of(family));
    // So many that nobody needs to hand them out.
    let (range, server) = if is_infiniband { (Range::InfiniBand, None) } else { (range, server) };
    let (group, kept) = choose_group(family, range, ports, server.as_deref()).map_err(entropy)?;
    *renewer = kept;
    let key = Zeroizing::new(random_bytes().map_err(entropy)?);
    let job = (random().map_err(entropy)? as u32).max(1);
    Ok(GroupPlan { refusal: None, job, communicator, group, key: Key::from_bytes(*key) })
}
