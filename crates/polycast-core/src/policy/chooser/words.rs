//! What a chooser is asked, what it answers, and what the ranks tell each other for it.

use std::sync::Arc;

use super::super::trials::{Finding, Recalled, Sameness, Sample, Trials};
use super::super::{By, Call, Capabilities, Choice, Epoch, Policy};

/// A call that asks who serves it. All ranks describe it alike, but for who is its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation and its bytes.
    pub call: Call,
    /// True on the call's root; without meaning where there is none.
    pub is_root: bool,
    /// True if the call may be served in different ways from one call to the next: the result is
    /// the same to the last bit. Never true of a [sum](Call::is_sum).
    pub may_be_compared: bool,
    /// True if contributions must be combined in the order of ranks.
    pub is_ordered: bool,
    /// True if contributions are combined by an operation that the program defined itself.
    pub is_own: bool,
    /// The way in which the program waits for the call.
    pub when: Waiting,
}

/// The way in which the program waits for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// The call returns when it is done.
    Waited,
    /// The call is only started, on this rank alone: nothing may be exchanged for it.
    Ahead,
    /// The call is prepared and started later: all ranks come, and may wait for each other.
    Prepared,
}

/// The reason why a call is served as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The rules alone decided.
    Rules(By),
    /// Ways are being compared, and it is this one's turn.
    Compared,
    /// The way was faster when ways were compared.
    Faster,
    /// The call combines long contributions by the program's own operation.
    OwnOperation,
    /// The call may need more memory than some rank gets.
    LittleMemory,
    /// The call is only started: whether sums are served is found out by the ranks together, and
    /// must be known before the first one.
    SumAhead,
}

/// A chosen way to serve a call, with the call's epoch. The epoch is kept because other ranks may
/// have been called with another size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// The way.
    pub choice: Choice,
    /// The stretch of calls in which this one lies.
    pub epoch: Epoch,
    /// True if the program does not wait for the call, so its duration says nothing about the way.
    pub is_ahead: bool,
}

/// What a chooser answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhoServes {
    /// The MPI below serves the call.
    Leave {
        /// The reason; `None` where nobody reads it.
        why: Option<Why>,
        /// The sample that the call's time is for, if it counts.
        sample: Option<Sample>,
    },
    /// The way serves the call.
    Serve {
        /// The way.
        chosen: Chosen,
        /// The reason; `None` where nobody reads it.
        why: Option<Why>,
        /// The sample that the call's time is for, if it counts.
        sample: Option<Sample>,
    },
    /// The ranks must learn something first: its answer is to be [heard](super::Chooser::heard),
    /// and then the chooser is asked again.
    First(RankExchange),
    /// This rank does not know what the others do, so its call gives the error.
    Broken,
}

/// Something that the ranks of a communicator learn together. No rank asks for one that not all ask
/// for at the same call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RankExchange {
    /// They open the communicator: [`Opened`].
    Open(Opening),
    /// They set multicast up: [`Answer::Multicast`].
    Multicast,
    /// They see whether multicast has died, when all calls under way are over: [`Answer::Look`].
    Look,
    /// They set up the memory that those of a node share: [`Answer::Memory`].
    Memory,
    /// They add up their [times](super::Chooser::times): [`Answer::Sums`].
    Sum,
    /// They hear what rank 0 knows of ways: [`Answer::Heard`].
    Hear,
    /// They measure ways apart from the program's calls: [`Answer::Measured`].
    Measure,
}

/// What the ranks learn when they open a communicator: a number for its messages, if one is needed;
/// beside it what the network between them is like, and what rank 0 knows of trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Opening {
    /// The call that needs it, with its epoch; `None`: whatever the call is, a number is needed.
    pub(super) call: Option<(Call, Epoch)>,
    /// True if ways to serve the call are to be measured.
    pub(super) tunes: bool,
    /// True if a group will be needed, where there is no call to tell.
    pub(super) is_by_multicast: bool,
    /// True if the network decides, and nobody has measured it.
    pub asks: bool,
    /// True if rank 0 tells what it knows of trials.
    pub hears: bool,
    /// The call, if calls before were left to the MPI: ranks that give another size may leave it, too.
    pub late: Option<Call>,
}

impl Opening {
    /// An opening whatever the call is.
    pub(super) fn of_any(policy: &Policy, is_by_multicast: bool) -> Opening {
        Opening { call: None, tunes: false, is_by_multicast, asks: policy.asks(), hears: false, late: None }
    }

    /// True if a group will be needed by what `policy` says. If all leaders have one, nothing more
    /// is exchanged for it.
    pub fn is_by_multicast(&self, policy: &Policy) -> bool {
        self.choice(policy).map_or(self.is_by_multicast, Choice::is_by_multicast)
    }

    /// True if a number is needed by what `policy` says, which all ranks know.
    pub fn wants_number(&self, policy: &Policy) -> bool {
        let is_challenged =
            |(call, epoch): (Call, Epoch)| policy.for_sizes_of(&call, epoch).is_challenged(Capabilities::ALL);
        self.tunes
            || self.choice(policy).is_none_or(|choice| choice != Choice::Stock)
            || (self.hears && self.call.is_some_and(is_challenged))
    }

    fn choice(&self, policy: &Policy) -> Option<Choice> {
        self.call.map(|(call, epoch)| policy.choose(&call, Capabilities::ALL, epoch).choice)
    }
}

/// The outcome of an opening.
#[derive(Debug)]
pub enum Opened {
    /// Some rank cannot serve, or there is no number left: the MPI serves all calls.
    Refused,
    /// All ranks know the network, and on such a one the MPI serves the call.
    NotWanted {
        /// The rules on this network.
        policy: Arc<Policy>,
    },
    /// The ranks have a number.
    Number(Numbered),
}

/// What a communicator has that has a number.
#[derive(Debug)]
pub struct Numbered {
    /// The rules on the network that the ranks have found, if they had to know it.
    pub policy: Arc<Policy>,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// True if some node holds several of them.
    pub shares_nodes: bool,
    /// True if multicast works already: the group of another communicator serves.
    pub has_multicast: bool,
    /// The trials that go on with rank 0's words, if these were heard.
    pub trials: Option<Trials>,
}

/// How soon multicast is tried again where it does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Not at all: the reason stays.
    Never,
    /// As soon as it makes sense.
    Soon,
    /// Later than the last time: these nodes have tried a short while ago.
    Later,
}

/// What the ranks have learned by an [`RankExchange`]; alike on all of them.
#[derive(Debug)]
pub enum Answer {
    /// They have opened the communicator, or not.
    Opened(Opened),
    /// Multicast works, or is to be tried again.
    Multicast(Result<(), Again>),
    /// Whether multicast still works.
    Look {
        /// True if some root has told the ranks to leave it.
        has_died: bool,
    },
    /// Whether each node of several ranks has memory that they share.
    Memory(bool),
    /// The sums of their times.
    Sums(Box<super::super::trials::Sums>),
    /// What rank 0 knows.
    Heard {
        /// Trials that go on with its words.
        trials: Trials,
        /// What was found by measuring apart from the program's calls; of several findings about the
        /// same calls the first counts.
        measured: Vec<Recalled>,
    },
    /// What was found by measuring.
    Measured {
        /// The calls.
        of: Sameness,
        /// The finding; `None`: there was no time, or nothing to be found.
        found: Option<Recalled>,
    },
}

/// What a trial has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialOutcome {
    /// The finding.
    pub finding: Finding,
    /// The ways that were compared; none if they are known on other communicators only.
    pub ways: Vec<Choice>,
}
