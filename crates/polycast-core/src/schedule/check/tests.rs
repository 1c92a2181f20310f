//! A checker that cannot fail proves nothing: broken schedules of each kind.

use std::ops::Range;

use super::*;
use crate::collective::Collective;
use crate::schedule::{Action, After, Direction, Fabric, Kind, Listed, Slice, Stream};

/// Schedules of messages in one buffer, as in broadcasts.
trait Messages: Sized {
    fn with(self, direction: Direction, peer: u32, steps: &[(Range<u64>, After)]) -> Self;
    fn on_channel(self, channel: Channel) -> Self;
    fn opens_after(self, lane: LaneIndex) -> Self;
    fn stream(&mut self, lane: LaneIndex, change: impl FnOnce(&mut Stream));
    fn slice(&mut self, lane: LaneIndex, step: usize, bytes: Range<u64>);
    fn after(&mut self, lane: LaneIndex, step: usize, after: After);
    fn drop_step(&mut self, lane: LaneIndex, step: usize);
}

impl Messages for Listed {
    fn with(mut self, direction: Direction, peer: u32, steps: &[(Range<u64>, After)]) -> Self {
        let lane = self.lane(Kind::Messages(Stream { direction, ..Stream::send(Rank(peer), 0) }));
        for (bytes, after) in steps {
            let bytes = Slice::output(bytes.clone());
            let action = if direction == Send { Action::Send(bytes) } else { Action::Receive(bytes) };
            self.add(lane, action, *after);
        }
        self
    }

    fn on_channel(mut self, channel: Channel) -> Self {
        let last = self.lanes().len() - 1;
        self.stream(last, |stream| stream.channel = channel);
        self
    }

    fn opens_after(mut self, lane: LaneIndex) -> Self {
        let last = self.lanes().len() - 1;
        self.lane_mut(last).opens_after = Some(lane);
        self
    }

    fn stream(&mut self, lane: LaneIndex, change: impl FnOnce(&mut Stream)) {
        let Kind::Messages(stream) = &mut self.lane_mut(lane).kind else { panic!("no messages") };
        change(stream);
    }

    fn slice(&mut self, lane: LaneIndex, step: usize, bytes: Range<u64>) {
        self.change_steps(lane, |steps| match &mut steps[step].action {
            Action::Send(slice) | Action::Receive(slice) => slice.bytes = bytes,
            _ => panic!("no message"),
        });
    }

    fn after(&mut self, lane: LaneIndex, step: usize, after: After) {
        self.change_steps(lane, |steps| steps[step].after = after);
    }

    fn drop_step(&mut self, lane: LaneIndex, step: usize) {
        self.change_steps(lane, |steps| {
            steps.remove(step);
        });
    }
}

use Direction::{Receive, Send};

const START: After = After::Start;

fn steps(lane: LaneIndex, count: u64) -> After {
    After::Steps { lane, count }
}

/// A chain 0 → 1 → 2 of ten bytes in two segments.
fn chain() -> [Listed; 3] {
    let whole = [(0..5, START), (5..10, START)];
    [
        Listed::default().with(Send, 1, &whole),
        Listed::default().with(Receive, 0, &whole).with(
            Send,
            2,
            &[(0..5, steps(0, 1)), (5..10, steps(0, 2))],
        ),
        Listed::default().with(Receive, 1, &whole),
    ]
}

fn check_bytes(schedules: &[Listed], bytes: u64, root: u32) -> Result<Summary, Violation> {
    let ranks = schedules.len() as u32;
    check(schedules, &Call::new(Collective::Broadcast, ranks, Rank(root), Bytes(bytes)))
}

fn check_ten(schedules: &[Listed]) -> Result<Summary, Violation> {
    check_bytes(schedules, 10, 0)
}

fn place(rank: u32, lane: LaneIndex, step: u64) -> Place {
    Place { rank: Rank(rank), lane, step }
}

#[test]
fn a_correct_chain_is_summed_up() {
    let expected = Summary {
        messages: 4,
        signals: 0,
        bytes: Bytes(20),
        most_messages_sent: 2,
        most_bytes_sent: Bytes(10),
    };
    assert_eq!(check_ten(&chain()), Ok(expected));
}

#[test]
fn nothing_to_send_is_correct_and_a_lonely_rank_too() {
    let silent = [Listed::default(), Listed::default()];
    assert_eq!(check_bytes(&silent, 0, 1), Ok(Summary::default()));
    assert_eq!(check_bytes(&silent[..1], 10, 0), Ok(Summary::default()));
    assert_eq!(check_bytes(&silent, 1, 1), Err(Violation::Missing { rank: Rank(0), byte: 0 }));
}

#[test]
fn a_step_dropped_at_one_end() {
    let mut schedules = chain();
    schedules[1].drop_step(1, 0);
    let expected = Violation::StepCount { at: place(1, 1, 0), sent: 1, received: 2 };
    assert_eq!(check_ten(&schedules), Err(expected));
}

#[test]
fn a_step_dropped_at_both_ends() {
    let mut schedules = chain();
    schedules[1].drop_step(1, 1);
    schedules[2].drop_step(0, 1);
    assert_eq!(check_ten(&schedules), Err(Violation::Missing { rank: Rank(2), byte: 5 }));
}

#[test]
fn steps_in_another_order_at_one_end() {
    let mut schedules = chain();
    schedules[2].change_steps(0, |steps| steps.swap(0, 1));
    let expected = Violation::Wrong { rank: Rank(2), byte: 0, found: "byte 5 of 0".to_owned() };
    assert_eq!(check_ten(&schedules), Err(expected));
}

#[test]
fn a_range_that_is_off_by_one() {
    let mut schedules = chain();
    schedules[2].slice(0, 1, 5..9);
    let expected = Violation::OtherLength { at: place(1, 1, 1), sent: 5, received: 4 };
    assert_eq!(check_ten(&schedules), Err(expected));
}

#[test]
fn a_byte_that_comes_twice() {
    let mut schedules = chain();
    schedules[1].slice(1, 1, 4..10);
    schedules[2].slice(0, 1, 4..10);
    let expected = Violation::Twice { at: place(2, 0, 1), found: 4..10 };
    assert_eq!(check_ten(&schedules), Err(expected));
}

#[test]
fn a_root_that_receives() {
    let mut schedules = chain();
    schedules[2] = schedules[2].clone().with(Send, 0, &[(0..5, steps(0, 1))]);
    schedules[0] = schedules[0].clone().with(Receive, 2, &[(0..5, START)]);
    let expected = Violation::Twice { at: place(0, 1, 0), found: 0..5 };
    assert_eq!(check_ten(&schedules), Err(expected));
}

#[test]
fn bytes_beyond_the_message() {
    let schedules = chain();
    let expected = Violation::OutOfBounds { at: place(0, 0, 1), found: 5..10, bytes: 9 };
    assert_eq!(check_bytes(&schedules, 9, 0), Err(expected));
}

#[test]
fn a_send_that_waits_for_too_little() {
    for after in [START, steps(0, 1)] {
        let mut schedules = chain();
        schedules[1].after(1, 1, after);
        let expected = Violation::NotYetReceived { at: place(1, 1, 1), found: 5..10 };
        assert_eq!(check_ten(&schedules), Err(expected));
    }
}

#[test]
fn what_an_earlier_step_waited_for_is_known() {
    let mut schedules = chain();
    schedules[1].after(1, 0, After::LanesBelow(1));
    schedules[1].after(1, 1, START);
    assert!(check_ten(&schedules).is_ok());
}

#[test]
fn waiting_for_what_does_not_exist() {
    for (after, found) in [(steps(0, 3), 0), (steps(7, 1), 7), (After::LanesBelow(3), 3)] {
        let mut schedules = chain();
        schedules[1].after(1, 0, after);
        assert_eq!(check_ten(&schedules), Err(Violation::WaitsForNothing { at: place(1, 1, 0), found }));
    }
}

#[test]
fn a_receive_that_waits() {
    let mut schedules = chain();
    schedules[2].after(0, 1, steps(0, 1));
    assert_eq!(check_ten(&schedules), Err(Violation::WaitingReceive { at: place(2, 0, 1) }));
}

/// 1 and 2 have what they send only from each other.
#[test]
fn two_ranks_that_wait_for_each_other() {
    let member = |peer| {
        Listed::default().with(Receive, peer, &[(0..10, START)]).with(Send, peer, &[(0..10, steps(0, 1))])
    };
    let expected = Violation::Deadlock { at: place(1, 1, 0), other: Rank(1), waits_for: 0 };
    assert_eq!(check_ten(&[Listed::default(), member(2), member(1)]), Err(expected));
}

/// The child announces itself only after it has data, the parent sends only after the announcement.
#[test]
fn a_signal_that_waits_for_what_it_opens() {
    let signal = |after| [(0..0, after)];
    let root = Listed::default()
        .with(Receive, 1, &signal(START))
        .on_channel(1)
        .with(Send, 1, &[(0..10, START)])
        .opens_after(0);
    let child = |after| {
        Listed::default().with(Receive, 0, &[(0..10, START)]).with(Send, 0, &signal(after)).on_channel(1)
    };
    let summary = check_ten(&[root.clone(), child(START)]).unwrap();
    assert_eq!((summary.messages, summary.signals), (1, 1));
    let expected = Violation::Deadlock { at: place(0, 1, 0), other: Rank(0), waits_for: 0 };
    assert_eq!(check_ten(&[root, child(steps(0, 1))]), Err(expected));
}

#[test]
fn lanes_that_do_not_fit_together() {
    let mut schedules = chain();
    schedules[2] = Listed::default();
    assert_eq!(check_ten(&schedules), Err(Violation::Unmatched { at: place(1, 1, 0), peer: Rank(2) }));

    let mut schedules = chain();
    schedules[2].stream(0, |stream| stream.channel = 1);
    assert_eq!(check_ten(&schedules), Err(Violation::Unmatched { at: place(1, 1, 0), peer: Rank(2) }));
    schedules[2].stream(0, |stream| stream.channel = 8);
    assert_eq!(check_ten(&schedules), Err(Violation::NoSuchChannel { at: place(2, 0, 0), channel: 8 }));

    let mut schedules = chain();
    schedules[1] = schedules[1].clone().with(Send, 2, &[]);
    assert_eq!(check_ten(&schedules), Err(Violation::SameStream { at: place(1, 2, 0), other: 1 }));

    for peer in [1, 3] {
        let mut schedules = chain();
        schedules[1].stream(1, |stream| stream.peer = Rank(peer));
        assert_eq!(
            check_ten(&schedules),
            Err(Violation::NoSuchPeer { at: place(1, 1, 0), peer: Rank(peer) })
        );
    }
}

/// An allgather of a byte by two ranks on a node, of which each has to wait for its own to be taken before it takes the other's if `is_in_turn`.
fn exchange_in_memory(fabric: Fabric, is_in_turn: bool) -> Vec<Listed> {
    let of = |rank: u32| {
        let (mut list, other) = (Listed::default(), Rank(1 - rank));
        let readers = vec![other].into();
        let own = Action::Publish(Slice::input(0..1));
        let lane = list.single(Kind::Publish { fabric, channel: 0, readers }, own, After::Start);
        let after = if is_in_turn { After::Steps { lane, count: 1 } } else { After::Start };
        let to = Slice::output(other.index() as u64..other.index() as u64 + 1);
        list.single(Kind::Fetch { fabric, channel: 0, writer: other }, Action::Fetch { at: 0, to }, after);
        let (from, to) = (Slice::input(0..1), Slice::output(rank.into()..u64::from(rank) + 1));
        list.single(Kind::Local, Action::Copy { from, to }, After::Start);
        list
    };
    vec![of(0), of(1)]
}

/// Where data is read by address, a writer's step lasts until its readers have it; a cell keeps it for them.
#[test]
fn what_is_published_lasts_until_it_is_read() {
    let call = Call::new(Collective::Allgather, 2, Rank(0), Bytes(1));
    let checked = |fabric, is_in_turn| check(&exchange_in_memory(fabric, is_in_turn), &call);
    assert!(checked(Fabric::Shared, false).is_ok());
    assert!(matches!(checked(Fabric::Shared, true), Err(Violation::Deadlock { .. })));
    assert!(checked(Fabric::Cell, true).is_ok());
}

/// A barrier of two ranks on a node, in whose memory each publishes a byte; of which the second one may not look at the first one's.
#[test]
fn a_barrier_in_memory_is_proved_by_what_is_fetched() {
    let of = |rank: u32, looks: bool| {
        let (mut list, other) = (Listed::default(), Rank(1 - rank));
        list.set_scratch_bytes(2);
        let (fabric, readers) = (Fabric::Shared, vec![other].into());
        let own = Action::Publish(Slice::scratch(0..1));
        list.single(Kind::Publish { fabric, channel: 0, readers }, own, After::Start);
        let lane = list.lane(Kind::Fetch { fabric, channel: 0, writer: other });
        if looks {
            list.add(lane, Action::Fetch { at: 0, to: Slice::scratch(1..2) }, After::Start);
        }
        list
    };
    let call = Call::new(Collective::Barrier, 2, Rank(0), Bytes(0));
    assert!(check(&[of(0, true), of(1, true)], &call).is_ok());
    let (rank, other) = (Rank(1), Rank(0));
    assert_eq!(check(&[of(0, true), of(1, false)], &call), Err(Violation::NotAwaited { rank, other }));
}
