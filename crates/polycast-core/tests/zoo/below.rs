//! How MPIs choose among their own algorithms, as it is published, in the names of algorithms that
//! polycast has, too.
//!
//! * Open MPI up to 4.0: `ompi/mca/coll/tuned/coll_tuned_decision_fixed.c` (Pješivac-Grbović et al. 2007 for the borders). A ring in
//!   segments counts as a ring, an exchange with neighbours as a ring, a pipeline as a chain.
//! * MPICH up to 4: Thakur, Rabenseifner, Gropp 2005, and `src/mpi/coll/cvars.txt`. Broadcasts, reductions and barriers go on two levels by
//!   messages where nodes have several ranks.

use polycast_core::policy::{Collective, CommunicatorShape};

const KIB: u64 = 1 << 10;

/// The algorithm of Open MPI; `bytes` as polycast counts them: all, or a block.
pub fn open_mpi(collective: Collective, ranks: u32, bytes: u64) -> String {
    let (size, all) = (f64::from(ranks), bytes as f64);
    let line = |slope: f64, start: f64| slope * all + start;
    match collective {
        Collective::Broadcast if bytes < 2048 => "binomial",
        Collective::Broadcast if bytes < 370_728 => "split-binary:segment=1KiB",
        Collective::Broadcast if size < line(1.6134e-6, 2.1102) => "chain:segment=128KiB",
        Collective::Broadcast if ranks < 13 => "split-binary:segment=8KiB",
        Collective::Broadcast if size < line(2.3679e-6, 1.1787) => "chain:segment=64KiB",
        Collective::Broadcast if size < line(3.2118e-6, 8.7936) => "chain:segment=16KiB",
        Collective::Broadcast => "chain:segment=8KiB",
        Collective::Barrier => "dissemination",
        Collective::Allreduce if bytes < 10_000 => "recursive-doubling",
        Collective::Allreduce => "ring",
        Collective::Allgather if bytes * u64::from(ranks) < 50_000 && ranks.is_power_of_two() => {
            "recursive-doubling"
        }
        Collective::Allgather if bytes * u64::from(ranks) < 50_000 => "bruck",
        Collective::Allgather => "ring",
        Collective::Alltoall if bytes < 200 && ranks > 12 => "bruck",
        Collective::Alltoall if bytes < 3000 => "linear",
        Collective::Alltoall => "pairwise",
        Collective::Gather if bytes > 6000 => "flat",
        Collective::Gather if ranks > 60 || ranks > 10 && bytes < KIB => "binomial",
        Collective::Gather => "flat",
        Collective::Scatter if ranks > 10 && bytes < 300 => "binomial",
        Collective::Scatter => "flat",
        Collective::Reduce if ranks < 8 && bytes < 512 => "flat",
        Collective::Reduce if ranks < 8 && bytes < 20_480 || bytes < 2048 => "binomial",
        Collective::Reduce if size > line(0.6016 / 1024.0, 1.3496) => "binomial:segment=1KiB",
        Collective::Reduce if size > line(0.0410 / 1024.0, 9.7128) => "chain:segment=1KiB",
        Collective::Reduce if size > line(0.0422 / 1024.0, 1.1614) => "binary:segment=32KiB",
        Collective::Reduce => "chain:segment=64KiB",
    }
    .to_owned()
}

/// The algorithm of MPICH.
pub fn mpich(collective: Collective, shape: CommunicatorShape, bytes: u64) -> String {
    let ranks = shape.ranks;
    let is_on_levels = shape.nodes > 1 && shape.ranks_per_node > 1;
    let on_levels = |between: &str| format!("two-level:between={between},within=messages");
    let all = bytes * u64::from(ranks);
    match collective {
        Collective::Broadcast if bytes < 12 * KIB || ranks < 8 => match is_on_levels {
            true => on_levels("binomial"),
            false => "binomial".to_owned(),
        },
        Collective::Broadcast if bytes < 512 * KIB && ranks.is_power_of_two() => {
            "scatter-doubling".to_owned()
        }
        Collective::Broadcast => "scatter-ring".to_owned(),
        Collective::Barrier if is_on_levels => "two-level:within=messages".to_owned(),
        Collective::Barrier => "dissemination".to_owned(),
        Collective::Allreduce if is_on_levels && bytes <= 2 * KIB => on_levels("recursive-doubling"),
        Collective::Allreduce if is_on_levels => on_levels("halving-doubling"),
        Collective::Allreduce if bytes <= 2 * KIB => "recursive-doubling".to_owned(),
        Collective::Allreduce => "halving-doubling".to_owned(),
        Collective::Allgather if all < 512 * KIB && ranks.is_power_of_two() => {
            "recursive-doubling".to_owned()
        }
        Collective::Allgather if all < 80 * KIB => "bruck".to_owned(),
        Collective::Allgather => "ring".to_owned(),
        Collective::Alltoall if bytes <= 256 && ranks >= 8 => "bruck".to_owned(),
        Collective::Alltoall if bytes <= 32 * KIB => "linear".to_owned(),
        Collective::Alltoall => "pairwise".to_owned(),
        Collective::Gather | Collective::Scatter => "binomial".to_owned(),
        Collective::Reduce if is_on_levels && bytes <= 2 * KIB => on_levels("binomial"),
        Collective::Reduce if bytes <= 2 * KIB => "binomial".to_owned(),
        Collective::Reduce => "pairwise".to_owned(),
    }
}
