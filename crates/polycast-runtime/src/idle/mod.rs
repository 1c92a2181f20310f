//! Waiting of a rank for messages: as [`rules`] say, on MPI's [`sockets`].

mod rules;
mod sockets;

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

pub use self::rules::{Neighbours, TESTS_UNTIL_NOTHING};
use self::rules::{Rest, Rules, SleepEnd};
pub use self::sockets::local_addresses;
use self::sockets::{MAX_BLIND_SLEEP, Wake};
use crate::machine;
use crate::of_process::of_process;
use crate::settings::{Waiting, waiting};

/// Events that end a rest, beside MPI's sockets.
pub struct Watch<'a> {
    pub socket: BorrowedFd<'a>,
    pub events: PollFlags,
    pub at_most: Option<Duration>,
    /// Arms the descriptor before a sleep, if it tells only of what it was armed for.
    pub before_sleep: Option<&'a dyn Arm>,
}

/// Arming before a sleep; see [`polycast_net::Datagrams::arm`].
pub trait Arm {
    /// Arms; true if something is there already.
    fn arm(&self) -> bool;
}

of_process! {
    static IS_ONE_SIDED: AtomicBool = AtomicBool::new(false);
}

/// Notes that the program uses one-sided communication: from now on no rank of this process sleeps
/// while it waits. MPI does such communication on a rank only while the rank lets it work, and it
/// may be for this one at any time.
pub fn expect_one_sided() {
    IS_ONE_SIDED.with(|is_one_sided| is_one_sided.store(true, Ordering::Relaxed));
}

/// True if somebody may want MPI to work here at any time.
pub fn is_one_sided() -> bool {
    IS_ONE_SIDED.with(|is_one_sided| is_one_sided.load(Ordering::Relaxed))
}

/// State of a rank's waiting. One per communicator.
pub struct Idle {
    rules: Rules,
    wanted: Option<Waiting>,
    mpi_gives_way: bool,
    made: Instant,
    has_slept: bool,
}

impl Idle {
    /// The waiting of a rank with these neighbours, whose MPI gives way itself if `mpi_gives_way`.
    pub fn new(mut neighbours: Neighbours, mpi_gives_way: bool) -> Idle {
        sockets::open();
        let (wanted, processors) = (waiting(), machine::processors());
        if wanted == Some(Waiting::Sleep) {
            neighbours.on_this_kernel = neighbours.on_this_kernel.max(2 * processors);
        }
        let rules = Rules::new(neighbours, processors);
        Idle { rules, wanted, mpi_gives_way, made: machine::now(), has_slept: false }
    }

    /// Changes a rest to what the user asks for, who has the last word.
    fn as_wanted(&self, rest: Rest) -> Rest {
        match (self.wanted, rest) {
            (Some(Waiting::Spin), Rest::GiveWay | Rest::Pause(_) | Rest::Sleep(_)) => Rest::Spin,
            (Some(Waiting::GiveWay), Rest::Spin | Rest::Pause(_) | Rest::Sleep(_)) => Rest::GiveWay,
            _ => rest,
        }
    }

    /// Notes that a test found something.
    pub fn progress(&mut self) {
        self.rules.found();
    }

    /// Notes that something came that MPI does not know of.
    pub fn progress_elsewhere(&mut self) {
        self.rules.found_elsewhere();
    }

    /// Rests after a test that found nothing. `or_memory`: what is waited for may come through
    /// memory, too.
    pub fn wait(&mut self, watch: Option<Watch<'_>>, has_sends: bool, or_memory: bool) {
        let rest = self.rules.nothing(machine::now() - self.made, or_memory);
        self.follow(rest, watch, has_sends);
    }

    /// Rests while data is to come through memory: MPI does not give way, and no socket tells.
    pub fn wait_for_memory(&mut self) {
        let rest = self.rules.untold(machine::now() - self.made);
        match self.as_wanted(rest) {
            Rest::Spin => machine::spin(),
            Rest::Sleep(time) if !is_one_sided() => {
                machine::sleep(time);
                self.has_slept = true;
            }
            _ => machine::give_way(),
        }
    }

    /// True if this rank has slept since the last time that this was asked.
    pub fn has_slept(&mut self) -> bool {
        std::mem::take(&mut self.has_slept)
    }

    /// Rests while data is to come through memory from a rank that wakes those in `sleep`.
    pub fn wait_to_be_woken(&mut self, sleep: impl FnOnce(Duration)) {
        let rest = self.rules.until_woken(machine::now() - self.made);
        match self.as_wanted(rest) {
            Rest::Spin => machine::spin(),
            Rest::Sleep(longest) if !is_one_sided() => {
                machine::sleep_by(longest, sleep);
                self.has_slept = true;
            }
            _ => machine::give_way(),
        }
    }

    /// Rests after enough tests found nothing, or if there was no reason for one. A sleep ends also
    /// by what `watch` says. False if only its socket ended it: there is no reason to ask MPI.
    pub fn rest(&mut self, watch: Option<Watch<'_>>, has_sends: bool) -> bool {
        let rest = self.rules.rest(machine::now() - self.made);
        self.follow(rest, watch, has_sends)
    }

    /// True if ranks outnumber processors: a rank that wakes less often leaves more to the others.
    pub fn is_crowded(&self) -> bool {
        self.rules.is_crowded() && self.wanted.is_none_or(|wanted| wanted == Waiting::Sleep)
    }

    fn follow(&mut self, rest: Rest, watch: Option<Watch<'_>>, has_sends: bool) -> bool {
        match self.as_wanted(rest) {
            Rest::None => {}
            // Once more would only let others go first twice.
            Rest::GiveWay if self.mpi_gives_way => {}
            Rest::Spin => machine::spin(),
            Rest::GiveWay => machine::give_way(),
            Rest::Sleep(_) | Rest::Pause(_) if is_one_sided() => machine::give_way(),
            Rest::Look => self.rules.looked(sockets::have_something()),
            Rest::Pause(pause) => machine::sleep(pause),
            Rest::Sleep(longest) => return self.sleep(watch, longest, has_sends),
        }
        true
    }

    fn sleep(&mut self, watch: Option<Watch<'_>>, longest: Duration, has_sends: bool) -> bool {
        if watch.as_ref().and_then(|watch| watch.before_sleep).is_some_and(Arm::arm) {
            self.rules.slept(SleepEnd::Elsewhere);
            return false;
        }
        let at_most = watch.as_ref().and_then(|watch| watch.at_most).unwrap_or(Duration::MAX);
        let own = watch.map(|watch| (watch.socket, watch.events));
        let wake = sockets::wait(own, longest.min(at_most), has_sends);
        if let Wake::NoSockets = wake {
            machine::sleep(longest.min(at_most).min(MAX_BLIND_SLEEP));
        }
        self.has_slept = true;
        self.rules.slept(match wake {
            Wake::Ready => SleepEnd::Told,
            Wake::OwnReady => SleepEnd::Elsewhere,
            Wake::TimeIsUp | Wake::NoSockets if at_most < longest => SleepEnd::Elsewhere,
            Wake::TimeIsUp | Wake::NoSockets => SleepEnd::TimeIsUp,
        });
        !matches!(wake, Wake::OwnReady)
    }
}

#[cfg(test)]
mod tests {
    use polycast_core::variables::WAIT;

    use super::*;
    use crate::settings::configure;

    /// Longer than any rank waits awake.
    const LONG: Duration = Duration::from_millis(50);

    fn sleeps(idle: &mut Idle) -> bool {
        let mut waits = || {
            idle.wait_to_be_woken(|_| ());
            idle.has_slept()
        };
        let mut has_slept = waits();
        let began = Instant::now();
        while began.elapsed() < LONG && !has_slept {
            has_slept = waits();
        }
        // All the time may have gone by between two of them.
        has_slept || waits()
    }

    #[test]
    fn a_rank_waits_as_its_user_wants() {
        let with = |waiting: &str, ranks| {
            configure(WAIT, Some(waiting));
            let mut idle = Idle::new(Neighbours { on_this_kernel: ranks, on_this_host: ranks }, false);
            (sleeps(&mut idle), idle.is_crowded())
        };
        let (few, many) = (1, machine::processors() + 1);
        assert_eq!([with("no such word", few), with("", many)], [(false, false), (true, true)]);
        assert_eq!([with("spin", many), with("YIELD", many)], [(false, false); 2]);
        assert_eq!(with("sleep", few), (true, true));
    }

    #[test]
    fn who_may_be_wanted_at_any_time_does_not_sleep() {
        let ranks = machine::processors() + 1;
        let mut idle = Idle::new(Neighbours { on_this_kernel: ranks, on_this_host: ranks }, false);
        assert!(sleeps(&mut idle));
        expect_one_sided();
        assert!(!sleeps(&mut idle));
    }
}
