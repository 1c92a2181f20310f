//! Numbers of ranks on the command line: `8`, or several for a sweep, `2,3,16` or `2..16` or `2..16:4`.

use std::str::FromStr;

use crate::hosts::MAX_RANKS;
use crate::numbers;

/// The most communicators that one job measures.
const MAX_COUNTS: usize = 64;

/// Numbers of ranks to measure with: at least one, the most first, none twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankCounts(Vec<usize>);

impl RankCounts {
    /// Ranks that the job must have.
    pub fn most(&self) -> usize {
        self.0[0]
    }

    /// The most first.
    pub fn all(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for RankCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<RankCounts, String> {
        let expected = || {
            format!(
                "expected a whole number from 1 to {MAX_RANKS}, or for a sweep at most {MAX_COUNTS}: a list such as 2,3,16, \
                 or a range such as 2..16 (doubling) or 2..16:4 (times 4)"
            )
        };
        let mut counts = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                Some((from, rest)) => counts.extend(range(from, rest).ok_or_else(expected)?),
                None => counts.push(item.trim().parse().map_err(|_| expected())?),
            }
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts.dedup();
        let is_right = counts.iter().all(|count| (1..=MAX_RANKS as u64).contains(count));
        match is_right && counts.len() <= MAX_COUNTS {
            true => Ok(RankCounts(counts.into_iter().map(|count| count as usize).collect())),
            false => Err(expected()),
        }
    }
}

fn range(from: &str, rest: &str) -> Option<Vec<u64>> {
    let (to, factor) = numbers::end_and_factor(rest)?;
    numbers::steps(from.trim().parse().ok()?, to.trim().parse().ok()?, factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_or_several_the_most_first() {
        let all = |text: &str| text.parse::<RankCounts>().unwrap().all().to_vec();
        assert_eq!(all("8"), [8]);
        assert_eq!(all("2,16,3"), [16, 3, 2]);
        assert_eq!(all("2..16"), [16, 8, 4, 2]);
        assert_eq!(all("3..20:4,12"), [20, 12, 3]);
        for text in ["", "0", "x", "4..2", "2..8:1", "1..", "2,,3", "99999999"] {
            assert!(text.parse::<RankCounts>().unwrap_err().contains("expected a whole number"), "{text}");
        }
    }
}
