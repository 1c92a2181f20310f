//! What this process knows of multicast between sets of nodes, so that each set is tried once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::group::Group;

/// Groups that a process is a member of at the same time. Switches have tables for a few hundred to a few thousand, which all
/// jobs share.
const GROUPS_MOST: usize = 16;

enum Known {
    Open(Weak<Group>),
    Refused,
}

static REGISTRY: Mutex<BTreeMap<u64, Known>> = Mutex::new(BTreeMap::new());

/// What is known of a set of nodes.
pub enum Standing {
    /// Nothing, and there is room for one more group.
    New,
    /// There is a group.
    Open(Arc<Group>),
    /// It did not work.
    Refused,
    /// Nothing is known, and there is no room.
    Full,
}

fn with_registry<R>(change: impl FnOnce(&mut BTreeMap<u64, Known>) -> R) -> R {
    change(&mut REGISTRY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Looks up a set of nodes.
pub fn standing(nodes: u64) -> Standing {
    with_registry(|known| {
        known.retain(|_, known| !matches!(known, Known::Open(group) if group.strong_count() == 0));
        match known.get(&nodes) {
            Some(Known::Refused) => Standing::Refused,
            Some(Known::Open(group)) => group.upgrade().map_or(Standing::New, Standing::Open),
            None => {
                let open = known.values().filter(|known| matches!(known, Known::Open(_))).count();
                if open < GROUPS_MOST { Standing::New } else { Standing::Full }
            }
        }
    })
}

/// A group works between these nodes.
pub fn remember(nodes: u64, group: &Arc<Group>) {
    with_registry(|known| known.insert(nodes, Known::Open(Arc::downgrade(group))));
}

/// Multicast does not work between these nodes.
pub fn remember_refusal(nodes: u64) {
    with_registry(|known| known.insert(nodes, Known::Refused));
}
