use super::{Evidence, Quartet};

/// The number of votes by which an answer must lead to hold.
const LEAD: usize = 2;

/// The most votes on a question. After them the majority holds, and a tie is a no: a link is not
/// claimed on doubtful grounds.
const MAX_ANSWERS: usize = 6;

/// Asks until an answer can be believed: single measurements are wrong now and then.
pub(super) struct Voters<Ask> {
    ask: Ask,
    pub answers: usize,
}

impl<Ask> Voters<Ask> {
    pub fn new(ask: Ask) -> Voters<Ask> {
        Voters { ask, answers: 0 }
    }
}

impl<E, Ask: FnMut(Quartet) -> Result<bool, E>> Voters<Ask> {
    /// Whether a link separates the quartet, and the answers.
    pub fn separated(&mut self, near: [usize; 2], far: [usize; 2]) -> Result<(bool, Evidence), E> {
        let mut evidence = Evidence::default();
        while evidence.yes.abs_diff(evidence.no) < LEAD && evidence.yes + evidence.no < MAX_ANSWERS {
            self.answers += 1;
            match (self.ask)(Quartet { near, far })? {
                true => evidence.yes += 1,
                false => evidence.no += 1,
            }
        }
        Ok((evidence.yes > evidence.no, evidence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vote(answers: &[bool]) -> (bool, Evidence, usize) {
        let mut answers = answers.iter();
        let mut voters = Voters::new(|_| Ok::<_, ()>(*answers.next().unwrap()));
        let (separated, evidence) = voters.separated([0, 1], [2, 3]).unwrap();
        (separated, evidence, voters.answers)
    }

    #[test]
    fn a_lead_of_two_decides_and_a_tie_is_a_no() {
        assert_eq!(vote(&[true, true]), (true, Evidence { yes: 2, no: 0 }, 2));
        assert_eq!(vote(&[true, false, false, false]), (false, Evidence { yes: 1, no: 3 }, 4));
        assert_eq!(vote(&[true, false, true, false, true, false]), (false, Evidence { yes: 3, no: 3 }, 6));
        assert!((Evidence { yes: 3, no: 1 }).confidence() == 0.75);
    }
}
