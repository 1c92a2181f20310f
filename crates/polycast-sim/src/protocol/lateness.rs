use polycast_core::units::Nanos;

use super::faults::Late;
use super::random::Random;
use super::scenario::Scenario;

impl Late {
    /// The time by which `node` is late for its call number `turn`.
    pub(super) fn lateness(
        &self,
        scenario: &Scenario,
        node: u32,
        root: u32,
        turn: usize,
        random: &mut Random,
    ) -> Nanos {
        let is_late = |is_late: bool, by: Nanos| if is_late { by } else { Nanos(0) };
        match *self {
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
            Late::Recorded(ref calls) => {
                let call = &calls[turn % calls.len()];
                // Whose place in the job is as far from its root.
                let rank = (node + scenario.nodes - root + call.root) % scenario.nodes;
                call.late[rank as usize]
            }
        }
    }
}

/// Draws the receiver that is late in a turn; the same one at all nodes.
fn drawn(scenario: &Scenario, root: u32, turn: usize) -> u32 {
    let mut random = Random::new(scenario.seed.wrapping_add(turn as u64));
    (root + random.within(1, u64::from(scenario.nodes) - 1) as u32) % scenario.nodes
}

#[cfg(test)]
mod tests {
    use super::super::faults::RecordedCall;
    use super::*;

    #[test]
    fn a_recorded_call_is_turned_to_its_root_and_comes_again() {
        let call = |root, late: [u64; 4]| RecordedCall { root, late: late.map(Nanos).to_vec() };
        let late = Late::Recorded([call(1, [10, 0, 30, 40]), call(0, [5, 6, 7, 8])].into());
        let random = &mut Random::new(0);
        let scenario = Scenario::from_seed(0, 4..=4);
        let mut times =
            |root, turn| [0, 1, 2, 3].map(|node| late.lateness(&scenario, node, root, turn, random).0);
        assert_eq!(times(1, 0), [10, 0, 30, 40], "the recorded root");
        assert_eq!(times(0, 2), [0, 30, 40, 10], "another one");
        assert_eq!(times(0, 1), [5, 6, 7, 8]);
    }
}
