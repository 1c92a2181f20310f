use polycast_core::policy::{Rules, Table};
use polycast_core::units::Bytes;

use super::*;

const TABLE: &str = "version = 1\n[[rule]]\ncollective = \"bcast\"\nuse = \"chain\"\n";

/// A root that hands a long message to a chain is through long before the others have it. With a short one it may be held up, which counts.
#[test]
fn the_root_times_what_is_short() {
    for (bytes, root_counts) in [(9000, true), (65_535, true), (65_536, false)] {
        let shape = CommunicatorShape::new(4, 4, None).unwrap();
        let table = Table::parse(TABLE, "a table").unwrap();
        let policy = Policy::new(Rules::new(&[], Some(&table), &Table::shipped(), None), shape);
        let call = Call { collective: Collective::Broadcast, bytes: Bytes(bytes) };
        let (there, epoch) = (Capabilities::PRIVATE, Epoch::default());
        let rules = *policy.choose(&call, there, epoch);
        let mut comparison = Comparison::new(true, false, shape);
        let wanted = comparison.0.as_deref_mut().unwrap();
        wanted.trials = Some(Trials::default());
        let mut counts = |is_root: bool| {
            let (_, why) = comparison.next(rules, &policy, &call, there, epoch);
            assert_eq!(why, Why::Compared);
            comparison.starts(&call, is_root);
            comparison.is_timed()
        };
        assert_eq!([false; 2].map(&mut counts), [false; 2], "a round to warm up");
        let expected = [true, root_counts, root_counts, true];
        assert_eq!([false, true, true, false].map(&mut counts), expected, "{bytes} bytes");
        let of = Sameness::tuned(Collective::Broadcast, bytes, there);
        assert_eq!(timed_ranks(of, 4), 3 + u32::from(root_counts));
    }
}
