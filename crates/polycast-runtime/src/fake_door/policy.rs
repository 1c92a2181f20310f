//! Ranks that count their calls and find out by trying what a communicator has decide as `polycast explain` says that they do.

use std::io::Write;

use polycast_core::algorithm::Registry;
use polycast_core::model::Parameters;
use polycast_core::policy::{
    self, Call, Capabilities, Choice, CommunicatorShape, Explanation, Prediction, Rules, Table,
};
use polycast_core::topology::Topology;
use polycast_core::units::Bytes;

use super::job::Job;
use super::network::Weather;
use super::process::Ended;
use super::random::{Random, with_seeds};

const CHOICES: [&str; 6] =
    ["stock", "flat", "binomial", "chain:segment=1KiB", "multicast-pull", "multicast-push"];
const PARAMETERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/params/lab-20mbit.json");

fn random_table(random: &mut Random) -> String {
    let mut text = "version = 1\n".to_owned();
    for _ in 0..random.below(7) {
        let collective = random.one_of(&policy::Collective::ALL);
        text += &format!("[[rule]]\ncollective = \"{collective}\"\n");
        for (key, most) in
            [("ranks", 7), ("nodes", 4), ("ranks_per_node", 4), ("bytes", 40_000), ("earlier_calls", 8)]
        {
            if random.one_in(3) {
                let first = random.below(most);
                text += &format!("{key} = \"{first}..{}\"\n", first + random.within(1, most));
            }
        }
        if random.one_in(3) {
            text += random.one_of(&[
                "rate = \"1gbit..\"\n",
                "latency = \"..5us\"\n",
                "multicast_percent = \"50..\"\n",
            ]);
        }
        let choice = match collective {
            policy::Collective::Broadcast => random.one_of(&CHOICES).to_owned(),
            other => random.one_of(&Registry::BUILT_IN.samples(other)).to_string(),
        };
        text += &format!("use = \"{choice}\"\n");
    }
    text
}

#[test]
fn ranks_decide_as_explain_says() {
    let parameters = std::fs::read_to_string(PARAMETERS).unwrap();
    let parameters = Parameters::parse(&parameters, PARAMETERS).unwrap();
    let shipped = Table::shipped();
    with_seeds(60, |seed| {
        let random = &mut Random::new(seed);
        let hosts: Vec<u32> = (0..random.within(2, 6)).map(|_| random.below(3) as u32).collect();
        let call = |random: &mut Random| {
            (random.below(hosts.len() as u64) as u32, random.within(1, 40_000) as usize)
        };
        let calls: Vec<(u32, usize)> = (0..random.within(1, 10)).map(|_| call(random)).collect();
        let forced = random.one_in(3).then(|| random.one_of(&CHOICES));
        let table = (!random.one_in(3)).then(|| random_table(random));
        let has_parameters = random.one_in(2);
        let (has_private, has_multicast) = (!random.one_in(4), !random.one_in(3));

        let mut job = Job::new(hosts.len() as u32, seed, forced.unwrap_or(""), &calls);
        job = job.on_hosts(&hosts, Weather::FINE);
        job.conditions.has_private = has_private;
        if !has_multicast {
            job = job.with(None, "POLYCAST_MULTICAST", "off");
        }
        if has_parameters {
            job = job.with(None, "POLYCAST_PARAMS", PARAMETERS);
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        if let Some(text) = &table {
            file.write_all(text.as_bytes()).unwrap();
            job = job.with(None, "POLYCAST_TABLE", file.path().to_str().unwrap());
        }
        let outcome = job.run();

        let names: Vec<String> = hosts.iter().map(u32::to_string).collect();
        let mut different = names.clone();
        different.sort_unstable();
        different.dedup();
        let on = |host: &String| names.iter().filter(|name| *name == host).count() as u32;
        let fullest = different.iter().map(on).max();
        let shape = CommunicatorShape::new(hosts.len() as u32, different.len() as u32, fullest).unwrap();
        // What they have found out, if they had reason to ask.
        let shape = CommunicatorShape { network: outcome.ranks[0].networks.first().copied(), ..shape };
        let there = match (has_private, has_multicast && different.len() > 1) {
            (false, _) => Capabilities::NONE,
            (true, false) => Capabilities::PRIVATE,
            (true, true) => Capabilities::ALL,
        };
        let prediction = has_parameters
            .then(|| Prediction::new(&Topology::flat(different.clone()).place(&names), &parameters));
        let table = table.map(|text| Table::parse(&text, "t").unwrap());
        let forced = forced.map(|choice| (policy::Collective::Broadcast, choice.parse::<Choice>().unwrap()));
        let rules = Rules::new(forced.as_slice(), table.as_ref(), &shipped, prediction.as_ref());
        let explained = calls.iter().enumerate().map(|(earlier_calls, (_, bytes))| {
            let call = Call::new(policy::Collective::Broadcast, Bytes(*bytes as u64));
            Explanation::new(rules, shape, there, &call, earlier_calls as u64).decision.choice
        });
        let explained: Vec<Choice> = explained.collect();
        for told in &outcome.ranks {
            assert_eq!(told.choices[..], explained[..], "{job:?}\n{rules:?}");
        }
    });
}

#[test]
fn long_calls_are_left_where_one_ranks_memory_is_limited() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"flat\"\n").unwrap();
    let calls = [(0, 1000), (1, 64 << 10), (2, (64 << 10) + 1), (0, 200_000), (1, 8)];
    let choices = |limits: &[Option<u64>], forced: &str| {
        let mut job = Job::new(3, 1, forced, &calls);
        job = job.with(None, "POLYCAST_TABLE", file.path().to_str().unwrap());
        job.conditions.memory_left = limits.to_vec();
        let outcome = job.run();
        let of = |rank: usize| outcome.ranks[rank].choices.iter().map(ToString::to_string).collect();
        let first: Vec<String> = of(0);
        for (rank, told) in outcome.ranks.iter().enumerate() {
            assert_eq!(of(rank), first, "{job:?}");
            let well = Ended::SERVED_WELL;
            let expected = first.iter().map(|choice| if choice == "stock" { Ended::LEFT } else { well });
            assert_eq!(told.calls, expected.collect::<Vec<_>>(), "rank {rank} of {job:?}");
        }
        first
    };
    assert_eq!(choices(&[], ""), ["flat"; 5]);
    let limited = [None, Some(4 << 20), Some(1 << 30)];
    assert_eq!(choices(&limited, ""), ["flat", "flat", "stock", "stock", "flat"]);
    assert_eq!(choices(&limited, "binomial"), ["binomial"; 5], "who forces a way gets it");
}
