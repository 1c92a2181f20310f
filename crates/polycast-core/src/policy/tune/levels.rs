use super::Known;
use super::mixed::{MatrixEntry, Walk, within};
use super::ways::{plainly_handed_on, whole, with_overlap, with_segment};
use crate::algorithm::SEGMENTS;
use crate::algorithm::broadcast::{CARRYING_MOST, ON_NODE, TREES_OF_NODES};
use crate::cost::mixed::{BetweenNodes, MixedMessage};
use crate::model::Sharing;
use crate::policy::{Choice, Collective, CommunicatorShape};

/// The ways to broadcast on two levels with one tree between nodes: which segments and overlaps are worth measuring, by the filters of
/// [`mixed`](super::mixed).
///
/// ```text
///  measured  nothing shared before all has come ─▶ filter 2 ─▶ all of a segment, for those that are left ─▶ filter 3 ─▶ the best of what
///            in the segment predicted to be best                                                          is predicted, if it is not measured
/// ```
/// How long the nodes take among themselves is predicted; what sharing takes was measured on a node by itself, or follows from the first
/// measurement.
#[derive(Clone, Debug)]
pub struct Levels {
    /// The way, not cut into segments.
    pub(super) whole: Choice,
    /// Predicted times between nodes, by rising segments.
    columns: Vec<BetweenNodes>,
    /// The times of sharing among the ranks of a node, if they were measured.
    sharing: Option<Sharing>,
}

/// Returns the levels of each tree, for broadcasts where nodes have several ranks and the network
/// between them is known; none elsewhere.
pub fn levels(
    collective: Collective,
    shape: CommunicatorShape,
    known: Option<&Known>,
    bytes: u64,
) -> Vec<Levels> {
    let is_for_it = collective == Collective::Broadcast && shape.ranks_per_node > 1;
    let Some(known) = known.filter(|_| is_for_it) else { return Vec::new() };
    let segments: Vec<u64> = SEGMENTS.into_iter().take_while(|segment| *segment < bytes).collect();
    let of = |tree: &'static str| {
        let whole = Choice::Algorithm(ON_NODE.with_between(tree)?);
        let columns = known.between_nodes(tree, bytes, &segments)?;
        let sharing = known.sharing(collective, shape.ranks_per_node).cloned();
        (!columns.is_empty()).then_some(Levels { whole, columns, sharing })
    };
    let is_tree = |name: &&str| TREES_OF_NODES.iter().any(|(tree, _)| tree == name);
    CARRYING_MOST.into_iter().filter(is_tree).filter_map(of).collect()
}

impl Levels {
    /// Whether a way is one of these.
    pub(super) fn is_of(&self, way: Choice) -> bool {
        plainly_handed_on(way).is_some_and(|way| whole(way) == self.whole)
    }

    /// The column that is predicted to be the fastest between nodes.
    fn fastest(&self) -> Option<&BetweenNodes> {
        self.columns.iter().min_by(|one, other| one.whole_ns.total_cmp(&other.whole_ns))
    }

    /// The way that is measured first: in the segment that is best between nodes, with nothing
    /// shared meanwhile.
    pub(super) fn without(&self) -> Option<Choice> {
        with_overlap(with_segment(self.whole, self.fastest()?.segment)?, None)
    }

    /// The ways that are to be measured next, by the `known` times of ways, in µs: `None` for those
    /// that are not in the race, infinite for what cannot be had. The tree is given up if its first
    /// way takes longer than `limit_us`.
    pub(super) fn next(
        &self,
        bytes: u64,
        limit_us: f64,
        known: &dyn Fn(Choice) -> Option<f64>,
    ) -> Vec<Choice> {
        let (Some(fastest), Some(without)) = (self.fastest(), self.without()) else { return Vec::new() };
        let Some(without_us) = known(without).filter(|us| *us <= limit_us) else { return Vec::new() };
        let best_us = known(self.whole).map_or(without_us, |whole_us| whole_us.min(without_us));
        let bottom = |column: &BetweenNodes| with_segment(self.whole, column.segment);
        let left = within(&self.columns, best_us);
        let new: Vec<Choice> = left.iter().filter_map(bottom).filter(|way| known(*way).is_none()).collect();
        if !new.is_empty() {
            return new;
        }
        let all_ns = (without_us * 1e3 - fastest.whole_ns).max(0.0);
        let shared_ns = |shared: u64| match &self.sharing {
            Some(sharing) => sharing.cost_ns(shared),
            None => all_ns * shared as f64 / bytes.max(1) as f64,
        };
        let message = MixedMessage { bytes, shared_ns: &shared_ns, penalty_ns: None };
        let first = MatrixEntry { segment: fastest.segment, overlap: 0, time_us: best_us, is_measured: true };
        let mut walk = Walk::new(message, &self.columns, first);
        while let Some((segment, overlap)) = walk.next() {
            let Some(way) = with_segment(self.whole, segment) else { break };
            let way = if overlap == segment { Some(way) } else { with_overlap(way, Some(overlap)) };
            let Some(way) = way else { break };
            match known(way).filter(|us| us.is_finite()) {
                Some(us) => walk.took(us),
                None if known(way).is_none() => return vec![way],
                None => break,
            }
        }
        Vec::new()
    }
}
