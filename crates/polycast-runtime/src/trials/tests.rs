use polycast_core::policy::{Rules, Table};
use polycast_core::units::Bytes;

use super::*;

const TABLE: &str = "version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"chain\"\n";

/// A root that hands a message to a chain is through long before the others have it.
#[test]
fn the_root_times_nothing() {
    let shape = CommunicatorShape::new(4, 4, None).unwrap();
    let table = Table::parse(TABLE, "a table").unwrap();
    let policy = Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), shape);
    let call = Call { collective: Collective::Broadcast, bytes: Bytes(9000) };
    let (there, epoch) = (Capabilities::PRIVATE, Epoch::default());
    let rules = *policy.choose(&call, there, epoch);
    let mut comparison = Comparison::new(true, false, shape);
    let wanted = comparison.0.as_deref_mut().unwrap();
    wanted.trials = Some(Trials::default());
    let mut counts = |is_root: bool| {
        let (_, why) = comparison.next(rules, &policy, &call, there, epoch);
        assert_eq!(why, Why::Compared);
        comparison.starts(Collective::Broadcast, is_root);
        comparison.is_timed()
    };
    assert_eq!([false; 2].map(&mut counts), [false; 2], "a round to warm up");
    assert_eq!([false, true, true, false].map(&mut counts), [true, false, false, true]);
}
