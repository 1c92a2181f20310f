//! Knowledge of this process about multicast between sets of nodes: the groups that it is a member
//! of, and where multicast did not work.
//!
//! Programs make a communicator, broadcast, and free it, thousands of times. To join a group and to find out that it works takes
//! tens of milliseconds. So a group stays for a while after its last communicator, and the next one over the same nodes takes
//! it. Processes need not agree about it: who does not have the group any more says so, and all make a new one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::group::Group;
use crate::machine;
use crate::of_process::{Shared, of_process};

/// Most groups that a process is a member of at the same time. Switches have tables for a few
/// hundred to a few thousand, which all jobs share.
const MAX_GROUPS: usize = 16;

/// Time for which a group stays that no communicator uses.
const LINGERING: Duration = Duration::from_secs(1);

/// Time after which multicast is tried again where it did not work; each time twice as long, up to
/// the most. A try takes most of a second, and what it waits for, an administrator or a switch,
/// takes minutes.
pub const RETRY_AFTER: Duration = Duration::from_secs(30);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(16 * 60);

/// Stands for any set of nodes: this process's multicast fails with all others.
pub const ANY_NODES: u64 = 0;

enum KnownGroup {
    /// A group; `unused_since` if no communicator uses it.
    Open {
        group: Arc<Group>,
        unused_since: Option<Instant>,
    },
    Refused {
        since: Instant,
        retry_after: Duration,
    },
}

#[derive(Default)]
struct Registry(BTreeMap<u64, KnownGroup>);

of_process! {
    static REGISTRY: Mutex<Registry> = Mutex::new(Registry(BTreeMap::new()));
}
of_process! {
    /// True if [`visit`] has something to do.
    static HAS_UNUSED: AtomicBool = AtomicBool::new(false);
}

/// The state of multicast between a set of nodes.
pub enum Standing {
    /// Unknown, and there is room for one more group.
    New,
    /// Connected: the nodes have a group.
    Open(Arc<Group>),
    /// Multicast did not work a short while ago.
    Refused,
    /// Unknown, and there is no room for a group.
    Full,
}

impl KnownGroup {
    /// True if nobody but the registry holds the group.
    fn is_unused(&self) -> bool {
        matches!(self, KnownGroup::Open { group, .. } if Arc::strong_count(group) == 1)
    }
}

impl Registry {
    /// Leaves the groups that nobody has used for a while. The caller drops what is returned
    /// without the lock: a group may have to tell a server.
    fn visit(&mut self, now: Instant) -> Vec<KnownGroup> {
        let mut over = Vec::new();
        for (nodes, known) in &mut self.0 {
            let is_unused = known.is_unused();
            if let KnownGroup::Open { unused_since, .. } = known {
                *unused_since = is_unused.then(|| unused_since.unwrap_or(now));
                over.extend(unused_since.filter(|since| now - *since >= LINGERING).map(|_| *nodes));
            }
        }
        over.into_iter().filter_map(|nodes| self.0.remove(&nodes)).collect()
    }

    /// Looks up a set of nodes. The caller drops the second value without the lock.
    fn standing(&mut self, nodes: u64, now: Instant) -> (Standing, Option<KnownGroup>) {
        if let Some(KnownGroup::Refused { since, retry_after }) = self.0.get(&ANY_NODES)
            && now - *since < *retry_after
            && !matches!(self.0.get(&nodes), Some(KnownGroup::Open { .. }))
        {
            return (Standing::Refused, None);
        }
        match self.0.get_mut(&nodes) {
            Some(KnownGroup::Refused { since, retry_after }) if now - *since < *retry_after => {
                (Standing::Refused, None)
            }
            Some(KnownGroup::Open { group, unused_since }) => {
                *unused_since = None;
                (Standing::Open(group.clone()), None)
            }
            Some(KnownGroup::Refused { .. }) | None => self.room(),
        }
    }

    /// Finds room for a group: one that nobody uses makes way for one that somebody will.
    fn room(&mut self) -> (Standing, Option<KnownGroup>) {
        let open = self.0.values().filter(|known| matches!(known, KnownGroup::Open { .. })).count();
        let unused = self.0.iter().find(|(_, known)| known.is_unused()).map(|(nodes, _)| *nodes);
        match unused {
            _ if open < MAX_GROUPS => (Standing::New, None),
            Some(unused) => (Standing::New, self.0.remove(&unused)),
            None => (Standing::Full, None),
        }
    }

    /// Notes that multicast does not work between these nodes. The caller drops what is returned
    /// without the lock.
    fn refuse(&mut self, nodes: u64, now: Instant) -> Option<KnownGroup> {
        let retry_after = match self.0.get(&nodes) {
            Some(KnownGroup::Refused { retry_after, .. }) => (*retry_after * 2).min(MAX_RETRY_AFTER),
            _ => RETRY_AFTER,
        };
        self.0.insert(nodes, KnownGroup::Refused { since: now, retry_after })
    }

    fn died(&mut self, nodes: u64, group: &Arc<Group>, now: Instant) -> Option<KnownGroup> {
        let is_known = matches!(self.0.get(&nodes), Some(KnownGroup::Open { group: known, .. }) if Arc::ptr_eq(known, group));
        is_known.then(|| self.refuse(nodes, now)).flatten()
    }
}

/// Looks up a set of nodes.
pub fn standing(nodes: u64) -> Standing {
    visit();
    let (standing, over) = REGISTRY.change(|registry| registry.standing(nodes, machine::now()));
    drop(over);
    standing
}

/// Notes that a group works between these nodes.
pub fn remember(nodes: u64, group: &Arc<Group>) {
    let known = KnownGroup::Open { group: group.clone(), unused_since: None };
    let before = REGISTRY.change(|registry| [registry.0.insert(nodes, known), registry.0.remove(&ANY_NODES)]);
    drop(before);
}

/// Notes that multicast does not work between these nodes.
pub fn remember_refusal(nodes: u64) {
    drop(REGISTRY.change(|registry| registry.refuse(nodes, machine::now())));
}

/// Notes that a group works no longer. Each of its communicators calls this, the last one perhaps
/// when another group works between these nodes: only the first call counts.
pub fn died(nodes: u64, group: &Arc<Group>) {
    drop(REGISTRY.change(|registry| registry.died(nodes, group, machine::now())));
}

/// Notes that a communicator has left its group, perhaps as the last.
pub fn left() {
    HAS_UNUSED.with(|has_unused| has_unused.store(true, Ordering::Relaxed));
    visit();
}

/// Leaves the groups that nobody has used for a while. Costs nothing if all are in use.
pub fn visit() {
    if HAS_UNUSED.with(|has_unused| has_unused.load(Ordering::Relaxed)) {
        let over = REGISTRY.change(|registry| {
            let over = registry.visit(machine::now());
            let is_any = registry.0.values().any(KnownGroup::is_unused);
            HAS_UNUSED.with(|has_unused| has_unused.store(is_any, Ordering::Relaxed));
            over
        });
        drop(over);
    }
}

/// Leaves all groups, since MPI ends.
pub fn leave_all() {
    let all = REGISTRY.change(|registry| std::mem::take(&mut registry.0));
    drop(all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_work_is_tried_again_at_growing_intervals() {
        let mut registry = Registry::default();
        let start = Instant::now();
        let is_refused =
            |registry: &mut Registry, at| matches!(registry.standing(7, at).0, Standing::Refused);
        assert!(!is_refused(&mut registry, start));
        registry.refuse(7, start);
        assert!(is_refused(&mut registry, start + RETRY_AFTER / 2));
        let second = start + RETRY_AFTER;
        assert!(!is_refused(&mut registry, second), "it may work by now");
        registry.refuse(7, second);
        assert!(is_refused(&mut registry, second + RETRY_AFTER));
        assert!(!is_refused(&mut registry, second + 2 * RETRY_AFTER));
        (0..20).for_each(|_| drop(registry.refuse(7, second)));
        assert!(!is_refused(&mut registry, second + MAX_RETRY_AFTER));
    }

    #[test]
    fn a_group_outlives_its_last_communicator_by_a_while() {
        let Some(group) = group_on_loopback() else { panic!("expected a loopback interface") };
        let mut registry = Registry::default();
        let start = Instant::now();
        registry.0.insert(7, KnownGroup::Open { group: group.clone(), unused_since: None });
        assert!(registry.visit(start + 2 * LINGERING).is_empty(), "a communicator uses it");
        drop(group);
        assert!(registry.visit(start).is_empty());
        let Standing::Open(reused) = registry.standing(7, start + LINGERING / 2).0 else {
            panic!("gone too soon")
        };
        drop(reused);
        assert!(registry.visit(start + LINGERING).is_empty(), "it was used in between");
        assert_eq!(registry.visit(start + 2 * LINGERING).len(), 1);
        assert!(matches!(registry.standing(7, start + 2 * LINGERING).0, Standing::New));
    }

    fn group_on_loopback() -> Option<Arc<Group>> {
        use polycast_core::protocol::{KEY_BYTES, Key};
        use polycast_net::{Datagrams, Family, Interface, Socket, SocketOptions};

        use super::super::flood::Filter;
        use super::super::group::Pace;

        let interface = Interface::all().ok()?.into_iter().find(|interface| interface.name == "lo")?;
        let mut seed = u64::from(std::process::id());
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            seed
        };
        let address = polycast_net::Group::random(Family::V4, &mut next);
        let socket = Socket::open(&interface, address, &SocketOptions::default()).ok()?;
        let pace = Pace { payload_bytes: 1000, batch_datagrams: 1, bits_per_second: None };
        Some(Arc::new(Group::new(
            (Datagrams::Udp(socket), Filter::None),
            1,
            Key::from_bytes([1; KEY_BYTES]),
            pace,
            None,
        )))
    }
}
