//! The places of everything in the picture: switches as a tree of boxes, their hosts in rows
//! inside, ranks inside the hosts.
//!
//! ```text
//!                ┌ s1 ──────────┐
//!                │ (8)n8 (9)n9  │                 a box stands in the middle above those of the switches below it;
//!                └──────────────┘                 boxes at the same depth stand in a row
//!         ┌ s0 ──────────┐ ┌ s2 ──────────┐
//!         │ (0)n0 (1)n1  │ │ (4)n4        │
//!         └──────────────┘ └──────────────┘
//! ```

use polycast_core::topology::Placed;
use polycast_core::units::Rank;

/// Radius of the circle of a rank.
pub const RANK_RADIUS: i32 = 12;
/// The average width of a character of a name in the picture's font.
const CHARACTER_WIDTH: i32 = 8;
const RANK_STEP: i32 = 30;
const HOST_HEIGHT: i32 = 50;
/// The space above the circles of hosts with so many ranks that messages pass over some of them.
const ABOVE_RANKS: i32 = 18;
const HOST_GAP: i32 = 6;
/// Ranks in a row of hosts, at most, unless a single host has more.
const RANKS_PER_ROW: usize = 8;
const TITLE_HEIGHT: i32 = 24;
const PADDING: i32 = 10;
const SWITCH_GAP: i32 = 40;
/// Between the rows of switches; holds the links and their numbers.
const LEVEL_GAP: i32 = 90;
const MARGIN: i32 = 30;

/// A rectangle by its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Frame {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// The boxes and circles of a picture, with their places. Hosts without ranks, and switches with
/// none of them below, are left out.
#[derive(Default)]
pub struct Layout {
    pub width: i32,
    pub height: i32,
    /// Indices into the topology's switches.
    pub switches: Vec<(usize, Frame)>,
    /// Indices into the topology's hosts.
    pub hosts: Vec<(usize, Frame)>,
    /// The middle of each rank.
    pub ranks: Vec<(i32, i32)>,
}

/// A switch whose hosts stand in their places, but not yet the switch itself.
#[derive(Clone, Default)]
struct Switch {
    children: Vec<usize>,
    depth: usize,
    /// Relative to the upper left corner of the switch.
    hosts: Vec<(usize, Frame)>,
    width: i32,
    height: i32,
    /// The width of the switch and all switches below it side by side.
    subtree_width: i32,
}

/// Finds a place for everything.
pub fn layout(placed: &Placed) -> Layout {
    let mut ranks_of = vec![Vec::new(); placed.topology.hosts.len()];
    for (rank, host) in (0..).map(Rank).zip(&placed.host_of) {
        ranks_of[*host].push(rank);
    }
    let (mut switches, order) = arranged(placed, &ranks_of);
    for &index in order.iter().rev() {
        let below = switches[index].children.iter().map(|child| switches[*child].subtree_width + SWITCH_GAP);
        let below = below.sum::<i32>() - SWITCH_GAP;
        switches[index].subtree_width = below.max(switches[index].width);
    }
    let levels = level_tops(&switches, &order);
    let mut layout = Layout { ranks: vec![(0, 0); placed.host_of.len()], ..Layout::default() };
    let mut left = vec![MARGIN; switches.len()];
    for &index in &order {
        let switch = &switches[index];
        let frame = Frame {
            x: left[index] + (switch.subtree_width - switch.width) / 2,
            y: levels[switch.depth],
            width: switch.width,
            height: switch.height,
        };
        layout.switches.push((index, frame));
        for (host, inside) in &switch.hosts {
            let host_frame = Frame { x: frame.x + inside.x, y: frame.y + inside.y, ..*inside };
            layout.hosts.push((*host, host_frame));
            for (place, rank) in (0..).zip(&ranks_of[*host]) {
                let row = ranks_of[*host].len() as i32 * RANK_STEP;
                let x = host_frame.x + (inside.width - row) / 2 + place * RANK_STEP + RANK_STEP / 2;
                let above = host_frame.height - HOST_HEIGHT;
                layout.ranks[rank.index()] = (x, host_frame.y + above + RANK_RADIUS + 5);
            }
        }
        let mut next = left[index] + (switch.subtree_width - children_width(&switches, index)) / 2;
        for &child in &switch.children {
            left[child] = next;
            next += switches[child].subtree_width + SWITCH_GAP;
        }
        layout.width = layout.width.max(left[index] + switch.subtree_width + MARGIN);
        layout.height = layout.height.max(frame.y + frame.height + MARGIN);
    }
    layout
}

fn children_width(switches: &[Switch], index: usize) -> i32 {
    let children = &switches[index].children;
    children.iter().map(|child| switches[*child].subtree_width + SWITCH_GAP).sum::<i32>() - SWITCH_GAP
}

/// All switches with ranks at or below them, their hosts arranged, and the order of a walk from the topmost of them.
fn arranged(placed: &Placed, ranks_of: &[Vec<Rank>]) -> (Vec<Switch>, Vec<usize>) {
    let topology = &placed.topology;
    let mut switches = vec![Switch::default(); topology.switches.len()];
    let mut is_used = vec![false; switches.len()];
    for host in topology.hosts_by_name().into_iter().filter(|host| !ranks_of[*host].is_empty()) {
        let mut above = Some(topology.hosts[host].switch);
        switches[topology.hosts[host].switch].hosts.push((host, Frame::default()));
        while let Some(switch) = above.filter(|switch| !is_used[*switch]) {
            is_used[switch] = true;
            above = topology.switches[switch].parent;
        }
    }
    let mut pending = Vec::new();
    for index in (0..switches.len()).filter(|index| is_used[*index]) {
        match topology.switches[index].parent {
            Some(parent) => switches[parent].children.push(index),
            None => pending.push(index),
        }
        let switch = &mut switches[index];
        arrange(switch, placed, ranks_of);
        switch.width = switch.width.max(text_width(&topology.switches[index].name) + 2 * PADDING);
    }
    let mut order = Vec::new();
    while let Some(index) = pending.pop() {
        order.push(index);
        let children = switches[index].children.clone();
        for &child in children.iter().rev() {
            switches[child].depth = switches[index].depth + 1;
            pending.push(child);
        }
    }
    (switches, order)
}

/// Puts the hosts of a switch into rows.
fn arrange(switch: &mut Switch, placed: &Placed, ranks_of: &[Vec<Rank>]) {
    let pass_over = ranks_of.iter().any(|ranks| ranks.len() > 2);
    let host_height = HOST_HEIGHT + if pass_over { ABOVE_RANKS } else { 0 };
    let (mut x, mut y, mut in_row) = (PADDING, TITLE_HEIGHT, 0);
    let mut right = PADDING;
    for (host, frame) in &mut switch.hosts {
        let ranks = ranks_of[*host].len();
        let name = text_width(&placed.topology.hosts[*host].name);
        if in_row > 0 && in_row + ranks > RANKS_PER_ROW {
            (x, y, in_row) = (PADDING, y + host_height + HOST_GAP, 0);
        }
        *frame = Frame { x, y, width: (ranks as i32 * RANK_STEP + 6).max(name + 8), height: host_height };
        x += frame.width + HOST_GAP;
        in_row += ranks;
        right = right.max(x - HOST_GAP);
    }
    switch.width = right + PADDING;
    switch.height = if switch.hosts.is_empty() { TITLE_HEIGHT + PADDING } else { y + host_height + PADDING };
}

/// The upper edge of each row of switches.
fn level_tops(switches: &[Switch], order: &[usize]) -> Vec<i32> {
    let mut heights = Vec::new();
    for &index in order {
        let switch = &switches[index];
        heights.resize(heights.len().max(switch.depth + 1), 0);
        heights[switch.depth] = heights[switch.depth].max(switch.height);
    }
    let tops = heights.iter().scan(MARGIN, |next, height| {
        let top = *next;
        *next += height + LEVEL_GAP;
        Some(top)
    });
    tops.collect()
}

fn text_width(text: &str) -> i32 {
    text.chars().count() as i32 * CHARACTER_WIDTH
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::Topology;
    use proptest::prelude::*;

    use super::*;

    fn overlap(a: Frame, b: Frame) -> bool {
        a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
    }

    fn is_inside(inner: Frame, outer: Frame) -> bool {
        inner.x >= outer.x
            && inner.y >= outer.y
            && inner.x + inner.width <= outer.x + outer.width
            && inner.y + inner.height <= outer.y + outer.height
    }

    proptest! {
        #[test]
        fn nothing_overlaps_and_nothing_is_outside(
            switches in 1usize..12, hosts in 1usize..40, seed in any::<u64>(), each in 1usize..4,
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            let cluster = Topology::random(switches, hosts, |below| random.usize(..below));
            let names: Vec<&str> = cluster.hosts.iter().map(|host| host.name.as_str()).collect();
            let placed = cluster.place(&names.repeat(each));
            let layout = layout(&placed);
            let all = Frame { x: 0, y: 0, width: layout.width, height: layout.height };
            for (index, (_, frame)) in layout.switches.iter().enumerate() {
                prop_assert!(is_inside(*frame, all));
                prop_assert!(layout.switches[..index].iter().all(|(_, other)| !overlap(*frame, *other)));
            }
            prop_assert_eq!(layout.hosts.len(), hosts);
            for (index, (host, frame)) in layout.hosts.iter().enumerate() {
                let switch = placed.topology.hosts[*host].switch;
                let outer = layout.switches.iter().find(|(index, _)| *index == switch).unwrap().1;
                prop_assert!(is_inside(*frame, outer));
                prop_assert!(layout.hosts[..index].iter().all(|(_, other)| !overlap(*frame, *other)));
            }
            for (rank, (x, y)) in layout.ranks.iter().enumerate() {
                let host = placed.host_of[rank];
                let outer = layout.hosts.iter().find(|(index, _)| *index == host).unwrap().1;
                let side = 2 * RANK_RADIUS;
                let circle = Frame { x: x - RANK_RADIUS, y: y - RANK_RADIUS, width: side, height: side };
                prop_assert!(is_inside(circle, outer));
            }
        }
    }
}
