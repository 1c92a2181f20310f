//! The workers of all hosts, asked together.

use std::time::{Duration, Instant};

use super::finding::{Finding, Topic};
use super::message::{Answer, Question};
use super::worker::{Trouble, Worker};
use crate::fleet::Fleet;

/// The longest time for a worker to start: ssh gives up after ten seconds, and a login shell may
/// need some more.
const START_LIMIT: Duration = Duration::from_secs(20);
/// The longest time for an answer; listing the rules of a firewall takes longest.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The hidden verb of a doctor's worker.
const DOCTOR_AGENT: &str = "doctor-agent";

/// The workers of a fleet. Hosts are counted from 0, in the order of their fleet.
pub struct Crew<'a> {
    fleet: &'a Fleet,
    names: Vec<String>,
    /// The workers by host; `None` for hosts that do not answer or are not needed any more.
    workers: Vec<Option<Worker>>,
    /// The findings on why hosts do not answer, until [`Crew::troubles`] takes them.
    troubles: Vec<(usize, Finding)>,
}

impl<'a> Crew<'a> {
    /// Starts a worker on every host.
    pub fn start(fleet: &'a Fleet) -> Crew<'a> {
        let names = fleet.hosts().to_vec();
        let workers = names.iter().map(|_| None).collect();
        // All are started before the first is waited for.
        let started: Vec<Result<Worker, Trouble>> =
            names.iter().map(|host| start_worker(fleet, host)).collect();
        let mut crew = Crew { fleet, names, workers, troubles: Vec::new() };
        let by = Instant::now() + START_LIMIT;
        for (host, worker) in started.into_iter().enumerate() {
            match worker.and_then(|mut worker| worker.greet(by, START_LIMIT).map(|()| worker)) {
                Ok(worker) => crew.workers[host] = Some(worker),
                Err(trouble) => crew.give_up(host, &trouble),
            }
        }
        crew
    }

    /// The name of every host.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The hosts whose workers answer.
    pub fn present(&self) -> Vec<usize> {
        (0..self.workers.len()).filter(|host| self.workers[*host].is_some()).collect()
    }

    /// Asks some hosts at once and collects the answers of those that give one.
    pub fn ask(&mut self, hosts: &[usize], question: impl Fn(usize) -> Question) -> Vec<(usize, Answer)> {
        for &host in hosts {
            if let Some(worker) = &mut self.workers[host] {
                worker.ask(&question(host));
            }
        }
        let mut answers = Vec::new();
        let by = Instant::now() + ANSWER_LIMIT;
        for &host in hosts {
            match self.workers[host].as_mut().map(|worker| worker.answer(by, ANSWER_LIMIT)) {
                Some(Ok(answer)) => answers.push((host, answer)),
                Some(Err(trouble)) => self.give_up(host, &trouble),
                None => {}
            }
        }
        answers
    }

    /// Ends a worker.
    pub fn dismiss(&mut self, host: usize) {
        self.workers[host] = None;
    }

    /// Takes the findings about hosts that have stopped answering since the last call.
    pub fn troubles(&mut self) -> Vec<(usize, Finding)> {
        std::mem::take(&mut self.troubles)
    }

    fn give_up(&mut self, host: usize, trouble: &Trouble) {
        self.dismiss(host);
        let name = &self.names[host];
        let remedy = match trouble {
            Trouble::OtherVersion { .. } => self.fleet.remedy_for_version(name),
            Trouble::Ended { code, .. } => self.fleet.remedy_for(name, *code),
            _ => self.fleet.remedy_for(name, None),
        };
        self.troubles.push((host, Finding::problem(Topic::Reach, trouble.to_string(), remedy)));
    }
}

fn start_worker(fleet: &Fleet, host: &str) -> Result<Worker, Trouble> {
    let command = fleet.worker_on(host, DOCTOR_AGENT).map_err(|error| Trouble::NotStarted {
        program: "a worker".to_owned(),
        source: std::io::Error::other(error.to_string()),
    })?;
    Worker::start(command)
}
