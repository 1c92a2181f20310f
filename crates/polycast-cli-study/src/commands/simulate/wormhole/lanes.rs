//! The lines of channels in the picture of a multicast: by parts of the network, and in those by
//! time.

use std::collections::BTreeMap;

use polycast_study::wormhole::{Channel, Topology, Trace};

/// The most lines that are looked at one by one. Of more channels, those of a part share lines.
const MAX_SINGLE: usize = 64;

/// The lines of all channels that the multicast has held.
pub struct Lanes {
    /// The parts of the network, from the top of the picture down.
    pub parts: Vec<Part>,
    /// Lines of all parts, their headings included.
    pub rows: usize,
    /// True if a line may have several channels.
    pub are_shared: bool,
    row_of: BTreeMap<Channel, usize>,
}

/// A part of the network.
pub struct Part {
    /// The part's name.
    pub name: String,
    /// The line of its heading.
    pub first: usize,
    /// The part's lines of one channel each, with its name.
    pub names: Vec<(usize, String)>,
}

impl Lanes {
    /// The line of a channel, if the multicast has held it.
    pub fn row(&self, channel: Channel) -> Option<usize> {
        self.row_of.get(&channel).copied()
    }

    /// The words that stand beside lines.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let names = self.parts.iter().flat_map(|part| &part.names).map(|(_, name)| &name[..]);
        self.parts.iter().map(|part| &part.name[..]).chain(names)
    }
}

/// The times at which a channel is held first and last.
type Times = (u64, u64);

/// Finds a line for each.
pub fn lanes(topology: Topology, trace: &Trace) -> Lanes {
    let mut held: BTreeMap<Channel, Times> = BTreeMap::new();
    for hold in trace.record.holds.iter().filter(|hold| trace.is_own(&hold.message)) {
        held.entry(hold.channel).or_insert((u64::MAX, 0));
    }
    // What others hold is drawn, too.
    for hold in &trace.record.holds {
        if let Some((from, until)) = held.get_mut(&hold.channel) {
            (*from, *until) = ((*from).min(hold.from), (*until).max(hold.until));
        }
    }
    let mut parts: BTreeMap<(u32, String), Vec<(Times, Channel)>> = BTreeMap::new();
    for (channel, times) in &held {
        parts.entry(topology.part(*channel)).or_default().push((*times, *channel));
    }
    let are_shared = held.len() > MAX_SINGLE;
    let mut lanes = Lanes { parts: Vec::new(), rows: 0, are_shared, row_of: BTreeMap::new() };
    for ((_, name), mut channels) in parts {
        channels.sort_unstable();
        let first = lanes.rows;
        let mut names = Vec::new();
        // Until when each line of this part is taken.
        let mut taken: Vec<u64> = Vec::new();
        for ((from, until), channel) in channels {
            let free = taken.iter().position(|until| are_shared && *until <= from);
            let line = free.unwrap_or_else(|| {
                taken.push(0);
                taken.len() - 1
            });
            taken[line] = until;
            // Beside the first shared line stands the heading.
            let row = first + line + usize::from(!are_shared);
            lanes.row_of.insert(channel, row);
            if !are_shared {
                names.push((row, topology.name(channel)));
            }
        }
        // A heading needs four lines where they are thin.
        lanes.rows = first + if are_shared { taken.len().max(4) } else { taken.len() + 1 };
        lanes.parts.push(Part { name, first, names });
    }
    lanes
}
