//! What a rank does while it waits for messages: what [`rules`] say, on MPI's [`sockets`].

mod rules;
mod sockets;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use self::rules::{Ended, Rest, Rules};
pub use self::rules::{Neighbours, TESTS_UNTIL_NOTHING};
pub use self::sockets::local_addresses;
use self::sockets::{MAX_BLIND_SLEEP, Wake};
use crate::machine;

/// What ends a rest beside MPI's sockets.
pub struct Watch<'a> {
    pub socket: BorrowedFd<'a>,
    pub events: PollFlags,
    pub at_most: Option<Duration>,
    /// Where the descriptor tells only of what it was armed for.
    pub before_sleep: Option<&'a dyn Arm>,
}

/// See [`polycast_net::Datagrams::arm`].
pub trait Arm {
    /// True if something is there already.
    fn arm(&self) -> bool;
}

/// How a rank waits. One per communicator.
pub struct Idle {
    rules: Rules,
    mpi_gives_way: bool,
    made: Instant,
}

impl Idle {
    /// For a rank with these neighbours, whose MPI gives way itself if `mpi_gives_way`.
    pub fn new(neighbours: Neighbours, mpi_gives_way: bool) -> Idle {
        sockets::open();
        Idle { rules: Rules::new(neighbours, machine::processors()), mpi_gives_way, made: machine::now() }
    }

    /// A test found something.
    pub fn progress(&mut self) {
        self.rules.found();
    }

    /// Something came that MPI does not know of.
    pub fn progress_elsewhere(&mut self) {
        self.rules.found_elsewhere();
    }

    /// A test found nothing.
    pub fn wait(&mut self, watch: Option<Watch<'_>>, has_sends: bool) {
        let rest = self.rules.nothing(machine::now() - self.made);
        self.follow(rest, watch, has_sends);
    }

    /// The same where what is waited for comes through memory: MPI does not give way, and no socket tells.
    pub fn wait_for_memory(&mut self) {
        match self.rules.untold(machine::now() - self.made) {
            Rest::Spin => machine::spin(),
            Rest::Sleep(time) => machine::sleep(time),
            _ => machine::give_way(),
        }
    }

    /// The same where who comes wakes those who `sleep`. Whether this rank has slept.
    pub fn wait_to_be_woken(&mut self, sleep: impl FnOnce(Duration)) -> bool {
        match self.rules.until_woken(machine::now() - self.made) {
            Rest::Spin => machine::spin(),
            Rest::Sleep(longest) => {
                machine::sleep_by(longest, sleep);
                return true;
            }
            _ => machine::give_way(),
        }
        false
    }

    /// Enough tests found nothing, or there was no reason for one. A sleep ends also by what `watch` says. False if only its socket
    /// ended it: there is no reason to ask MPI.
    pub fn rest(&mut self, watch: Option<Watch<'_>>, has_sends: bool) -> bool {
        let rest = self.rules.rest(machine::now() - self.made);
        self.follow(rest, watch, has_sends)
    }

    /// Ranks outnumber processors: who wakes less often leaves more to the others.
    pub fn is_crowded(&self) -> bool {
        self.rules.is_crowded()
    }

    fn follow(&mut self, rest: Rest, watch: Option<Watch<'_>>, has_sends: bool) -> bool {
        match rest {
            Rest::None => {}
            // Once more would only let others go first twice.
            Rest::GiveWay if self.mpi_gives_way => {}
            Rest::Spin => machine::spin(),
            Rest::GiveWay => machine::give_way(),
            Rest::Look => self.rules.looked(sockets::have_something()),
            Rest::Pause(pause) => machine::sleep(pause),
            Rest::Sleep(longest) => return self.sleep(watch, longest, has_sends),
        }
        true
    }

    fn sleep(&mut self, watch: Option<Watch<'_>>, longest: Duration, has_sends: bool) -> bool {
        if watch.as_ref().and_then(|watch| watch.before_sleep).is_some_and(Arm::arm) {
            self.rules.slept(Ended::Elsewhere);
            return false;
        }
        let at_most = watch.as_ref().and_then(|watch| watch.at_most).unwrap_or(Duration::MAX);
        let own = watch.map(|watch| (watch.socket, watch.events));
        let wake = sockets::wait(own, longest.min(at_most), has_sends);
        if let Wake::NoSockets = wake {
            machine::sleep(longest.min(at_most).min(MAX_BLIND_SLEEP));
        }
        self.rules.slept(match wake {
            Wake::Ready => Ended::Told,
            Wake::OwnReady => Ended::Elsewhere,
            Wake::TimeIsUp | Wake::NoSockets if at_most < longest => Ended::Elsewhere,
            Wake::TimeIsUp | Wake::NoSockets => Ended::TimeIsUp,
        });
        !matches!(wake, Wake::OwnReady)
    }
}
