//! Rings of leaders in virtual time: the link of each has a token bucket in both directions, a rate and a latency, and a leader may be away for a
//! while before it looks at what has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::network::{Links, Network, Told};
use crate::units::Rate;

#[derive(Clone, Copy, Debug)]
struct Link {
    latency: u64,
    bits_per_second: u64,
    /// Passes at once when the link has rested for long.
    burst_bytes: u64,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    link: Link,
    tokens: u64,
    /// Until then it is busy.
    at: u64,
}

impl Bucket {
    fn new(link: Link) -> Bucket {
        Bucket { link, tokens: link.burst_bytes, at: 0 }
    }

    /// When the last of these bytes is through.
    fn pass(&mut self, now: u64, bytes: u64) -> u64 {
        let rested = now.saturating_sub(self.at);
        let gained = u128::from(rested) * u128::from(self.link.bits_per_second) / 8_000_000_000;
        let filled = u128::from(self.tokens) + gained;
        self.tokens = filled.min(self.link.burst_bytes.into()) as u64;
        let paid = bytes.saturating_sub(self.tokens);
        self.tokens -= bytes.min(self.tokens);
        self.at = self.at.max(now) + paid * 8_000_000_000 / self.link.bits_per_second;
        self.at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Probe(u64),
    Answer,
    Over,
}

struct Ring {
    /// Of each leader, to the switch and from it.
    up: Vec<Bucket>,
    down: Vec<Bucket>,
    /// Leaders look at a message so much later; taken in turn.
    delays: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, usize, Message)>>,
    messages: usize,
}

impl Ring {
    fn send(&mut self, now: u64, from: usize, to: usize, message: Message) {
        let bytes = if let Message::Probe(bytes) = message { bytes } else { 1 };
        let sent = self.up[from].pass(now, bytes);
        let received = self.down[to].pass(now, bytes);
        let delay = self.delays[self.messages % self.delays.len()];
        let latency = self.up[from].link.latency.max(self.down[to].link.latency);
        self.events.push(Reverse((sent.max(received) + latency + delay, to, message)));
        self.messages += 1;
    }

    fn new(links: &[Link], delays: Vec<u64>) -> Ring {
        let buckets = || links.iter().map(|link| Bucket::new(*link)).collect();
        Ring { up: buckets(), down: buckets(), delays, events: BinaryHeap::new(), messages: 0 }
    }

    /// What each leader tells, when the last is through: it begins so much later than `from`, taken in turn.
    fn run(&mut self, from: u64, late: &[u64]) -> (Vec<Told>, u64) {
        let leaders = self.up.len();
        let begins = |leader: usize| from + late[leader % late.len()];
        let mut exchanges = Vec::new();
        for leader in 0..leaders {
            let (exchange, next) = Exchange::new(Nanos(begins(leader)));
            exchanges.push(exchange);
            self.follow(begins(leader), leader, next);
        }
        let (mut over, mut end) = (0, from);
        while let Some(Reverse((at, leader, message))) = self.events.pop() {
            // Who has not begun looks when it does.
            let at = at.max(begins(leader));
            end = at;
            match message {
                Message::Probe(_) => self.send(at, leader, (leader + leaders - 1) % leaders, Message::Answer),
                Message::Answer => {
                    let next = exchanges[leader].answered(Nanos(at));
                    self.follow(at, leader, next);
                }
                Message::Over => over += 1,
            }
        }
        assert_eq!(over, leaders, "everybody is told that nothing more comes");
        let told = |exchange: &Exchange| Told { estimate: exchange.estimate(), ..Told::default() };
        (exchanges.iter().map(told).collect(), end)
    }

    fn follow(&mut self, now: u64, leader: usize, next: Next) {
        let message = match next {
            Next::Send(bytes) => Message::Probe(bytes),
            Next::Over => Message::Over,
        };
        let to = (leader + 1) % self.up.len();
        self.send(now, leader, to, message);
    }

    /// What a job concludes, and when: as many rounds as it takes, 1 ms between them.
    fn find_out(&mut self, late: &[u64]) -> (Network, Links, u64) {
        let (mut links, mut end) = (Links::default(), 0);
        loop {
            let (told, at) = self.run(end, late);
            links.add(&told);
            end = at + 1_000_000;
            if links.are_settled() {
                return (Network::agreed(&told, &links), links, at);
            }
        }
    }
}

fn link(rate: &str, latency: u64, burst_bytes: u64) -> Link {
    Link { latency, bits_per_second: rate.parse::<Rate>().unwrap().bits_per_second(), burst_bytes }
}

#[test]
fn links_are_recognised_in_a_few_milliseconds() {
    for (rate, latency, burst, most_millis) in [
        ("1mbit", 500_000, 0, 150),
        ("10mbit", 50_000, 0, 80),
        ("10mbit", 50_000, 64 << 10, 120),
        ("10mbit", 50_000, 128 << 10, 200),
        ("20mbit", 50_000, 0, 40),
        ("20mbit", 50_000, 16 << 10, 60),
        ("100mbit", 30_000, 4096, 10),
        ("100mbit", 30_000, 64 << 10, 60),
        ("1gbit", 20_000, 0, 10),
        ("1gbit", 20_000, 64 << 10, 10),
        ("1gbit", 20_000, 256 << 10, 40),
        ("10gbit", 10_000, 0, 5),
        ("50gbit", 3_000, 0, 5),
        ("100gbit", 1_000, 0, 5),
    ] {
        for leaders in [2, 3, 16, 33] {
            let mut ring = Ring::new(&vec![link(rate, latency, burst); leaders], vec![0]);
            let (network, links, end) = ring.find_out(&[0]);
            assert_eq!(network.rate, rate.parse().ok(), "{rate}, burst {burst}");
            assert!(!links.differ());
            assert!(end <= most_millis * 1_000_000, "{rate}, burst {burst}: {end} ns");
            assert!(ring.messages <= 48 * leaders, "{rate}, burst {burst}: {}", ring.messages);
        }
    }
}

/// Three hosts at 1 Gb/s, two at 100 Mb/s, one at 10 Mb/s: of ten jobs nine at least find the class of the slowest one, and whose it is.
#[test]
fn the_slowest_of_mixed_links_is_found() {
    for burst in [0, 1514, 16 << 10, 64 << 10] {
        let links: Vec<Link> = ["1gbit", "1gbit", "1gbit", "100mbit", "100mbit", "10mbit"]
            .map(|rate| link(rate, 40_000, burst))
            .into();
        let mut right = 0;
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            // Every fifth is looked at late, by up to 2 ms; so late are some leaders to begin, too.
            let delays = (0..97)
                .map(|_| if random.u8(..5) == 0 { random.u64(..2_000_000) } else { random.u64(..30_000) });
            let mut ring = Ring::new(&links, delays.collect());
            let late: Vec<u64> = (0..6).map(|_| random.u64(..3_000_000)).collect();
            let (network, found, _) = ring.find_out(&late);
            let classes = found.classes();
            let slowest = classes.first().map(|alike| alike.nodes.clone());
            right += u32::from(network.rate == "10mbit".parse().ok() && slowest == Some(vec![5]));
        }
        assert!(right >= 90, "{right} of 100 with buckets of {burst} bytes");
    }
}

proptest! {
    /// Ranks that share processors look at messages late, and begin late; what is found errs by little, and never takes long. One exchange may
    /// err by more, where its long messages happen to be looked at in time and its short ones late; not most of them.
    #[test]
    fn late_ranks_are_borne(
        leaders in 2usize..20,
        mbit in prop::sample::select(&[20u64, 100, 1000, 10_000][..]),
        delays in prop::collection::vec(prop_oneof![4 => 0u64..20_000, 1 => 0u64..2_000_000], 1..50),
        late in prop::collection::vec(0u64..3_000_000, 1..20),
    ) {
        let link = Link { latency: 20_000, bits_per_second: mbit * 1_000_000, burst_bytes: 0 };
        let mut err = 0;
        for shift in 0..3 {
            let mut delays = delays.clone();
            let places = shift * delays.len() / 3;
            delays.rotate_left(places);
            let (network, _, end) = Ring::new(&vec![link; leaders], delays).find_out(&late);
            err += u32::from(network.rate.is_some_and(|found| found.bits_per_second() > 5 * mbit * 500_000));
            prop_assert!(end <= 600_000_000, "{end}");
        }
        prop_assert!(err < 2, "{err} of 3");
    }

    #[test]
    fn it_ends_whatever_the_clock_says(times in prop::collection::vec(any::<u64>(), 40)) {
        let (mut exchange, mut next) = Exchange::new(Nanos(times[0]));
        for time in &times {
            match next {
                Next::Over => {
                    exchange.estimate();
                    return Ok(());
                }
                Next::Send(bytes) => prop_assert!((1..=MAX_MESSAGE_BYTES).contains(&bytes)),
            }
            next = exchange.answered(Nanos(*time));
        }
        prop_assert!(false, "it goes on and on");
    }
}
