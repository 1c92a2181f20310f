//! In tests, the chooser of polycast-core beside what decides: for each call it must want the exchanges that were carried out, in their order, and
//! answer the same.

use std::cell::RefCell;
use std::collections::VecDeque;

use polycast_core::policy::chooser::{Answer, Chooser, Exchange, Next, Request, When};
use polycast_core::policy::Choice;

use crate::call::{Ahead, Decision, Wanted};

thread_local! {
    static ANSWERS: RefCell<VecDeque<Answer>> = const { RefCell::new(VecDeque::new()) };
}

/// Notes what the ranks have learned in an exchange.
pub fn note(answer: impl FnOnce() -> Answer) {
    ANSWERS.with_borrow_mut(|answers| answers.push_back(answer()));
}

/// Forgets what was noted for something else than a call.
pub fn begin() {
    ANSWERS.with_borrow_mut(VecDeque::clear);
}

fn request(wanted: &Wanted, ahead: Option<Ahead>) -> Request {
    Request {
        call: wanted.of,
        is_root: false,
        may_be_compared: wanted.may_be_compared,
        is_ordered: wanted.is_ordered,
        is_own: wanted.is_own,
        when: match ahead {
            None => When::Waited,
            Some(Ahead::Local) => When::Ahead,
            Some(Ahead::MayWait) => When::Prepared,
        },
    }
}

/// Asks the chooser, and compares.
pub fn check(chooser: &mut Chooser, wanted: &Wanted, ahead: Option<Ahead>, decision: &Decision) {
    let request = request(wanted, ahead);
    let found = loop {
        match chooser.next(&request) {
            Next::First(exchange) => {
                let mut next = || ANSWERS.with_borrow_mut(VecDeque::pop_front);
                let Some(mut answer) = next() else {
                    if *decision == Decision::UNKNOWN {
                        chooser.fail();
                        continue;
                    }
                    panic!("{exchange:?} was not carried out for {request:?}: {decision:?}");
                };
                while exchange == Exchange::Measure && !matches!(answer, Answer::Measured(_)) {
                    chooser.heard(&request, answer);
                    match next() {
                        Some(more) => answer = more,
                        None => {
                            chooser.fail();
                            return;
                        }
                    }
                }
                let is_it = matches!(
                    (exchange, &answer),
                    (Exchange::Open(_), Answer::Opened(_))
                        | (Exchange::Multicast, Answer::Multicast(_))
                        | (Exchange::Look, Answer::Look { .. })
                        | (Exchange::Memory, Answer::Memory(_))
                        | (Exchange::Sum, Answer::Sums(_))
                        | (Exchange::Hear, Answer::Heard { .. })
                        | (Exchange::Measure, Answer::Measured(_))
                );
                assert!(is_it, "{exchange:?} is wanted for {request:?}, {answer:?} was found");
                chooser.heard(&request, answer);
            }
            other => break other,
        }
    };
    let more = ANSWERS.with_borrow(VecDeque::len);
    if *decision == Decision::UNKNOWN {
        chooser.fail();
        return;
    }
    assert_eq!(more, 0, "exchanges that the chooser does not want for {request:?}");
    let choice = match found {
        Next::Leave { .. } => Choice::Stock,
        Next::Serve { chosen, .. } => chosen.choice,
        other => panic!("{other:?} for {request:?}, not {decision:?}"),
    };
    let expected = match decision {
        Decision::Left | Decision::LeftAndTimed => Choice::Stock,
        Decision::Served(chosen) => chosen.choice,
    };
    assert_eq!(choice, expected, "{request:?}");
}
