use crate::fragmentation::Run;
use crate::message::Body;

/// A node that has everything stays while more fragments than these may still come from its predecessor.
const MAX_FRAGMENTS: u32 = 128;

/// The fragments that may still come from the predecessor, of the broadcast in progress and of
/// those before it, which this node may have left without them.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// Fragments to come of the broadcast in progress: those that the predecessor pushes, or has
    /// been asked for. It sends each once, unless it had left when the request came.
    fragments: u32,
    /// Fragments that have come of it.
    came: u32,
    /// Fragments to come of broadcasts that this node has left. A message of the predecessor about
    /// a later broadcast comes behind all these.
    fragments_before: u32,
    /// Pulled broadcasts left since the predecessor was heard, each of which it may have sent an
    /// end of.
    ends: u32,
}

impl LeftBehind {
    /// The predecessor will send so many fragments.
    pub fn expect(&mut self, fragments: u32) {
        self.fragments = self.fragments.saturating_add(fragments);
    }

    /// The predecessor sends so many fragments of the broadcast in progress in all.
    pub fn expect_in_all(&mut self, fragments: u32) {
        self.fragments = fragments.saturating_sub(self.came);
    }

    /// A message has come, of the broadcast in progress or of one before.
    pub fn came(&mut self, body: &Body<'_>, is_of_this: bool) {
        if is_of_this && matches!(body, Body::Fragments(..) | Body::End) {
            (self.ends, self.fragments_before) = (0, 0);
        }
        match body {
            Body::Fragments(runs, _) => {
                let all = runs.iter().fold(0, |all: u32, Run { count, .. }| all.saturating_add(count));
                self.came = self.came.saturating_add(if is_of_this { all } else { 0 });
                let left = if is_of_this { &mut self.fragments } else { &mut self.fragments_before };
                *left = left.saturating_sub(all);
            }
            Body::Failed => *self = LeftBehind::default(),
            _ => {}
        }
    }

    /// The node leaves a broadcast. `is_pull`: the predecessor may send an end of it.
    pub fn left(&mut self, is_pull: bool) {
        (self.ends, self.came) = (self.ends.saturating_add(u32::from(is_pull)), 0);
        self.fragments_before = self.fragments_before.saturating_add(std::mem::take(&mut self.fragments));
    }

    /// True if few enough fragments may still come for the node to leave.
    pub fn may_leave(&self) -> bool {
        self.all() <= MAX_FRAGMENTS
    }

    fn all(&self) -> u32 {
        self.fragments.saturating_add(self.fragments_before)
    }

    /// The most messages that the fragments may still come in. Each fragment may come in a message
    /// of its own, with a loss probe behind it, and with ends before it. Ends alone do not count:
    /// they are so short that any MPI takes them unasked. At most `nodes` ends count: in a ring of
    /// `nodes`, a node whose predecessor has lost sight of so many broadcasts waits for it in the
    /// first of them, and so on back to a root.
    pub fn messages(&self, nodes: u32) -> usize {
        if self.all() == 0 { 0 } else { 2 * (self.all() + self.ends.min(nodes)) as usize }
    }
}
