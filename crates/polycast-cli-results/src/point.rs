//! The figures of one size and variant, as they are reported.

use serde::{Deserialize, Serialize};

use crate::span::{TimeFrom, TimeTo};

/// The figures of one variant at one size; a line of the JSON output. Times in µs; `null` where there is no sample, or
/// no such thing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Point {
    /// The operation.
    pub collective: String,
    /// The variant as the user asked for it.
    pub variant: String,
    /// The MPI and its version.
    pub mpi: String,
    /// The choice by which polycast served the variant, in the form of `POLYCAST_BCAST`; `None`
    /// where polycast was not there to tell.
    pub algorithm: Option<String>,
    /// Ranks of the job.
    pub ranks: usize,
    /// Hosts of the job.
    pub nodes: usize,
    /// The size of the largest buffer of a rank.
    pub bytes: u64,
    /// The block of a rank, or of a pair of ranks, in bytes; rounded up to whole blocks or
    /// elements.
    pub block_bytes: u64,
    /// A rank, `rotate`, or `none`.
    pub root: String,
    /// The arrival pattern.
    pub arrival: String,
    /// The delay of the arrival pattern.
    pub delay_us: f64,
    /// The call that times run from.
    pub time_from: TimeFrom,
    /// The return that ends times.
    pub time_to: TimeTo,
    /// Repetitions that the figures rest on.
    pub samples: usize,
    /// The repetitions that a rank entered too late: they count where there are too few others.
    pub late: usize,
    /// Repetitions that a rank entered too late and that do not count.
    pub dropped: usize,
    /// True if the variant delivers whatever the network does; blast does not.
    pub reliable: bool,
    /// Repetitions that left a rank without data, of a variant that is not reliable.
    pub lost: usize,
    /// The median of the completion: the return that ends the time − the call that the time runs
    /// from.
    pub median_us: Option<f64>,
    /// The 95 % interval of the median.
    pub ci_low_us: Option<f64>,
    /// The upper end of the interval, in µs.
    pub ci_high_us: Option<f64>,
    /// The 90th percentile of the completions.
    pub p90_us: Option<f64>,
    /// The 99th percentile of the completions.
    pub p99_us: Option<f64>,
    /// The shortest completion.
    pub min_us: Option<f64>,
    /// The longest completion.
    pub max_us: Option<f64>,
    /// The bytes that the busiest link must carry, whatever the algorithm.
    pub wire_bytes: u64,
    /// The time that `wire_bytes` need on the slowest link.
    pub wire_us: Option<f64>,
    /// Median over wire.
    pub ratio_to_wire: Option<f64>,
    /// Bytes of the message over the median, in millions per second: what each receiver gets.
    pub bandwidth_mb_per_s: Option<f64>,
    /// Median over that of blast, of the same size.
    pub ratio_to_blast: Option<f64>,
    /// The slowest over the fastest receiver, by the medians of their returns.
    pub skew_ratio: Option<f64>,
    /// The median return of each rank, by rank, since the common start or the root's call; the
    /// root's own repetitions are left out when it rotates.
    pub per_rank_median_us: Vec<Option<f64>>,
    /// Median of the time that the root spent in the call.
    pub root_occupied_median_us: Option<f64>,
    /// Median from the last call to the last return.
    pub since_last_arrival_median_us: Option<f64>,
    /// Jobs that were started.
    pub launches: usize,
    /// The median of each launch, in µs.
    pub launch_median_us: Vec<Option<f64>>,
    /// The variant that `speedup` compares with: `stock` where it was measured, else the first
    /// variant.
    pub reference: String,
    /// The speed as a multiple of the reference's: the median over pairs of neighbouring
    /// repetitions.
    pub speedup: Option<f64>,
    /// The 95 % interval of the speed-up.
    pub speedup_ci_low: Option<f64>,
    /// The upper end of the speedup's interval.
    pub speedup_ci_high: Option<f64>,
    /// The reason why there is no speedup although both were measured: it contradicts the medians,
    /// or could be anything.
    pub speedup_withheld: Option<String>,
    /// `speedup` where the reference is stock.
    pub speedup_vs_stock: Option<f64>,
    /// Every rank had the root's data after every repetition that was not lost.
    pub verified: bool,
    /// Repetitions after which a rank had wrong data.
    pub wrong: usize,
    /// The latest that a rank could call so that the repetition still counts, in µs.
    pub tolerance_us: Option<f64>,
    /// The bound of the common clock's error.
    pub clock_error_us: f64,
    /// True if the place of the measurement is able to show such a time. `None`: not known.
    pub believed: Option<bool>,
    /// The reason why the time is not to be believed.
    pub doubt: Option<String>,
    /// The remarks on the point: few repetitions, late ones, calls that were left to the MPI.
    pub remark: Option<String>,
    /// The mean time of each rank in the call, by rank, for the views of other benchmarks.
    #[serde(skip)]
    pub per_rank_mean_us: Vec<f64>,
}

/// True if several MPIs were measured beside each other. Older files do not say which MPI it was.
pub fn are_of_several_mpis(points: &[Point]) -> bool {
    points.iter().any(|point| point.mpi != points[0].mpi)
}

/// True if several numbers of ranks were measured.
pub fn is_sweep(points: &[Point]) -> bool {
    points.iter().any(|point| point.ranks != points[0].ranks)
}

/// The mark of a figure that the lab cannot show.
pub const DOUBT: char = '?';
/// The mark of a row with a remark.
pub const REMARK: char = '!';

impl Point {
    /// The mark of a point in tables and pictures: of what the place cannot show, or of what there
    /// is a remark on.
    pub fn mark(&self) -> Option<char> {
        match (&self.doubt, &self.remark) {
            (Some(_), _) => Some(DOUBT),
            (None, Some(_)) => Some(REMARK),
            (None, None) => None,
        }
    }
}
