use proptest::prelude::*;

use super::*;

/// 10 ns a byte and nothing else, and half of that as the penalty.
fn ten_per_byte(bytes: u64) -> f64 {
    bytes as f64 * 10.0
}

fn five_per_byte(bytes: u64) -> f64 {
    bytes as f64 * 5.0
}

fn message(bytes: u64) -> MixedMessage<'static> {
    MixedMessage { bytes, shared_ns: &ten_per_byte, penalty_ns: Some(&five_per_byte) }
}

/// Five nodes in a chain, segments of 100 bytes: g 1200 ns, os 500 ns.
fn chain(whole_ns: f64) -> BetweenNodes {
    BetweenNodes { segment: 100, whole_ns, interval_ns: 1200.0, busy_ns: 500.0, hops: 4 }
}

#[test]
fn the_forms_by_hand() {
    // M = 1000, so k = 10. m_s = 50: m_r = 500; smcc 500 and 5000 ns, ovp 250 ns.
    let half = |form| message(1000).time_ns(form, &chain(50_000.0), 50);
    assert_eq!(half(MixedForm::NoOverlap), Some(50_000.0 + 10_000.0));
    assert_eq!(half(MixedForm::Complete), Some(50_000.0 + 500.0 + 5_000.0));
    assert_eq!(half(MixedForm::Overlapping), Some(55_500.0), "500 + 500 ns fit into 1200");
    assert_eq!(half(MixedForm::Penalty), Some(55_500.0 + 250.0 * (10.0 + 9.0 + 3.0)));
    assert_eq!(half(MixedForm::LargestPenalty), Some(55_500.0 + 500.0 * 22.0));
    // m_s = 100: m_r = 0; smcc 1000, ovp 500 ns; 500 + 1000 - 1200 = 300 ns late, nine times.
    let all = |form| message(1000).time_ns(form, &chain(50_000.0), 100);
    assert_eq!(all(MixedForm::Complete), Some(51_000.0));
    assert_eq!(all(MixedForm::Overlapping), Some(51_000.0 + 300.0 * 9.0));
    assert_eq!(all(MixedForm::Penalty), Some(51_000.0 + 500.0 * 22.0));
    assert_eq!(all(MixedForm::LargestPenalty), Some(51_000.0 + 1000.0 * 22.0));
    assert_eq!(message(1000).likely(&chain(50_000.0), 50), (MixedForm::Penalty, 61_000.0));
    let unknown = MixedMessage { penalty_ns: None, ..message(1000) };
    assert_eq!(unknown.time_ns(MixedForm::Penalty, &chain(0.0), 50), None);
    assert_eq!(unknown.likely(&chain(50_000.0), 50), (MixedForm::Complete, 55_500.0));
    assert_eq!(unknown.likely(&chain(50_000.0), 100), (MixedForm::Overlapping, 53_700.0));
    assert_eq!(unknown.likely(&chain(50_000.0), 0), (MixedForm::NoOverlap, 60_000.0));
}

#[test]
fn the_last_segment_may_be_shorter() {
    // 250 bytes: 3 segments; of 40 at once 120 are shared by then, of 80 the last one has only 50.
    assert_eq!(message(250).cut(100, 40), (3, 130));
    assert_eq!(message(250).cut(100, 80), (3, 40));
    assert_eq!(message(250).cut(100, 100), (3, 0));
    assert_eq!(message(250).cut(100, u64::MAX), (3, 0));
    assert_eq!(message(0).cut(100, 100), (1, 0));
    assert_eq!(message(0).time_ns(MixedForm::LargestPenalty, &chain(7.0), 100), Some(7.0));
}

/// Wu 2005, Figure 4.10: one segment over one hop.
#[test]
fn one_hop_by_hand() {
    let hop = Hop { latency_ns: 300.0, gap_ns: 1200.0, send_ns: 500.0 };
    let one = message(100);
    assert_eq!(one.received_ns(hop, 100, false), Some(300.0 + 1200.0 + 1000.0));
    assert_eq!(one.received_ns(hop, 40, false), Some(300.0 + 1200.0 + 400.0 + 600.0));
    assert_eq!(one.received_ns(hop, 40, true), Some(300.0 + 1200.0 + 200.0 + 400.0 + 600.0));
    assert_eq!(one.sent_ns(hop, 100), 500.0 + 1000.0);
    assert_eq!(one.sent_ns(hop, 40), 1200.0 + 600.0);
    assert_eq!(MixedMessage { penalty_ns: None, ..one }.received_ns(hop, 40, true), None);
}

#[test]
fn names_say_where_they_come_from() {
    let names: Vec<String> = MixedForm::ALL.iter().map(MixedForm::to_string).collect();
    let expected = [
        "no overlap (4.3.3)",
        "complete overlap (4.4)",
        "overlapping (4.3)",
        "penalty (4.5)",
        "largest penalty (4.6)",
    ];
    assert_eq!(names, expected);
}

proptest! {
    /// f2 is the lower bound, and f3 with the largest penalty the upper one, of whatever is between them.
    #[test]
    fn bounds(
        (bytes, segment, overlap) in (0u64..100_000, 1u64..20_000, 0u64..20_000),
        (start_ns, ns_per_byte, penalty_share) in (0.0..1e4f64, 0.0..20f64, -0.5..1.5f64),
        (whole_ns, interval_ns, busy_share, hops) in (0.0..1e9f64, 0.0..1e5f64, 0.0..1.0f64, 0u32..100),
    ) {
        let shared_ns = |bytes: u64| start_ns + ns_per_byte * bytes as f64;
        let penalty_ns = |bytes: u64| penalty_share * shared_ns(bytes);
        let message = MixedMessage { bytes, shared_ns: &shared_ns, penalty_ns: Some(&penalty_ns) };
        let between = BetweenNodes { segment, whole_ns, interval_ns, busy_ns: busy_share * interval_ns, hops };
        let time = |form| message.time_ns(form, &between, overlap).unwrap();
        let (least, most) = (time(MixedForm::Complete), time(MixedForm::LargestPenalty));
        for form in [MixedForm::Overlapping, MixedForm::Penalty] {
            prop_assert!(least <= time(form) * (1.0 + 1e-12), "{form}");
            prop_assert!(time(form) <= most * (1.0 + 1e-12), "{form}");
        }
        let (form, likely_ns) = message.likely(&between, overlap);
        prop_assert!(overlap == 0 || (least..=most * (1.0 + 1e-12)).contains(&likely_ns), "{form}");
        prop_assert!(message.nearest(&between, overlap, likely_ns) >= MixedForm::NoOverlap);
        let all_at_once = MixedMessage { penalty_ns: Some(&shared_ns), ..message };
        prop_assert_eq!(all_at_once.time_ns(MixedForm::Penalty, &between, overlap), Some(most));
        // Nothing at once is no overlap, whatever the form says.
        for form in MixedForm::ALL {
            prop_assert_eq!(message.time_ns(form, &between, 0), Some(time(MixedForm::NoOverlap)));
        }
    }

    /// With one segment, shared when it has come, f1 and f2 are no overlap, and f3 is one penalty for each hop more. Over one hop that
    /// is (4.1) and (4.2).
    #[test]
    fn one_segment(bytes in 1u64..100_000, (latency_ns, gap_ns, share) in (0.0..1e5f64, 0.0..1e6f64, 0.0..1.0f64), hops in 1u32..50) {
        let message = message(bytes);
        let hop = Hop { latency_ns, gap_ns, send_ns: share * gap_ns };
        let whole_ns = f64::from(hops) * (latency_ns + gap_ns);
        let between = BetweenNodes { segment: bytes, whole_ns, interval_ns: gap_ns, busy_ns: hop.send_ns, hops };
        let time = |form| message.time_ns(form, &between, bytes).unwrap();
        let apart = time(MixedForm::NoOverlap);
        prop_assert_eq!((time(MixedForm::Complete), time(MixedForm::Overlapping)), (apart, apart));
        let close = |one: f64, other: f64| (one - other).abs() <= 1e-9 * one.abs().max(other.abs());
        prop_assert!(close(time(MixedForm::Penalty), apart + f64::from(hops) * five_per_byte(bytes)));
        if hops == 1 {
            prop_assert!(close(time(MixedForm::Complete), message.received_ns(hop, bytes, false).unwrap()));
            prop_assert!(close(time(MixedForm::Penalty), message.received_ns(hop, bytes, true).unwrap()));
        }
    }
}
