use polycast_units::Nanos;

/// An answer counts as this at most: one that was late for another reason says little of the next.
const MAX_ANSWER_TIME: Nanos = Nanos::from_micros(32_000);
/// The part of the newest in the mean.
const NEWEST: u64 = 8;

/// How long the ring's answers take, over broadcasts: where ranks outnumber processors, a neighbour may be away for longer than any network needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerTime {
    mean: Nanos,
    asked_at: Option<Nanos>,
}

impl AnswerTime {
    /// Of the last ones, mostly.
    pub fn mean(&self) -> Nanos {
        self.mean
    }

    /// The predecessor has been asked by a message.
    pub fn asked(&mut self, now: Nanos) {
        self.asked_at.get_or_insert(now);
    }

    /// A message with fragments has come from it.
    pub fn answered(&mut self, now: Nanos) {
        if let Some(asked) = self.asked_at.take() {
            let newest = (now - asked).min(MAX_ANSWER_TIME);
            self.mean = Nanos((self.mean.0 * (NEWEST - 1) + newest.0) / NEWEST);
        }
    }

    /// A broadcast begins.
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
