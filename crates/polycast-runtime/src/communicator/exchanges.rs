//! What the ranks learn together for a communicator that has a number: multicast, memory, and what they have timed.

use polycast_core::policy::Capabilities;
use polycast_core::policy::chooser::{Again, Answer, RankExchange, Request, TrialOutcome};
use polycast_core::policy::trials::{SUMS, TOLD};
use polycast_core::units::Rank;

use super::Communicator;
use super::progress::Listeners;
use super::serving::Serving;
use crate::abi::MpiError;
use crate::call::Failure;
use crate::reason::Reason;
use crate::report::{self, nanos};
use crate::trials::tell;
use crate::{machine, trials};

impl Communicator {
    /// Carries an exchange out, and takes what the ranks have learned by it. Collective.
    pub(super) fn learn(
        &mut self,
        exchange: RankExchange,
        request: &Request,
        root: Rank,
    ) -> Result<(), Failure> {
        let begun = machine::now();
        let answer = self.exchange(exchange, request, root)?;
        self.hear(answer);
        self.chooser.spent(exchange, nanos(machine::now() - begun));
        Ok(())
    }

    fn exchange(&mut self, exchange: RankExchange, request: &Request, root: Rank) -> Result<Answer, Failure> {
        if let RankExchange::Open(opening) = exchange {
            return self.open(&opening);
        }
        let Communicator { serving: Some(serving), log, chooser, door, .. } = self else {
            return Err(Failure::Internal);
        };
        serving.finish_all(&mut Listeners { log, chooser });
        Ok(match exchange {
            RankExchange::Open(_) => return Err(Failure::Internal),
            RankExchange::Multicast => serving.try_multicast()?,
            RankExchange::Look => Answer::Look { has_died: serving.leave_dead_multicast() },
            RankExchange::Memory => Answer::Memory(serving.try_memory()?),
            RankExchange::Sum => {
                let mut times = Box::<[u64; SUMS]>::new(chooser.times());
                door.sum(&mut *times)?;
                Answer::Sums(times)
            }
            RankExchange::Hear => self.hear_rank_0()?,
            RankExchange::Measure => self.measure(request, root)?,
        })
    }

    /// Tells the chooser what was learned, and the report and later communicators what trials have
    /// found by it.
    fn hear(&mut self, answer: Answer) {
        let Some(TrialOutcome { finding, ways }) = self.chooser.heard(answer) else { return };
        let Some(serving) = &self.serving else { return };
        let (shape, ledgers) = (serving.layout.shape, &serving.process.ledgers);
        let policy = self.chooser.policy().clone();
        self.chooser.trials_mut().into_iter().for_each(|trials| ledgers.learn(shape, &policy, trials));
        if ways.is_empty() {
            return;
        }
        if self.rank == Rank(0) {
            ledgers.keep(shape, &policy, &ways, &finding);
        }
        let times = ways.into_iter().zip(finding.nanos).collect();
        tell(finding.of, shape, times, finding.arm, trials::By::Trial);
    }

    /// Hears what rank 0 has learned on other communicators of this shape.
    fn hear_rank_0(&mut self) -> Result<Answer, Failure> {
        let Some(serving) = &self.serving else { return Err(Failure::Internal) };
        let (shape, policy, is_first) = (serving.layout.shape, self.chooser.policy(), self.rank == Rank(0));
        let ledgers = &serving.process.ledgers;
        let told = if is_first { trials::told(ledgers, shape, policy) } else { [0; TOLD] };
        let mut bytes = told.map(u64::to_le_bytes);
        self.door.broadcast(bytes.as_flattened_mut(), 0)?;
        let trials = ledgers.resumed(shape, policy, &bytes.map(u64::from_le_bytes));
        let mut measured = Vec::new();
        if serving.tuning_budget.is_some() {
            let mine = if is_first { ledgers.tuned(shape, policy) } else { String::new() };
            let lines = self.door.say_to_all(mine)?;
            let (known, is_new) = ledgers.tuned_elsewhere(shape, policy, &lines);
            for recalled in
                known.iter().zip(is_new).filter(|(_, is_new)| *is_new && is_first).map(|(of, _)| of)
            {
                tell(recalled.of, shape, recalled.times.clone(), recalled.arm, trials::By::EarlierJob);
            }
            measured = known;
        }
        Ok(Answer::Heard { trials, measured })
    }

    /// True if the communicator has what `needs` names, which is tried the first time. Collective if
    /// there is something to try.
    pub(crate) fn provides(&mut self, needs: Capabilities, request: &Request) -> Result<bool, Failure> {
        loop {
            match self.chooser.provides(needs) {
                Ok(has) => return Ok(has),
                Err(exchange) => self.learn(exchange, request, Rank(0))?,
            }
        }
    }
}

impl Serving {
    fn try_multicast(&mut self) -> Result<Answer, MpiError> {
        let outcome = self.set_multicast_up()?;
        let is_first_try = !std::mem::replace(&mut self.has_tried_multicast, true);
        Ok(Answer::Multicast(match outcome {
            Ok(seat) => {
                self.begin_multicast(seat);
                Ok(())
            }
            Err(unavailable) => {
                if is_first_try {
                    report::fell_back(unavailable.to_string());
                }
                self.warn_of(unavailable);
                Err(match unavailable.reason {
                    _ if !unavailable.may_pass() => Again::Never,
                    Reason::TriedBefore => Again::Later,
                    _ => Again::Soon,
                })
            }
        }))
    }
}
