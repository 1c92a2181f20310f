//! The nodes of a copy: who takes blocks from whom, and who is gone around.
//!
//! ```text
//!   source ─▶ a ─▶ b ─▶ c ─▶ d            b stops, or is slower than a:
//!   source ─▶ a ───────▶ c ─▶ d ─▶ b      whoever takes from b takes from a; b catches up behind the last one
//! ```
//!
//! Invariants
//! 1. Every node that takes has a parent, or is in the ring; following parents one comes to the source or to the ring.
//! 2. A node that was set aside has no children: nobody waits for it.
//! 3. Nobody is set aside whom nobody waits for.
//!
//! No clock: whoever asks tells the time.

mod ring;

use std::collections::VecDeque;

use polycast_units::Nanos;

pub use ring::Ring;
use ring::Rings;

/// The node that has the files.
pub const SOURCE: u32 = 0;

/// A node that tells nothing for so long is gone around. Nodes tell four times as often. The caller
/// must not count time in which it did not listen.
const SILENT: Nanos = Nanos::from_micros(400_000);
/// A node that gets nothing for so long although its parent has more asks another one.
const STALLED: Nanos = Nanos::from_micros(1_500_000);
/// The time over which a node's rate is measured.
const WINDOW: Nanos = Nanos::from_micros(1_000_000);
/// A node that is this many times slower than the one it takes from is gone around.
const SLOWER: u64 = 2;
/// Blocks that a node is behind its parent before it counts as slow.
const BEHIND: u64 = 16;
/// Failures of parents, without a block in between, after which a node is given up.
const MAX_FAILURES: u32 = 6;

/// Why a node was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The node was not heard of for a while.
    Silent,
    /// The node takes blocks more slowly than its parent gets them.
    Slow,
    /// The node came when the others had begun.
    Late,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Has not said that it is ready.
    Away,
    /// Takes blocks.
    Taking,
    /// Is silent: others go around the node until something is heard of it.
    Silent,
    /// Has all blocks.
    Complete,
    /// Gets nothing any more, for this reason.
    Out(String),
}

/// An order to a node: take blocks from another one from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The node that takes.
    pub node: u32,
    /// The node that gives.
    pub parent: u32,
}

#[derive(Clone, Debug)]
struct Node {
    standing: Standing,
    parent: Option<u32>,
    /// Blocks that it has.
    have: u64,
    heard: Nanos,
    /// The last time at which the node got a block or another parent, or had all that its parent
    /// has.
    moved: Nanos,
    window: (Nanos, u64),
    /// Blocks in the last whole window.
    pace: Option<u64>,
    failures: u32,
    trouble: Option<Trouble>,
}

/// The number of other nodes that a node should give to, 1 or 2. A chain is full after as many
/// blocks as there are nodes, and then every link carries every block once; a tree of fan-out k is
/// full after a few levels, and carries every block k times.
pub fn best_fanout(others: u64, blocks: u64) -> usize {
    let chain = blocks + others;
    let levels = u64::from((others + 1).max(2).ilog2());
    let binary = 2 * (blocks + levels);
    if chain <= binary { 1 } else { 2 }
}

/// All nodes of a copy.
#[derive(Clone, Debug)]
pub struct Fleet {
    nodes: Vec<Node>,
    /// The nodes that take, in the order of the chain or, level by level, of the tree; the source
    /// is first.
    line: Vec<u32>,
    fanout: usize,
    blocks: u64,
    patience: Nanos,
    /// The time that a block takes at the rate that the user allows.
    block_time: Nanos,
    has_begun: bool,
    orders: VecDeque<Order>,
    rings: Rings,
}

impl Fleet {
    /// A fleet of the source and `others` nodes, for a stream of `blocks` blocks. A node gives to
    /// at most `fanout` others, unless it has to for one that cannot. A node that is not heard of
    /// for `patience` is given up.
    ///
    /// # Panics
    /// If `fanout` is 0.
    pub fn new(others: u32, blocks: u64, fanout: usize, patience: Nanos) -> Fleet {
        assert!(fanout > 0);
        let node = Node {
            standing: Standing::Away,
            parent: None,
            have: 0,
            heard: Nanos(0),
            moved: Nanos(0),
            window: (Nanos(0), 0),
            pace: None,
            failures: 0,
            trouble: None,
        };
        let mut nodes = vec![node; others as usize + 1];
        nodes[SOURCE as usize].standing = Standing::Taking;
        let orders = VecDeque::new();
        Fleet {
            nodes,
            line: vec![SOURCE],
            fanout,
            blocks,
            patience,
            block_time: Nanos(0),
            has_begun: false,
            orders,
            rings: Rings::default(),
        }
    }

    /// Limits the source to one block in this time.
    #[must_use]
    pub fn limited(self, block_time: Nanos) -> Fleet {
        Fleet { block_time, ..self }
    }

    /// The time after which a node that gets nothing is stalled, if `blocks` blocks share what the
    /// source gives.
    fn stalled(&self, blocks: u64) -> Nanos {
        STALLED + Nanos(self.block_time.0.saturating_mul(blocks))
    }

    /// Takes the oldest order that was not taken yet.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The state of a node.
    pub fn standing(&self, node: u32) -> &Standing {
        &self.nodes[node as usize].standing
    }

    /// Why a node was set aside for the last time.
    pub fn trouble(&self, node: u32) -> Option<Trouble> {
        self.nodes[node as usize].trouble
    }

    /// The blocks that a node has.
    pub fn have(&self, node: u32) -> u64 {
        self.nodes[node as usize].have
    }

    /// True if nobody takes blocks any more, nor will.
    pub fn is_over(&self) -> bool {
        self.others().all(|node| matches!(self.standing(node), Standing::Complete | Standing::Out(_)))
    }

    /// Counts the nodes that have not said that they are ready.
    pub fn away(&self) -> usize {
        self.others().filter(|node| *self.standing(*node) == Standing::Away).count()
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        1..self.nodes.len() as u32
    }

    /// Notes that a node is alive, or that nothing is expected of it yet.
    pub fn heard(&mut self, node: u32, now: Nanos) {
        self.nodes[node as usize].heard = now;
    }

    /// Notes that a node is ready, and has `have` blocks of an earlier run.
    pub fn ready(&mut self, node: u32, have: u64, now: Nanos) {
        let it = &mut self.nodes[node as usize];
        if it.standing != Standing::Away {
            return;
        }
        (it.standing, it.have, it.heard) = (Standing::Taking, have, now);
        self.check_complete(node);
        if self.has_begun && *self.standing(node) == Standing::Taking {
            self.nodes[node as usize].trouble = Some(Trouble::Late);
            self.append(node, now);
        }
    }

    /// Begins with the nodes that are ready, in the order given, which names every node but the
    /// source once.
    pub fn begin(&mut self, order: &[u32], now: Nanos) {
        self.has_begun = true;
        let is_there = |node: &u32| matches!(self.standing(*node), Standing::Taking | Standing::Complete);
        self.line.extend(order.iter().filter(|node| is_there(node)).copied().collect::<Vec<_>>());
        for place in 1..self.line.len() {
            let parent = self.line[(place - 1) / self.fanout];
            self.feed(self.line[place], parent, now);
        }
    }

    /// Notes that a node is alive and has `have` blocks.
    pub fn progress(&mut self, node: u32, have: u64, now: Nanos) {
        let it = &mut self.nodes[node as usize];
        it.heard = now;
        if have > it.have {
            (it.have, it.moved, it.failures) = (have, now, 0);
        }
        if now - it.window.0 >= WINDOW {
            it.pace =
                (it.window.0 > Nanos(0)).then(|| (it.have - it.window.1) * WINDOW.0 / (now - it.window.0).0);
            it.window = (now, it.have);
        }
        if it.standing == Standing::Silent {
            it.standing = Standing::Taking;
            self.check_complete(node);
            if self.nodes[node as usize].standing == Standing::Taking {
                self.append(node, now);
            }
        }
        self.check_complete(node);
    }

    fn check_complete(&mut self, node: u32) {
        let it = &mut self.nodes[node as usize];
        if node != SOURCE && it.standing == Standing::Taking && it.have >= self.blocks {
            it.standing = Standing::Complete;
        }
    }

    /// Gives a node up.
    pub fn lost(&mut self, node: u32, reason: String, now: Nanos) {
        if matches!(self.standing(node), Standing::Out(_)) {
            return;
        }
        self.nodes[node as usize].standing = Standing::Out(reason);
        self.line.retain(|other| *other != node);
        self.rings.remove(node);
        self.give_children_away(node, now);
        self.nodes[node as usize].parent = None;
    }

    /// Notes that a node could not reach its parent, or gets nothing from it any more: it gets
    /// another parent, or is given up after too many failures.
    pub fn parent_failed(&mut self, node: u32, parent: u32, reason: &str, now: Nanos) {
        let it = &mut self.nodes[node as usize];
        if it.standing != Standing::Taking || it.parent != Some(parent) {
            return;
        }
        it.failures += 1;
        if it.failures >= MAX_FAILURES {
            return self.lost(node, format!("it gets nothing from any other node: {reason}"), now);
        }
        // The same once more, the one before it, and so on up to the source.
        let next = if it.failures == 1 { parent } else { self.healthy_parent_of(parent) };
        self.feed(node, next, now);
    }

    /// Notes that time has passed, and goes around nodes that are silent, slow or stuck.
    pub fn tick(&mut self, now: Nanos) {
        for node in self.others() {
            let it = &self.nodes[node as usize];
            let silence = now - it.heard;
            // Who has all blocks has not put everything in its place yet.
            let is_out = matches!(it.standing, Standing::Out(_));
            if !is_out && silence >= self.patience {
                let seconds = self.patience.0 / 1_000_000_000;
                self.lost(node, format!("nothing was heard of it for {seconds} s"), now);
            } else if self.has_begun
                && silence >= SILENT
                && matches!(it.standing, Standing::Taking | Standing::Complete)
                && !self.is_in_ring_that_moves(node, now)
            {
                self.set_aside(node, Trouble::Silent, now);
            } else if self.is_slow(node) {
                self.set_aside(node, Trouble::Slow, now);
            } else if self.has_all_of_parent(node) {
                self.nodes[node as usize].moved = now;
            } else if self.is_stalled(node, now) {
                let parent = it.parent.unwrap_or(SOURCE);
                self.parent_failed(node, parent, "blocks do not come", now);
            }
        }
        self.tick_ring(now);
    }

    fn is_slow(&self, node: u32) -> bool {
        let it = &self.nodes[node as usize];
        let Some(parent) =
            it.parent.filter(|parent| *parent != SOURCE).map(|parent| &self.nodes[parent as usize])
        else {
            return false;
        };
        let is_slower = |(own, others): (u64, u64)| own * SLOWER < others;
        it.standing == Standing::Taking
            && parent.have >= it.have + BEHIND
            && it.pace.zip(parent.pace).is_some_and(is_slower)
            && self.has_needy_children(node)
    }

    fn is_stalled(&self, node: u32, now: Nanos) -> bool {
        let it = &self.nodes[node as usize];
        let still = now - it.moved;
        // Who shares is counted only where it matters: with each word all are looked at.
        it.standing == Standing::Taking && it.parent.is_some() && still >= self.stalled(0) && {
            let sharing = self.nodes.iter().filter(|other| other.parent == it.parent).count() as u64;
            still >= self.stalled(sharing)
        }
    }

    fn has_all_of_parent(&self, node: u32) -> bool {
        let it = &self.nodes[node as usize];
        it.parent.is_some_and(|parent| self.nodes[parent as usize].have <= it.have)
    }

    fn has_needy_children(&self, node: u32) -> bool {
        self.nodes.iter().any(|child| child.parent == Some(node) && child.standing == Standing::Taking)
    }

    fn set_aside(&mut self, node: u32, trouble: Trouble, now: Nanos) {
        let is_complete = *self.standing(node) == Standing::Complete;
        if is_complete && !self.has_needy_children(node) {
            // The others of a ring wait for its word.
            self.rings.remove(node);
            return;
        }
        self.line.retain(|other| *other != node);
        self.rings.remove(node);
        self.give_children_away(node, now);
        if is_complete {
            return;
        }
        self.nodes[node as usize].trouble = Some(trouble);
        match trouble {
            Trouble::Silent => self.nodes[node as usize].standing = Standing::Silent,
            Trouble::Slow | Trouble::Late => self.append(node, now),
        }
    }

    /// Gives the children of a node to its parent; those of a node in a ring to the last of the
    /// line.
    fn give_children_away(&mut self, node: u32, now: Nanos) {
        let parent = match self.nodes[node as usize].parent {
            None => self.last_but(node),
            Some(_) => self.healthy_parent_of(node),
        };
        for child in self.others() {
            let it = &mut self.nodes[child as usize];
            if it.parent != Some(node) {
                continue;
            }
            if it.standing == Standing::Taking {
                self.feed(child, parent, now);
            } else {
                it.parent = Some(parent);
            }
        }
    }

    fn healthy_parent_of(&self, node: u32) -> u32 {
        let mut at = node;
        // As many steps as there are nodes: parents lead to the source.
        for _ in 0..self.nodes.len() {
            match self.nodes[at as usize].parent {
                Some(parent) if parent != SOURCE => at = parent,
                _ => return SOURCE,
            }
            if matches!(self.standing(at), Standing::Taking | Standing::Complete) {
                return at;
            }
        }
        SOURCE
    }

    /// Lets a node take from the last of the line without joining the line, so that nobody waits
    /// for the node. Other slow nodes do not take from it either: the slowest would delay the next
    /// one.
    fn append(&mut self, node: u32, now: Nanos) {
        self.feed(node, self.last_but(node), now);
    }

    fn last_but(&self, node: u32) -> u32 {
        let is_there = |other: &&u32| {
            **other != node && matches!(self.standing(**other), Standing::Taking | Standing::Complete)
        };
        self.line.iter().rev().find(is_there).copied().unwrap_or(SOURCE)
    }

    fn feed(&mut self, node: u32, parent: u32, now: Nanos) {
        let it = &mut self.nodes[node as usize];
        (it.parent, it.moved) = (Some(parent), now);
        // What it got from another one says nothing of this one.
        (it.window, it.pace) = ((now, it.have), None);
        if it.standing == Standing::Taking {
            self.orders.push_back(Order { node, parent });
        }
    }
}

#[cfg(test)]
#[path = "fleet_tests.rs"]
mod tests;
