use super::*;

/// Programs keep thousands that are never served. What they share is counted once; the door has another hundred bytes.
#[test]
fn a_communicator_that_is_not_served_is_small() {
    assert!(size_of::<Communicator>() <= 432, "{} bytes", size_of::<Communicator>());
}
