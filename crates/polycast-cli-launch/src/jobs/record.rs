//! What the measuring program writes, line by line; the format is described in `bench/polycast_bench.c`.

pub use polycast_cli_results::span::{Span, TimeFrom, TimeTo};

/// The version of the format that is read here.
pub const FORMAT_VERSION: u32 = 3;

/// The verdict on a repetition: whether its times count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The times of the repetition count.
    Counts,
    /// A rank called too late. Its times count only where there are too few others.
    Late,
    /// A variant that promises nothing left a rank without data.
    Lost,
}

/// A repetition of one variant, with the times of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Repetitions of different variants with the same cycle were made next to each other.
    pub cycle: u64,
    /// Position in the list of variants.
    pub variant: usize,
    /// The root of the call.
    pub root: usize,
    /// The verdict: whether the times count.
    pub verdict: Verdict,
    /// Ranks whose data was not what was sent.
    pub wrong_ranks: u32,
    /// The call and the return of each rank, by rank, in ns since the common start.
    pub times_ns: Vec<(i64, i64)>,
}

/// The place where a rank ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The host's name.
    pub host: String,
    /// The first rank under the same kernel.
    pub kernel: usize,
    /// Online cores of the host.
    pub cores: u32,
}

/// The common clock: how the clocks of the ranks were brought together, and how well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// `shared`, `two-level` or `pingpong`.
    pub method: String,
    /// Clocks that were measured.
    pub clocks: u32,
    /// The bound of the error, in ns.
    pub error_ns: u64,
    /// The error seen between ranks that read one clock in truth, in ns.
    pub observed_error_ns: u64,
}

/// A line of the measuring program's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The first line.
    Version(u32),
    /// The library's name and version.
    Mpi(String),
    /// The number of ranks of the communicator that the lines from here on are about: the first
    /// ranks of the job.
    Ranks(usize),
    /// The place where a rank runs; places come in the order of ranks.
    Rank(Place),
    /// The common clock, at the beginning.
    Clock(Clock),
    /// The spread in ns with which ranks wake up; after this record times run from the root's call.
    WakeUp(u64),
    /// True if ranks share cores.
    Oversubscribed(bool),
    /// A size begins.
    Point(u64),
    /// A measurement of this size.
    Repetition(Repetition),
    /// A block is complete: its repetitions, and the clock's error so far in ns.
    Block(u64, u64),
    /// The choice that served the present size: the variant's position, and a form of
    /// `POLYCAST_BCAST`.
    Choice(usize, String),
    /// A size is done.
    PointEnd {
        /// The delay of the arrival pattern, in ns.
        delay_ns: u64,
        /// The time in ns by which receivers were to call before the root.
        advance_ns: u64,
        /// The latest, in ns, that a rank could call so that the repetition still counts, by
        /// variant.
        tolerance_ns: Vec<u64>,
    },
    /// The reason why nothing can be measured.
    Error(String),
    /// The job is through.
    End,
}

impl Record {
    /// Reads a line; `None` if it is not from the measuring program, or only a part of a line.
    pub fn parse(line: &str) -> Option<Record> {
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split_ascii_whitespace();
        match keyword {
            "polycast-bench" => Some(Record::Version(rest.parse().ok()?)),
            "mpi" => Some(Record::Mpi(rest.to_owned())),
            "ranks" => Some(Record::Ranks(rest.parse().ok()?)),
            "rank" => parse_place(rest),
            "clock" => Some(Record::Clock(Clock {
                method: words.next()?.to_owned(),
                clocks: words.next()?.parse().ok()?,
                error_ns: words.next()?.parse().ok()?,
                observed_error_ns: words.next()?.parse().ok()?,
            })),
            "wake-up" => Some(Record::WakeUp(rest.parse().ok()?)),
            "choice" => {
                let (variant, name) = rest.split_once(' ')?;
                Some(Record::Choice(variant.parse().ok()?, name.to_owned()))
            }
            "oversubscribed" => Some(Record::Oversubscribed(rest == "1")),
            "point" => Some(Record::Point(rest.parse().ok()?)),
            "repetition" => parse_repetition(words),
            "block" => Some(Record::Block(words.next()?.parse().ok()?, words.next()?.parse().ok()?)),
            "point-end" => {
                let _bytes: u64 = words.next()?.parse().ok()?;
                let delay_ns = words.next()?.parse().ok()?;
                let advance_ns = words.next()?.parse().ok()?;
                let tolerance_ns = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
                Some(Record::PointEnd { delay_ns, advance_ns, tolerance_ns })
            }
            "error" => Some(Record::Error(rest.to_owned())),
            "end" if rest.is_empty() => Some(Record::End),
            _ => None,
        }
    }
}

/// `R host NAME kernel K cores C`
fn parse_place(rest: &str) -> Option<Record> {
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    match words[..] {
        [_, "host", host, "kernel", kernel, "cores", cores] => Some(Record::Rank(Place {
            host: host.to_owned(),
            kernel: kernel.parse().ok()?,
            cores: cores.parse().ok()?,
        })),
        _ => None,
    }
}

/// `CYCLE VARIANT ROOT ok|late|lost WRONG START END START END …`
fn parse_repetition<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Record> {
    let cycle = words.next()?.parse().ok()?;
    let variant = words.next()?.parse().ok()?;
    let root = words.next()?.parse().ok()?;
    let verdict = match words.next()? {
        "ok" => Verdict::Counts,
        "late" => Verdict::Late,
        "lost" => Verdict::Lost,
        _ => return None,
    };
    let wrong_ranks = words.next()?.parse().ok()?;
    let mut times_ns = Vec::new();
    while let Some(start) = words.next() {
        times_ns.push((start.parse().ok()?, words.next()?.parse().ok()?));
    }
    Some(Record::Repetition(Repetition { cycle, variant, root, verdict, wrong_ranks, times_ns }))
}

impl Repetition {
    /// True if the times count.
    pub fn counts(&self) -> bool {
        self.verdict == Verdict::Counts
    }

    /// Returns the time of the repetition, in ns: from the first call, or the root's, to the last
    /// return, or the root's.
    pub fn completion_ns(&self, span: Span) -> i64 {
        let first = || self.times_ns.iter().map(|(start, _)| *start).min().unwrap_or(0);
        let end_ns = match span.to {
            TimeTo::LastReturn => self.last_end_ns(),
            TimeTo::RootReturn => self.times_ns.get(self.root).map_or(0, |(_, end)| *end),
        };
        end_ns
            - match span.from {
                TimeFrom::RootCall => self.root_start_ns(),
                _ => first(),
            }
    }

    /// Returns when a rank returned, in ns since the common start, or since the root's call.
    pub fn returned_ns(&self, rank: usize, from: TimeFrom) -> Option<i64> {
        let (_, end) = self.times_ns.get(rank)?;
        Some(match from {
            TimeFrom::RootCall => end - self.root_start_ns(),
            _ => *end,
        })
    }

    fn root_start_ns(&self) -> i64 {
        self.times_ns.get(self.root).map_or(0, |(start, _)| *start)
    }

    /// Returns the time from the last call to the last return, in ns.
    pub fn since_last_arrival_ns(&self) -> i64 {
        self.last_end_ns() - self.times_ns.iter().map(|(start, _)| *start).max().unwrap_or(0)
    }

    fn last_end_ns(&self) -> i64 {
        self.times_ns.iter().map(|(_, end)| *end).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM_ROOT: Span = Span { from: TimeFrom::RootCall, to: TimeTo::LastReturn };

    #[test]
    fn a_repetition_keeps_every_rank() {
        let Some(Record::Repetition(repetition)) = Record::parse("repetition 4 1 2 ok 0 -5 100 10 250 0 90")
        else {
            panic!()
        };
        assert_eq!((repetition.cycle, repetition.variant, repetition.root), (4, 1, 2));
        assert_eq!(repetition.times_ns, [(-5, 100), (10, 250), (0, 90)]);
        assert_eq!(repetition.since_last_arrival_ns(), 240);
        assert_eq!(repetition.completion_ns(Span::default()), 255);
        assert_eq!(repetition.completion_ns(FROM_ROOT), 250);
        let to_root = Span { from: TimeFrom::FirstCall, to: TimeTo::RootReturn };
        assert_eq!(repetition.completion_ns(to_root), 95, "of a gather");
        let waiting = Record::parse("repetition 4 1 1 ok 0 -500 100 -20 250 -300 90");
        let Some(Record::Repetition(waiting)) = waiting else { panic!() };
        assert_eq!(waiting.completion_ns(FROM_ROOT), 270, "receivers that wait take no time");
        assert_eq!(waiting.returned_ns(2, TimeFrom::RootCall), Some(110));
        for (word, expected) in [("ok", Verdict::Counts), ("late", Verdict::Late), ("lost", Verdict::Lost)] {
            let line = format!("repetition 4 1 2 {word} 0 0 1");
            assert!(
                matches!(Record::parse(&line), Some(Record::Repetition(one)) if one.verdict == expected),
                "{line}"
            );
        }
    }

    #[test]
    fn what_others_print_and_what_was_cut_off_is_not_taken_for_results() {
        for line in [
            "",
            "warning: something",
            "repetition 4 1 2 ok 0 -5 100 10",
            "repetition 4 1 2 o",
            "rank 3 is tired",
            "point 1KiB",
            "end of the world",
            "repetition 4 1 2 ok 0 5 99999999999999999999999",
        ] {
            assert_eq!(Record::parse(line), None, "{line}");
        }
    }

    #[test]
    fn the_other_lines() {
        assert_eq!(Record::parse("polycast-bench 3"), Some(Record::Version(3)));
        assert_eq!(Record::parse("mpi Open MPI v4.1.4, x"), Some(Record::Mpi("Open MPI v4.1.4, x".into())));
        assert_eq!(
            Record::parse("point-end 1024 0 30 500000 7"),
            Some(Record::PointEnd { delay_ns: 0, advance_ns: 30, tolerance_ns: vec![500_000, 7] })
        );
        assert_eq!(Record::parse("wake-up 2000000"), Some(Record::WakeUp(2_000_000)));
        assert_eq!(Record::parse("choice 1 chain:ready"), Some(Record::Choice(1, "chain:ready".into())));
        assert!(matches!(Record::parse("rank 0 host h0 kernel 0 cores 2"), Some(Record::Rank(_))));
        assert!(matches!(Record::parse("clock two-level 3 100 0"), Some(Record::Clock(_))));
        assert_eq!(Record::parse("end"), Some(Record::End));
    }
}
