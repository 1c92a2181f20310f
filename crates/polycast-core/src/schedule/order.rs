use super::{Kind, Lane, LaneIndex, Schedule, Step, Stream};
use crate::units::Rank;

/// The ranks of a communicator in the order in which data should visit them.
///
/// A chain in rank order crosses the network at every hop when neighbouring ranks are on different hosts. Ordered by
/// host, every host's link carries the data once in and once out, whatever the placement:
///
/// ```text
///  host           A  B  A  B
///  by rank        0─▶1─▶2─▶3        three messages between hosts
///  by host        0─▶2─▶1─▶3        one
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankOrder {
    rank_at: Vec<Rank>,
    position_of: Vec<u32>,
}

impl RankOrder {
    /// The order of these ranks, each of which stands there once; `None` if they rise.
    pub fn unless_sorted(rank_at: &[Rank]) -> Option<RankOrder> {
        if rank_at.is_sorted() { None } else { Some(RankOrder::of(rank_at.to_vec())) }
    }

    /// The order of these ranks, each of which stands there once; they need not be all of the
    /// communicator.
    pub fn of(rank_at: Vec<Rank>) -> RankOrder {
        let mut position_of = vec![0; rank_at.iter().max().map_or(0, |most| most.index() + 1)];
        for (position, rank) in rank_at.iter().enumerate() {
            position_of[rank.index()] = position as u32;
        }
        RankOrder { rank_at, position_of }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> u32 {
        self.rank_at.len() as u32
    }

    /// The ranks, in this order.
    pub fn in_order(&self) -> &[Rank] {
        &self.rank_at
    }

    /// The position of `rank`, which must be one of these ranks.
    pub fn position(&self, rank: Rank) -> Rank {
        Rank(self.position_of[rank.index()])
    }

    /// Turns a schedule made for positions into one for the ranks that stand there. The slices stay
    /// as they are: they must not depend on who stands where, as in a broadcast.
    pub fn apply<S: Schedule>(&self, for_positions: S) -> Ordered<S> {
        let at = |position: Rank| self.rank_at[position.index()];
        let name = |lane: &Lane| {
            let kind = match &lane.kind {
                Kind::Messages(stream) => Kind::Messages(Stream { peer: at(stream.peer), ..*stream }),
                Kind::Local => Kind::Local,
                Kind::Publish { fabric, channel, readers } => {
                    let mut readers: Vec<Rank> = readers.iter().map(|reader| at(*reader)).collect();
                    readers.sort_unstable();
                    Kind::Publish { fabric: *fabric, channel: *channel, readers: readers.into() }
                }
                Kind::Fetch { fabric, channel, writer } => {
                    Kind::Fetch { fabric: *fabric, channel: *channel, writer: at(*writer) }
                }
            };
            Lane { kind, ..lane.clone() }
        };
        let lanes = for_positions.lanes().iter().map(name).collect();
        Ordered { for_positions, lanes }
    }
}

/// A schedule for positions, carried out by the ranks that stand there: see [`RankOrder::apply`].
pub struct Ordered<S> {
    for_positions: S,
    lanes: Vec<Lane>,
}

impl<S: Schedule> Schedule for Ordered<S> {
    fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    fn step(&self, lane: LaneIndex, index: u64) -> Step {
        self.for_positions.step(lane, index)
    }

    fn scratch_bytes(&self) -> u64 {
        self.for_positions.scratch_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_stand_where_the_list_says() {
        let order = RankOrder::of([0, 2, 1, 4, 3].map(Rank).to_vec());
        assert_eq!(order.ranks(), 5);
        assert_eq!([0, 1, 2, 3, 4].map(|rank| order.position(Rank(rank)).0), [0, 2, 1, 4, 3]);
    }
}
