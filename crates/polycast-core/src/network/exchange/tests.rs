//! Rings of leaders in virtual time: each has a port that sends one message after the other at a rate, a latency, and may be away for a
//! while before it looks at what has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use proptest::prelude::*;

use super::*;
use crate::network::{Network, Told};
use crate::units::Rate;

#[derive(Clone, Copy, Debug)]
struct Link {
    latency: u64,
    bits_per_second: u64,
    /// Passes at once when the link has rested.
    burst_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Probe(u64),
    Answer,
    Over,
}

struct Ring {
    link: Link,
    /// Leaders look at a message so much later; taken in turn.
    delays: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, usize, Message)>>,
    port_is_free: Vec<u64>,
    messages: usize,
    bytes: u64,
}

impl Ring {
    fn send(&mut self, now: u64, from: usize, to: usize, message: Message) {
        let bytes = if let Message::Probe(bytes) = message { bytes } else { 1 };
        let begins = self.port_is_free[from].max(now);
        let has_rested = begins == now;
        let paid = if has_rested { bytes.saturating_sub(self.link.burst_bytes) } else { bytes };
        self.port_is_free[from] = begins + paid * 8_000_000_000 / self.link.bits_per_second;
        let delay = self.delays[self.messages % self.delays.len()];
        let at = self.port_is_free[from] + self.link.latency + delay;
        self.events.push(Reverse((at, to, message)));
        self.messages += 1;
        self.bytes += bytes;
    }

    /// What each leader tells, when the last is through, and how many messages there were.
    fn run(leaders: usize, link: Link, delays: Vec<u64>, late: &[u64]) -> (Vec<Told>, u64, usize) {
        let mut ring = Ring {
            link,
            delays,
            events: BinaryHeap::new(),
            port_is_free: vec![0; leaders],
            messages: 0,
            bytes: 0,
        };
        let begins = |leader: usize| late[leader % late.len()];
        let mut exchanges = Vec::new();
        for leader in 0..leaders {
            let (exchange, next) = Exchange::new(Nanos(begins(leader)));
            exchanges.push(exchange);
            ring.follow(begins(leader), leader, next);
        }
        let (mut over, mut end) = (0, 0);
        while let Some(Reverse((at, leader, message))) = ring.events.pop() {
            // Who has not begun looks when it does.
            let at = at.max(begins(leader));
            end = at;
            match message {
                Message::Probe(_) => ring.send(at, leader, (leader + leaders - 1) % leaders, Message::Answer),
                Message::Answer => {
                    let next = exchanges[leader].answered(Nanos(at));
                    ring.follow(at, leader, next);
                }
                Message::Over => over += 1,
            }
        }
        assert_eq!(over, leaders, "everybody is told that nothing more comes");
        let told = |exchange: &Exchange| Told { estimate: exchange.estimate(), ..Told::default() };
        (exchanges.iter().map(told).collect(), end, ring.messages)
    }

    fn follow(&mut self, now: u64, leader: usize, next: Next) {
        let message = match next {
            Next::Send(bytes) => Message::Probe(bytes),
            Next::Over => Message::Over,
        };
        let to = (leader + 1) % self.port_is_free.len();
        self.send(now, leader, to, message);
    }
}

fn link(rate: &str, latency: u64, burst_bytes: u64) -> Link {
    Link { latency, bits_per_second: rate.parse::<Rate>().unwrap().bits_per_second(), burst_bytes }
}

#[test]
fn links_are_recognised_in_a_few_milliseconds() {
    for (rate, latency, burst, most_millis) in [
        ("1mbit", 500_000, 0, 80),
        ("20mbit", 50_000, 0, 50),
        ("20mbit", 50_000, 16 << 10, 50),
        ("100mbit", 30_000, 4096, 10),
        ("1gbit", 20_000, 0, 5),
        ("1gbit", 20_000, 64 << 10, 5),
        ("10gbit", 10_000, 0, 5),
        ("50gbit", 3_000, 0, 5),
        ("100gbit", 1_000, 0, 5),
    ] {
        for leaders in [2, 3, 16, 33] {
            let (told, end, messages) = Ring::run(leaders, link(rate, latency, burst), vec![0], &[0]);
            let network = Network::agreed(&told);
            assert_eq!(network.rate, rate.parse().ok(), "{rate}, burst {burst}");
            assert!(end <= most_millis * 1_000_000, "{rate}: {end} ns");
            assert!(messages <= 32 * leaders, "{rate}: {messages}");
        }
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
            let (told, end, _) = Ring::run(leaders, link, delays, &late);
            let found = Network::agreed(&told).rate;
            err += u32::from(found.is_some_and(|found| found.bits_per_second() > 5 * mbit * 500_000));
            prop_assert!(end <= 120_000_000, "{end}");
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
