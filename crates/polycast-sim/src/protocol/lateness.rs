use polycast_core::units::Nanos;

use super::faults::Late;
use super::random::Random;
use super::scenario::Scenario;

impl Late {
    /// How late `node` is for its call number `turn`.
    pub(super) fn lateness(
        self,
        scenario: &Scenario,
        node: u32,
        root: u32,
        turn: usize,
        random: &mut Random,
    ) -> Nanos {
        let is_late = |is_late: bool, by: Nanos| if is_late { by } else { Nanos(0) };
        match self {
            Late::Nobody => Nanos(0),
            Late::Sometimes(part, most) => {
                if random.chance(part) {
                    Nanos(random.below(most.0))
                } else {
                    Nanos(0)
                }
            }
            Late::Node(late, by) => is_late(node == late, by),
            Late::One(by) => is_late(node == drawn(scenario, root, turn), by),
            Late::Receivers(by) => is_late(node != root, by),
            Late::All(most) => Nanos(random.below(most.0)),
        }
    }
}

/// The same receiver for all nodes.
fn drawn(scenario: &Scenario, root: u32, turn: usize) -> u32 {
    let mut random = Random::new(scenario.seed.wrapping_add(turn as u64));
    (root + random.within(1, u64::from(scenario.nodes) - 1) as u32) % scenario.nodes
}
