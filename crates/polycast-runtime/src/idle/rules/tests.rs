use proptest::prelude::*;

use super::*;

const ALONE: Neighbours = Neighbours { on_this_kernel: 1, on_this_host: 1 };

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// A wait for a message that comes after `after`, by way of a socket or not. How late it is noticed, and for how long the rank was awake.
fn wait(rules: &mut Rules, start: Duration, after: Duration, is_by_socket: bool) -> (Duration, Duration) {
    let (there, test) = (start + after, micros(1));
    let (mut now, mut awake) = (start, Duration::ZERO);
    let mut received = false;
    loop {
        if received {
            rules.found();
            return (now - there, awake);
        }
        received = now >= there;
        (now, awake) = (now + test, awake + test);
        match rules.nothing(now, false) {
            Rest::None => {}
            Rest::Spin | Rest::GiveWay => (now, awake) = (now + test, awake + test),
            Rest::Look => rules.looked(is_by_socket && now >= there && !received),
            Rest::Pause(pause) => now += pause,
            Rest::Sleep(longest) => {
                let told = is_by_socket && !received && there <= now + longest;
                now = if told { now.max(there) } else { now + longest };
                rules.slept(if told { SleepEnd::Told } else { SleepEnd::TimeIsUp });
            }
        }
    }
}

#[test]
fn a_rank_with_a_processor_of_its_own_is_awake_for_a_millisecond() {
    let mut rules = Rules::new(ALONE, 1);
    assert_eq!(rules.nothing(micros(0), false), Rest::None);
    assert_eq!(rules.nothing(micros(1), false), Rest::Spin);
    assert_eq!(rules.nothing(micros(60), false), Rest::GiveWay);
    assert_eq!(rules.nothing(micros(900), false), Rest::None, "two tests say that nothing is there");
    assert_eq!(rules.nothing(micros(900), false), Rest::GiveWay);
    assert_eq!(rules.nothing(micros(1100), false), Rest::None);
    assert_eq!(rules.nothing(micros(1100), false), Rest::Look);
    rules.looked(false);
    assert_eq!(rules.nothing(micros(1100), false), Rest::Sleep(micros(1100) / 8));
}

#[test]
fn ranks_that_outnumber_processors_give_way_sooner() {
    let crowd = |ranks| Rules::new(Neighbours { on_this_kernel: ranks, on_this_host: 1 }, 2);
    assert!(!crowd(2).is_crowded());
    for (ranks, awake) in [(4, 500), (16, 125), (64, 31)] {
        let mut rules = crowd(ranks);
        assert!(rules.is_crowded());
        assert_eq!(rules.rest(micros(0)), Rest::GiveWay, "it never spins");
        assert_eq!(rules.rest(micros(awake - 1)), Rest::GiveWay, "{ranks} ranks");
        assert!(matches!(rules.rest(micros(awake + 1)), Rest::Sleep(_)), "{ranks} ranks");
    }
}

#[test]
fn packets_of_one_message_cost_few_wake_ups() {
    let mut rules = Rules::new(Neighbours { on_this_kernel: 1000, on_this_host: 1 }, 1);
    rules.rest(micros(0));
    let pauses = [100, 200, 300, 400, 500, 600].map(|now| {
        let rest = rules.rest(micros(now));
        rules.slept(SleepEnd::Told);
        if let Rest::Pause(pause) = rest { pause } else { Duration::ZERO }
    });
    assert_eq!(pauses, [0, 0, 25, 50, 100, 100].map(micros), "the first packet is not waited for");
    assert!(matches!(rules.rest(micros(600)), Rest::Pause(_)));
    assert!(matches!(rules.rest(micros(600)), Rest::Sleep(_)), "no pause follows another");
    rules.slept(SleepEnd::Told);
    assert_eq!(
        rules.rest(micros(30_300)),
        Rest::Pause(micros(30_000) / 64),
        "it has come for 30 ms, since 300 us"
    );
}

/// Tests and looks at the sockets stand between wake-ups and pauses.
#[test]
fn packets_of_a_message_of_mpi_cost_few_wake_ups_too() {
    let mut rules = Rules::new(Neighbours { on_this_kernel: 1000, on_this_host: 1 }, 1);
    let mut now = micros(0);
    let mut next = |rules: &mut Rules| loop {
        now += micros(100);
        match rules.nothing(now, false) {
            Rest::None | Rest::GiveWay => {}
            Rest::Look => rules.looked(false),
            rest => return rest,
        }
    };
    for _ in 0..2 {
        assert!(matches!(next(&mut rules), Rest::Sleep(_)));
        rules.slept(SleepEnd::Told);
    }
    assert_eq!(next(&mut rules), Rest::Pause(FIRST_PAUSE));
    assert!(matches!(next(&mut rules), Rest::Sleep(_)));
}

#[test]
fn sleeps_that_nothing_ends_are_given_up_where_processors_are_free() {
    let mut rules = Rules::new(ALONE, 1);
    let after = Duration::from_millis(8);
    for message in 0..10 {
        let (late, _) = wait(&mut rules, Duration::from_secs(message), after, false);
        if message >= 3 {
            assert!(late <= micros(5), "message {message} was noticed {late:?} late");
        }
    }
    // Where sockets tell after all, that is learned, too.
    for message in 10..14 {
        wait(&mut rules, Duration::from_secs(message), Duration::from_millis(30), true);
    }
    let (late, awake) = wait(&mut rules, Duration::from_secs(20), Duration::from_millis(30), true);
    assert!(late <= micros(5) && awake < Duration::from_millis(2), "{late:?} late, awake for {awake:?}");
}

proptest! {
    /// Whatever it is that messages come through, no wait is longer than it must be by more than an eighth, or the millisecond of
    /// a sleep that was always told before.
    #[test]
    fn no_message_is_noticed_late(
        waits in prop::collection::vec((1u64..1_000_000, any::<bool>()), 1..40),
        ranks in 1usize..100,
        has_neighbours in any::<bool>(),
    ) {
        let neighbours = Neighbours { on_this_kernel: ranks, on_this_host: 1 + usize::from(has_neighbours) };
        let mut rules = Rules::new(neighbours, 4);
        let mut start = Duration::ZERO;
        for (after, is_by_socket) in waits {
            let after = micros(after);
            let (late, awake) = wait(&mut rules, start, after, is_by_socket);
            let most = if is_by_socket { micros(10) } else { (after / 8).max(SHORTEST_SLEEP_TOLD).min(LONGEST_SLEEP) };
            prop_assert!(late <= most + micros(10), "{late:?} after {after:?}");
            prop_assert!(awake <= AWAKE_UNTOLD + after / 10, "awake for {awake:?} of {after:?}");
            start += after + late + micros(1);
        }
    }

    /// The same answers without a clock: only differences of times count.
    #[test]
    fn rules_know_no_time_of_day(begin in 0u64..1 << 40, steps in prop::collection::vec(0u64..3000, 1..100)) {
        let of = |begin: Duration| {
            let (mut rules, mut now) = (Rules::new(ALONE, 1), begin);
            steps.iter().map(|step| { now += micros(*step); rules.nothing(now, false) }).collect::<Vec<_>>()
        };
        prop_assert_eq!(of(Duration::ZERO), of(micros(begin)));
    }
}

/// What to do about a message or memory when tests and a look have found nothing.
fn either(rules: &mut Rules, now: Duration) -> Rest {
    std::iter::from_fn(|| Some(rules.nothing(now, true)))
        .find(|rest| !matches!(rest, Rest::None | Rest::Look))
        .expect("it goes on for ever")
}

/// After messages that were told sleeps are a millisecond at the least, for sockets end them. Nothing ends those of a rank that waits for memory.
#[test]
fn what_sockets_have_told_says_nothing_of_memory() {
    let mut rules = Rules::new(Neighbours { on_this_kernel: 32, on_this_host: 4 }, 2);
    for message in 1..=MESSAGES_UNTIL_BELIEVED {
        wait(&mut rules, micros(100_000) * message, micros(500), true);
    }
    let start = micros(1_000_000);
    assert_eq!(rules.rest(start), Rest::GiveWay);
    assert_eq!(rules.rest(start + micros(100)), Rest::Sleep(SHORTEST_SLEEP_TOLD));
    assert_eq!(either(&mut rules, start + micros(100)), Rest::Sleep(SHORTEST_SLEEP), "it may be either");
    assert_eq!(rules.untold(start + micros(100)), Rest::GiveWay);
    assert_eq!(rules.untold(start + micros(1900)), Rest::GiveWay);
    assert_eq!(rules.untold(start + micros(4000)), Rest::Sleep(micros(500)));
    assert_eq!(rules.untold(start + micros(80_000)), Rest::Sleep(LONGEST_SLEEP_WITH_NEIGHBOURS));
}

/// Its MPI takes out what comes through memory only when it is asked.
#[test]
fn a_rank_with_a_processor_does_not_sleep_where_messages_may_come_through_memory() {
    let alone = Neighbours { on_this_kernel: 2, on_this_host: 2 };
    let crowded = Neighbours { on_this_kernel: 3, on_this_host: 3 };
    for (neighbours, then) in [(alone, Rest::GiveWay), (crowded, Rest::Sleep(LONGEST_SLEEP_WITH_NEIGHBOURS))]
    {
        let mut rules = Rules::new(neighbours, 2);
        for rest in [Rules::untold, Rules::until_woken, either] {
            rest(&mut rules, micros(0));
            assert_eq!(rest(&mut rules, micros(10_000_000)), then);
            rules.found();
        }
    }
}
