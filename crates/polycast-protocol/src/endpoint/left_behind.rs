use crate::fragmentation::Run;
use crate::message::Body;

/// A node that has everything stays while more fragments than these may still come from its predecessor.
const MAX_FRAGMENTS: u32 = 128;

/// What may still come from the predecessor, of the broadcast in progress and of those before it, which this node may have left without
/// that.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// That it pushes, or has been asked for: it sends each once.
    fragments: u32,
    /// Pulled broadcasts left since it was heard: it may have said the end of each.
    ends: u32,
}

impl LeftBehind {
    /// The predecessor will send so many.
    pub fn expect(&mut self, fragments: u32) {
        self.fragments = self.fragments.saturating_add(fragments);
    }

    /// A message of the broadcast in progress, or of one before.
    pub fn came(&mut self, body: &Body<'_>, is_of_this: bool) {
        if is_of_this && matches!(body, Body::Fragments(..) | Body::End) {
            self.ends = 0;
        }
        match body {
            Body::Fragments(runs, _) => {
                let all = runs.iter().fold(0, |all: u32, Run { count, .. }| all.saturating_add(count));
                self.fragments = self.fragments.saturating_sub(all);
            }
            Body::Failed => *self = LeftBehind::default(),
            _ => {}
        }
    }

    /// This node leaves a broadcast in which the predecessor may say the end.
    pub fn left_pull(&mut self) {
        self.ends = self.ends.saturating_add(1);
    }

    /// It is little enough.
    pub fn may_leave(&self) -> bool {
        self.fragments <= MAX_FRAGMENTS
    }

    /// In how many messages at most. Each fragment may come in one of its own, behind it a loss probe, and ends before it. Ends alone do not
    /// count: they are so short that any MPI takes them unasked. In a ring of `nodes`, whose predecessor has lost sight of so many
    /// broadcasts waits for it in the first of them, and so on back to a root.
    pub fn messages(&self, nodes: u32) -> usize {
        if self.fragments == 0 { 0 } else { 2 * (self.fragments + self.ends.min(nodes)) as usize }
    }
}
