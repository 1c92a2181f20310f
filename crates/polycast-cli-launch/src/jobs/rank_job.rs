use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::dialogue::{Dialogue, DialogueError};
use super::record::Record;
use super::{Hello, Order, RankServer};

/// The argument that lets the measuring program serve orders.
pub const ARGUMENT: &str = "orders";

/// The version of the format that is read here.
const FORMAT_VERSION: u32 = 1;

/// The reason why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum RankServerError {
    /// The dialogue with the job has ended.
    #[error(transparent)]
    Job(#[from] DialogueError),
    /// The measuring program is of another version.
    #[error(
        "the measuring program does not take orders of format {FORMAT_VERSION}: build it again with `make doors`"
    )]
    Version,
    /// The measuring program did not understand.
    #[error("the measuring program says: {0}")]
    Refused(String),
    /// An answer of another length.
    #[error("order `{order}`: expected {expected} numbers, found {found}")]
    Answer {
        /// The order.
        order: String,
        /// The number of numbers that should answer the order.
        expected: usize,
        /// The number of numbers that came.
        found: usize,
    },
}

/// A running job. Dropped, it is ended.
pub struct RankJob {
    dialogue: Dialogue,
    hello: Hello,
}

impl RankJob {
    /// Starts `command` and waits until all ranks are there. `interrupted` ends it at any time.
    pub fn start(command: Command, interrupted: Arc<AtomicBool>) -> Result<RankJob, RankServerError> {
        let dialogue = Dialogue::start(command, interrupted)?;
        let mut job = RankJob { dialogue, hello: Hello::default() };
        job.assemble()?;
        Ok(job)
    }

    /// Returns the ranks' greeting: the MPI's version, and where each rank runs.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Ends the job. All orders have been answered by now, so it is no error if the job ends badly.
    pub fn shutdown(self) -> io::Result<()> {
        self.dialogue.shutdown()
    }

    fn assemble(&mut self) -> Result<(), RankServerError> {
        let mut is_rank_server = false;
        loop {
            let line = self.dialogue.line()?;
            if let Some(version) = line.strip_prefix("polycast-measure ") {
                is_rank_server = version.parse() == Ok(FORMAT_VERSION);
                if !is_rank_server {
                    return Err(RankServerError::Version);
                }
                continue;
            }
            match Record::parse(&line) {
                _ if is_rank_server && line == "ready" => return Ok(()),
                // An older measuring program takes the argument for a wrong one.
                Some(Record::Version(_)) => return Err(RankServerError::Version),
                Some(Record::Mpi(version)) => self.hello.mpi_version = version,
                Some(Record::Rank(place)) => self.hello.places.push(place),
                Some(Record::Error(sentence)) => return Err(RankServerError::Refused(sentence)),
                _ => eprintln!("{line}"),
            }
        }
    }
}

impl RankServer for RankJob {
    fn carry_out(&mut self, order: &Order) -> Result<Vec<i64>, RankServerError> {
        self.dialogue.say(&order.to_string());
        loop {
            let line = self.dialogue.line()?;
            if let Some(numbers) = line.strip_prefix("answer") {
                let numbers: Vec<i64> =
                    numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
                let (expected, found) = (order.answer_len(), numbers.len());
                return match expected == found {
                    true => Ok(numbers),
                    false => Err(RankServerError::Answer { order: order.to_string(), expected, found }),
                };
            }
            match Record::parse(&line) {
                Some(Record::Error(sentence)) => return Err(RankServerError::Refused(sentence)),
                _ => eprintln!("{line}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> Result<RankJob, RankServerError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        RankJob::start(command, Arc::new(AtomicBool::new(false)))
    }

    const READY: &str =
        "echo polycast-measure 1; echo mpi Some MPI 1.0; echo rank 0 host h0 kernel 0 cores 2; echo ready";

    fn round_trip() -> Order {
        Order::PingPong { pair: (0, 1), bytes: 8, pause_ns: 5, dummy_ns: 0, samples: 1 }
    }

    #[test]
    fn an_order_and_its_answer() {
        let echo = format!(
            "{READY}; read order; echo noise from the launcher; test \"$order\" = \
            'pingpong 0 1 8 5 0 1' && echo answer 1 2 3; read order; echo $order"
        );
        let mut job = start(&echo).unwrap();
        assert_eq!(job.hello().mpi_version, "Some MPI 1.0");
        assert_eq!(job.hello().places[0].host, "h0");
        assert_eq!(job.carry_out(&round_trip()).unwrap(), [1, 2, 3]);
        job.shutdown().unwrap();
    }

    #[test]
    fn what_goes_wrong_is_told_apart() {
        let refusal = |script: &str| {
            let script = format!("{READY}; read order; {script}");
            start(&script).unwrap().carry_out(&round_trip()).unwrap_err().to_string()
        };
        assert!(refusal("echo answer 1 2").contains("`pingpong 0 1 8 5 0 1`: expected 3 numbers, found 2"));
        assert!(refusal("echo error no such rank").contains("no such rank"));
        assert!(refusal("exit 3").contains("exit status: 3"));
        let version = |line: &str| start(&format!("echo {line}; sleep 60")).err().unwrap().to_string();
        assert!(version("polycast-bench 2").contains("make doors"));
        assert!(version("polycast-measure 2").contains("make doors"));
    }
}
