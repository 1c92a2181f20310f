use polycast_units::Nanos;

/// The most that an answer counts as: one that was late for another reason says little of the next.
const MAX_ANSWER_TIME: Nanos = Nanos::from_micros(32_000);
/// The newest answer's part in the mean is one in this many.
const NEWEST: u64 = 8;

/// The mean time of the ring's answers, over broadcasts: where ranks outnumber processors, a
/// neighbour may be away for longer than any network needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerTime {
    mean: Nanos,
    asked_at: Option<Nanos>,
}

impl AnswerTime {
    /// The mean time of an answer, in which the latest answers weigh most.
    pub fn mean(&self) -> Nanos {
        self.mean
    }

    /// The predecessor has been asked by a message.
    pub fn asked(&mut self, now: Nanos) {
        self.asked_at.get_or_insert(now);
    }

    /// The predecessor has answered with a message with fragments.
    pub fn answered(&mut self, now: Nanos) {
        if let Some(asked) = self.asked_at.take() {
            let newest = (now - asked).min(MAX_ANSWER_TIME);
            self.mean = Nanos((self.mean.0 * (NEWEST - 1) + newest.0) / NEWEST);
        }
    }

    /// A broadcast begins, so an earlier question is not timed any more.
    pub fn begin(&mut self) {
        self.asked_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_that_is_late_says_little() {
        let mut answers = AnswerTime::default();
        let mut answer_after = |micros| {
            answers.begin();
            answers.asked(Nanos(0));
            answers.answered(Nanos::from_micros(micros));
            answers.mean().0 / 1000
        };
        (0..100).for_each(|_| {
            answer_after(1000);
        });
        assert!((980..=1000).contains(&answer_after(1000)));
        assert!(answer_after(200_000) < 5000);
    }
}
