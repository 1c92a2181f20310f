//! Ranks that ask their network choose alike, whatever each of them measures, and ask once for a set of nodes.

use super::conditions::{Fault, Function};
use super::job::{Broadcast, Job, Outcome, Step};
use super::network::Weather;
use super::random::{Random, with_seeds};
use super::stage::Delays;

/// Every choice depends on what was found. What that is here, in the time of the ranks, is up to the seed.
fn random_table(random: &mut Random) -> String {
    let mut text = "version = 1\n".to_owned();
    for _ in 0..random.within(1, 6) {
        let condition = random.one_of(&[
            "rate = \"100mbit..\"",
            "rate = \"..1gbit\"",
            "rate = \"20gbit..\"",
            "latency = \"..1us\"",
            "latency = \"20us..\"",
            "multicast_percent = \"50..\"",
        ]);
        let bytes = random.one_of(&["", "bytes = \"2000..\"\n", "bytes = \"..5000\"\n"]);
        let choice = random.one_of(&["stock", "flat", "binomial", "chain:segment=1KiB", "multicast-pull"]);
        text += &format!("[[rule]]\ncollective = \"bcast\"\n{condition}\n{bytes}use = \"{choice}\"\n");
    }
    text
}

fn job(random: &mut Random, seed: u64, table: &tempfile::NamedTempFile) -> Job {
    let hosts: Vec<u32> = (0..random.within(2, 7)).map(|_| random.below(4) as u32).collect();
    let ranks = hosts.len() as u32;
    let mut job = Job::new(ranks, seed, "", &[]).on_hosts(&hosts, Weather::FINE);
    job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
    job.program.clear();
    let mut kept = Vec::new();
    for communicator in 0..random.within(1, 4) as usize {
        job.program.push(Step::Make { members: (0..ranks).collect() });
        for _ in 0..random.within(1, 4) {
            let (root, bytes) = (random.below(ranks.into()) as u32, random.within(1, 20_000) as usize);
            let bytes = vec![bytes; ranks as usize];
            job.program.push(Step::Broadcast(Broadcast { communicator, root, bytes }));
        }
        if random.one_in(2) {
            job.program.push(Step::Free { communicator });
        } else {
            kept.push(communicator);
        }
    }
    job.program.extend(kept.into_iter().map(|communicator| Step::Free { communicator }));
    job
}

fn assert_alike(outcome: &Outcome, job: &Job) {
    for told in &outcome.ranks {
        assert_eq!(told.choices, outcome.ranks[0].choices, "{job:?}");
    }
}

#[test]
fn all_ranks_choose_alike_whatever_they_measure() {
    with_seeds(80, |seed| {
        let random = &mut Random::new(seed);
        let table = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(table.path(), random_table(random)).unwrap();
        let mut job = job(random, seed, &table);
        job.conditions.has_threads = random.one_in(4);
        job.conditions.eager_bytes = random.one_of(&[0, 4096, 1 << 21]);
        job.conditions.processors = random.one_of(&[1, 64]);
        if random.one_in(2) {
            let process = random.below(job.ranks().into()) as u32;
            job.program.insert(1, Step::Pause { process, time: std::time::Duration::from_millis(50) });
        }
        let outcome = job.run();
        for told in &outcome.ranks {
            assert!(told.calls.iter().all(|ended| ended.code == 0 && ended.has_data), "{told:?} of {job:?}");
        }
        assert_alike(&outcome, &job);
        assert_eq!(outcome.unreceived, 0, "{job:?}");
    });
}

/// A measurement that fails on one rank says so to all, and broadcasts go on.
#[test]
fn a_message_that_fails_in_a_measurement_costs_no_broadcast() {
    with_seeds(30, |seed| {
        let random = &mut Random::new(seed);
        let table = tempfile::NamedTempFile::new().unwrap();
        let text = "version = 1\n[[rule]]\ncollective = \"bcast\"\nrate = \"8kbit..\"\nuse = \"flat\"\n";
        std::fs::write(table.path(), text).unwrap();
        let mut job = Job::new(3, seed, "", &[(0, 3000), (1, 20_000)]).on_hosts(&[0, 1, 2], Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        let function = random.one_of(&[Function::Isend, Function::Irecv]);
        let (rank, nth) = (random.below(3) as u32, random.below(10) as u32);
        job.conditions.fault = Some(Fault { rank, function, nth, is_late: false });
        let outcome = job.run();
        assert!(outcome.failed.is_some(), "there are so many messages: {job:?}");
        for told in &outcome.ranks {
            assert!(told.calls.iter().all(|ended| ended.code == 0 && ended.has_data), "{told:?} of {job:?}");
            assert_eq!(told.calls.len(), 2, "{told:?} of {job:?}");
        }
        assert_alike(&outcome, &job);
        assert!(outcome.ranks.iter().all(|told| told.outstanding_receives == 0), "{job:?}");
    });
}

/// Rank 0 says once whose kernel holds multicast up, be it its own host's or another's.
#[test]
fn hosts_with_small_receive_buffers_are_named() {
    let said = |buffers: [u64; 4]| {
        let table = tempfile::NamedTempFile::new().unwrap();
        let text = "version = 1\n[[rule]]\ncollective = \"bcast\"\nrate = \"8kbit..\"\nuse = \"flat\"\n";
        std::fs::write(table.path(), text).unwrap();
        let mut job = Job::new(4, 7, "", &[(0, 3000)]).on_hosts(&[0, 1, 1, 2], Weather::FINE);
        job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
        job.conditions.receive_buffers = buffers.to_vec();
        let said: Vec<String> = job.run().ranks.into_iter().map(|told| told.said).collect();
        assert_eq!(said[1..], ["", "", ""]);
        said[0].clone()
    };
    // Of two ranks on a host the first speaks for it. A buffer of 250 bytes takes 1 Mb/s.
    let (small, large) = (250, 4 << 20);
    assert_eq!(said([large; 4]), "");
    assert_eq!(said([large, large, small, large]), "");
    for (buffers, hosts) in [
        ([small, large, large, large], "on host host0,"),
        ([large, small, large, large], "on host host1,"),
        ([large, small, large, small], "on hosts host1, host2,"),
    ] {
        let said = said(buffers);
        assert!(said.contains(hosts) && said.contains("held up to 1 Mb/s"), "{said}");
        assert!(said.contains("net.core.rmem_max=4194304") && said.lines().count() == 1, "{said}");
    }
}

/// So many communicators over the same nodes, each used once, with a rule for such networks.
fn lives(count: usize, network: &str, trials: &str, has_threads: bool) -> Outcome {
    let table = tempfile::NamedTempFile::new().unwrap();
    let text = format!("version = 1\n[[rule]]\ncollective = \"bcast\"\n{network}\nuse = \"flat\"\n");
    std::fs::write(table.path(), text).unwrap();
    let mut job = Job::new(3, 7, "", &[]).on_hosts(&[0, 1, 2], Weather::FINE);
    job = job.with(None, "POLYCAST_TABLE", table.path().to_str().unwrap());
    job = job.with(None, "POLYCAST_TRIALS", trials);
    job.conditions.has_threads = has_threads;
    job.conditions.delays = Delays::default();
    let live = |communicator| {
        let broadcast = Broadcast { communicator, root: 0, bytes: vec![3000; 3] };
        let members = vec![0, 1, 2];
        [Step::Make { members }, Step::Broadcast(broadcast), Step::Free { communicator }]
    };
    job.program = (0..count).flat_map(live).collect();
    let outcome = job.run();
    assert_alike(&outcome, &job);
    outcome
}

/// Later communicators over the same nodes cost one reduction, and no message, and no number if the MPI serves their calls.
#[test]
fn a_set_of_nodes_is_asked_once() {
    for has_threads in [false, true] {
        let collectives = |count| lives(count, "rate = \"1000gbit..\"", "off", has_threads).collectives;
        let [one, two, three] = [1, 2, 3].map(collectives);
        // The reduction, and the broadcast that stock serves.
        assert_eq!((two - one, three - two), (2, 2), "{one}, {two}, {three}");
    }
}

/// What the ranks know of the network, a number, and what rank 0 knows of trials come by one exchange; where threads may be faster, one more
/// tells whether they were.
#[test]
fn a_communicator_whose_call_is_compared_costs_one_exchange() {
    for (has_threads, each) in [(false, 1), (true, 2)] {
        let [one, five] = [1, 5].map(|count| lives(count, "multicast_percent = \"0..\"", "on", has_threads));
        let left = five.ranks[0].choices[1..].iter().filter(|choice| choice.to_string() == "stock").count();
        assert!((1..4).contains(&left), "both ways have their turns: {:?}", five.ranks[0].choices);
        assert_eq!(five.collectives - one.collectives, 4 * each + left);
    }
}
