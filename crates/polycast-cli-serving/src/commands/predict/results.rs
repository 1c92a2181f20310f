//! The results that `polycast bench --json` has written: a line with the environment, then a line
//! per size and variant.

use polycast_core::algorithm::Algorithm;
use polycast_core::collective::Collective;
use polycast_core::policy::Choice;
use polycast_core::units::Bytes;
use serde::Deserialize;

use crate::operation::Operation;

/// Measured times that a prediction can be held against, and where they were measured.
#[derive(Debug)]
pub struct Results {
    /// The hosts as for `--hosts`, in the order of the ranks.
    pub hosts: String,
    /// The points, in the order of the file.
    pub points: Vec<ResultPoint>,
}

/// The figures of one variant at one size, as far as they are needed here.
#[derive(Clone, Debug, Deserialize)]
pub struct ResultPoint {
    /// The operation; of older files a broadcast.
    #[serde(default = "broadcast")]
    collective: String,
    /// The operation that `collective` names, if it is known.
    #[serde(skip)]
    pub operation: Operation,
    /// The name of the variant that served the calls.
    pub variant: String,
    /// The algorithm that `variant` names, if it names one.
    #[serde(skip)]
    pub algorithm: Option<Algorithm>,
    /// Ranks of the communicator; of older files all.
    #[serde(default)]
    pub ranks: Option<usize>,
    /// The largest buffer of a rank.
    pub bytes: u64,
    /// A rank, or `rotate`.
    pub root: String,
    /// Median of the completion in µs.
    pub median_us: Option<f64>,
    /// The lower end of the median's 95 % interval.
    pub ci_low_us: Option<f64>,
    /// The upper end of that interval.
    pub ci_high_us: Option<f64>,
}

fn broadcast() -> String {
    Operation::Bcast.name().to_owned()
}

impl ResultPoint {
    /// The collective whose algorithms served the calls.
    pub fn collective(&self) -> Collective {
        self.operation.collective()
    }

    /// The message, or a block; allgatherv's have two sizes, of which this is the mean.
    pub fn block(&self, ranks: usize) -> Bytes {
        Bytes(self.operation.block_bytes(self.bytes, ranks))
    }

    /// Reads the operation and the algorithm from their names; `false` if nobody knows the
    /// operation.
    fn find_names(&mut self) -> bool {
        let Some(known) = Operation::ALL.into_iter().find(|known| known.name() == self.collective) else {
            return false;
        };
        self.operation = known;
        if let Ok(Choice::Algorithm(algorithm)) = Choice::read(known.collective(), &self.variant) {
            self.algorithm = Some(algorithm);
        }
        true
    }
}

#[derive(Deserialize)]
struct First {
    environment: Environment,
}

#[derive(Deserialize)]
struct Environment {
    hosts: Vec<Host>,
}

#[derive(Deserialize)]
struct Host {
    name: String,
    ranks: usize,
}

/// A file that is not of `polycast bench`.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: expected {expected}, as `polycast bench --json` writes it: {source}")]
pub struct ResultsError {
    file: String,
    line: usize,
    expected: &'static str,
    source: serde_json::Error,
}

impl Results {
    /// Reads a file; `file` is its name.
    pub fn parse(text: &str, file: &str) -> Result<Results, ResultsError> {
        let error =
            |line, expected| move |source| ResultsError { file: file.to_owned(), line, expected, source };
        let mut lines = (1..).zip(text.lines());
        let first = lines.next().map_or("", |(_, line)| line);
        let first: First = serde_json::from_str(first).map_err(error(1, "the environment"))?;
        let hosts = first.environment.hosts.iter().map(|host| format!("{}:{}", host.name, host.ranks));
        let points = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| serde_json::from_str(line).map_err(error(number, "a measurement")));
        let mut points: Vec<ResultPoint> = points.collect::<Result<_, _>>()?;
        points.retain_mut(ResultPoint::find_names);
        Ok(Results { hosts: hosts.collect::<Vec<_>>().join(","), points })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_and_says_which_is_wrong() {
        let first =
            r#"{"environment":{"hosts":[{"name":"h0","ranks":1,"cores":2},{"name":"h1","ranks":2}]}}"#;
        let point =
            r#"{"variant":"chain","bytes":1024,"root":"0","median_us":12.5,"ci_low_us":null,"samples":3}"#;
        let of = |name: &str| point.replacen('{', &format!("{{\"collective\":\"{name}\","), 1);
        let others = [of("allgatherv").replace("chain", "ring"), of("scan")].join("\n");
        let results = Results::parse(&format!("{first}\n{point}\n{others}\n\n"), "r.json").unwrap();
        assert_eq!((results.hosts.as_str(), results.points.len()), ("h0:1,h1:2", 2));
        assert_eq!(results.points[0].median_us, Some(12.5));
        let blocks = &results.points[1];
        assert_eq!((blocks.collective(), blocks.block(3)), (Collective::Allgather, Bytes(342)));
        assert_eq!(blocks.algorithm.unwrap().to_string(), "ring");
        for (text, expected) in [
            (String::new(), "r.json:1: expected the environment"),
            (format!("{first}\n{point}\n{{}}"), "r.json:3: expected a measurement"),
        ] {
            assert!(Results::parse(&text, "r.json").unwrap_err().to_string().starts_with(expected));
        }
    }
}
