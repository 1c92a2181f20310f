use std::num::NonZeroU64;

use super::{allgather, allreduce, alltoall, barrier, gather, reduce, scatter};
use crate::collective::{Call, Collective};
use crate::schedule::Schedule;
use crate::units::Rank;

/// Makes one rank's schedule of a call, in segments of about so many bytes where the algorithm cuts.
pub type Builder = fn(&Call, Rank, Option<NonZeroU64>) -> Box<dyn Schedule>;

/// The algorithms of collectives other than the broadcast, with their names.
pub const BUILDERS: [(Collective, &str, Builder); 7] = [
    (Collective::Scatter, "binomial", |call, rank, _| scatter::binomial::schedule(call, rank)),
    (Collective::Gather, "binomial", |call, rank, _| gather::binomial::schedule(call, rank)),
    (Collective::Allgather, "ring", |call, rank, _| allgather::ring::schedule(call, rank)),
    (Collective::Alltoall, "pairwise", |call, rank, _| alltoall::pairwise::schedule(call, rank)),
    (Collective::Barrier, "dissemination", |call, rank, _| barrier::dissemination::schedule(call, rank)),
    (Collective::Reduce, "binomial", reduce::binomial::schedule),
    (Collective::Allreduce, "recursive-doubling", |call, rank, _| {
        allreduce::recursive_doubling::schedule(call, rank)
    }),
];
