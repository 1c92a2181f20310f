//! What is broken on purpose is seen: else the checks of the other tests would say nothing.

use polycast_core::units::Nanos;
use polycast_sim::protocol::{Delay, Sabotage, Scenario, Simulator, Violation};

/// Everything is lost, so that the ring has to bring it.
fn broken(spec: &str, sabotage: Sabotage, loss: f64) -> Violation {
    let mut scenario = Scenario::calm(4, &[(spec, 0, 100)]);
    scenario.faults.message_delay = Delay::constant(Nanos(1000));
    scenario.faults.loss = loss;
    assert!(Simulator::new().run(&scenario).is_ok(), "it is the sabotage that is seen");
    scenario.faults.sabotage = Some(sabotage);
    Simulator::new().run(&scenario).expect_err("nothing was seen").violation
}

#[test]
fn a_lost_message_is_a_deadlock() {
    for spec in ["multicast-push:sync=none", "multicast-pull:sync=none"] {
        let violation = broken(spec, Sabotage::MessageLost, 1.0);
        assert!(matches!(violation, Violation::Stuck { .. }), "{spec}: {violation}");
    }
}

#[test]
fn a_damaged_fragment_is_a_wrong_byte() {
    let violation = broken("multicast-pull:sync=none", Sabotage::DamageAccepted, 0.0);
    assert!(matches!(violation, Violation::WrongByte { .. }), "{violation}");
}

#[test]
fn a_byte_that_changes_again_is_seen() {
    let violation = broken("multicast-pull:sync=none", Sabotage::BufferTouched, 0.5);
    assert_eq!(violation, Violation::ChangedByte { at: 0 });
}

#[test]
fn a_request_is_not_repeated() {
    let violation = broken("multicast-pull:sync=none", Sabotage::RequestCountedTwice, 1.0);
    assert!(matches!(violation, Violation::Needless { what: "asked for twice", .. }), "{violation}");
}
