use proptest::prelude::*;

use super::*;

const SMALLEST: &str = r#"{"format":"polycast-parameters","version":1,
"measured":{"when":"2026-11-22T03:00:00Z","where":"lab hosts=16,rate=20mbit","how":"Open MPI 4.1.4"},
"classes":{"same-switch":{
 "latency":[{"bytes":1024,"ns":-12.5,"low":-13,"high":-12,"samples":36}],
 "gap":[{"bytes":1024,"ns":12345.6,"low":12300.1,"high":12400.2,"samples":36},
        {"bytes":2048,"ns":2e4,"low":2e4,"high":2e4,"samples":9}]}}}"#;

#[test]
fn reads_what_the_format_says() {
    let parameters = Parameters::parse(SMALLEST, "p.json").unwrap();
    assert_eq!(parameters.measured().place, "lab hosts=16,rate=20mbit");
    let class = parameters.class(LinkClass::SameSwitch);
    assert_eq!((class.latency.at(7), class.gap.at(2048)), (-12.5, 20_000.0));
    assert_eq!(class.gap.points()[0].samples, 36);
    assert_eq!(Parameters::parse(&parameters.to_json(), "p.json"), Ok(parameters));
}

#[test]
fn errors_say_where_and_what_was_expected() {
    for (from, to, expected) in [
        (
            "polycast-parameters",
            "polycast-table",
            r#"p.json: format: expected "polycast-parameters", found "polycast-table""#,
        ),
        ("\"version\":1", "\"version\":2", "p.json: version: expected 1, which this polycast reads, found 2"),
        ("\"version\":1,", "", "version: expected 1, which this polycast reads, found none"),
        (
            "same-switch",
            "same-rack",
            "line 3, column 22: expected a parameter file as `polycast measure` writes it: unknown field `same-rack`, expected one of `same-node`",
        ),
        ("\"gap\"", "\"gaps\"", "unknown field `gaps`, expected one of `latency`"),
        ("\"how\":", "\"how\":3, \"x\":", "line 2, column"),
        ("1024,\"ns\":1", "1024,\"ns\":9", "classes.same-switch.gap[0]: expected low <= ns <= high"),
        (
            "2048",
            "512",
            "classes.same-switch.gap[1]: expected more bytes than at the point before, 1024, found 512",
        ),
        (
            "\"ns\":-12.5,\"low\":-13",
            "\"ns\":-12.5,\"low\":-1e99",
            "classes.same-switch.latency[0]: expected low",
        ),
        ("\"samples\":9}", "\"samples\":-9}", "line 6"),
        ("]}}}", "]}}", "line 6"),
        ("{\"same-switch\":{", "{} } {", "line 3"),
    ] {
        assert!(SMALLEST.contains(from), "{from}");
        let error = Parameters::parse(&SMALLEST.replacen(from, to, 1), "p.json").unwrap_err().to_string();
        assert!(error.starts_with("p.json: ") && error.contains(expected), "{to}: {error}");
    }
    let nothing = r#"{"format":"polycast-parameters","version":1,"measured":{"when":"","where":"","how":""},"classes":{}}"#;
    let error = Parameters::parse(nothing, "p.json").unwrap_err().to_string();
    assert_eq!(
        error,
        "p.json: classes: expected at least one of same-node, same-switch, across-switches, found none"
    );
}

const SHARING: &str = r#""sharing":[{"collective":"bcast","ranks":4,
 "cost":[{"bytes":1024,"ns":9000,"low":8000,"high":9500,"samples":12}],
 "penalty":[{"bytes":1024,"ns":100,"low":0,"high":200,"samples":7}]}]"#;

fn with_sharing() -> String {
    format!("{},{SHARING}}}", SMALLEST.strip_suffix('}').unwrap())
}

#[test]
fn what_is_shared_on_a_node_is_read() {
    let parameters = Parameters::parse_all(&with_sharing(), "p.json").unwrap();
    let of_four = parameters.sharing_of(Collective::Broadcast, 4).unwrap();
    assert_eq!((of_four.cost_ns(1024), of_four.penalty.as_ref().unwrap().at(1024)), (9000.0, 100.0));
    assert_eq!(parameters.sharing_of(Collective::Broadcast, 2), None);
    assert_eq!(parameters.sharing_of(Collective::Reduce, 4), None);
    assert_eq!(Parameters::parse_all(&parameters.to_json(), "p.json"), Ok(parameters));
    assert!(Parameters::parse(&with_sharing(), "p.json").unwrap().sharing().is_empty(), "as a job reads it");
    let without = Parameters::parse(SMALLEST, "p.json").unwrap();
    assert!(without.sharing().is_empty() && !without.to_json().contains("sharing"));
}

#[test]
fn errors_of_what_is_shared_say_where() {
    let once_more =
        r#"}]},{"collective":"bcast","ranks":4,"cost":[{"bytes":1,"ns":1,"low":1,"high":1,"samples":1}]}]"#;
    for (from, to, expected) in [
        ("bcast", "broadcasting", r#"sharing[0].collective: unknown collective "broadcasting""#),
        (
            r#""ranks":4"#,
            r#""ranks":1"#,
            "sharing[0].ranks: expected at least 2 ranks that share a node, found 1",
        ),
        (r#""ranks":4"#, r#""ranks":-4"#, "line 6, column"),
        (r#""cost""#, r#""costs""#, "unknown field `costs`, expected one of `collective`, `ranks`"),
        (r#""low":8000"#, r#""low":9001"#, "sharing[0].cost[0]: expected low <= ns <= high"),
        (
            r#""ns":100,"low":0"#,
            r#""ns":-1,"low":-2"#,
            "sharing[0].penalty[0]: expected a time that is not negative",
        ),
        ("}]}]", once_more, "sharing[1]: expected each once, found bcast of 4 ranks again"),
    ] {
        let text = with_sharing();
        let (before, after) = text.split_at(text.find("sharing").unwrap());
        assert!(after.contains(from), "{from}");
        let text = format!("{before}{}", after.replacen(from, to, 1));
        let error = Parameters::parse_all(&text, "p.json").unwrap_err().to_string();
        assert!(error.starts_with("p.json: ") && error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn a_text_may_have_so_many_bytes() {
    let padded = |bytes| format!("{SMALLEST}{}", " ".repeat(bytes - SMALLEST.len()));
    assert!(Parameters::parse(&padded(MAX_TEXT_BYTES), "p").is_ok());
    let error = Parameters::parse(&padded(MAX_TEXT_BYTES + 1), "p").unwrap_err().to_string();
    assert!(error.contains("expected at most 4194304 bytes"), "{error}");
}

fn curve(signed: bool) -> impl Strategy<Value = Vec<Point>> {
    let lowest = if signed { -1e12 } else { 0.0 };
    let point = (lowest..1e12, 0.0..1e6, 0.0..1e6, 1u64..1000);
    prop::collection::btree_map(0u64..1 << 48, point, 1..6).prop_map(|points| {
        let point = |(bytes, (ns, below, above, samples))| Point {
            bytes,
            ns,
            low: ns - below,
            high: ns + above,
            samples,
        };
        points.into_iter().map(point).collect()
    })
}

fn class() -> impl Strategy<Value = ClassParameters> {
    let optional = |signed| prop::option::of(curve(signed));
    let optional = [
        optional(false),
        optional(false),
        optional(false),
        optional(false),
        optional(false),
        optional(true),
        optional(true),
    ];
    (curve(true), curve(false), optional).prop_map(|(latency, gap, optional)| {
        let made = |points| Curve::new(points).unwrap();
        let [send_overhead, receive_overhead, hold, end, send, net, receive] =
            optional.map(|points| points.map(made));
        let (latency, gap) = (made(latency), made(gap));
        ClassParameters { latency, gap, send_overhead, receive_overhead, hold, end, send, net, receive }
    })
}

fn sharing() -> impl Strategy<Value = Vec<Sharing>> {
    let curves = (curve(false), prop::option::of(curve(false)));
    let by_ranks = prop::collection::btree_map(2u32..100, curves, 0..3);
    (prop::sample::select(&Collective::ALL[..]), by_ranks).prop_map(|(collective, by_ranks)| {
        let made = |points| Curve::new(points).unwrap();
        let of = |(ranks, (cost, penalty)): (u32, (Vec<Point>, Option<Vec<Point>>))| Sharing {
            collective,
            ranks,
            cost: made(cost),
            penalty: penalty.map(made),
        };
        by_ranks.into_iter().map(of).collect()
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(
        sharing in sharing(),
        classes in prop::collection::btree_map(prop::sample::select(&LinkClass::ALL[..]), class(), 1..4),
        (when, place, how) in (any::<String>(), any::<String>(), any::<String>()),
    ) {
        let parameters = Parameters::new(Provenance { when, place, how }, classes).unwrap();
        let parameters = parameters.with_sharing(sharing).unwrap();
        prop_assert_eq!(Parameters::parse_all(&parameters.to_json(), "p"), Ok(parameters));
    }

    #[test]
    fn no_text_panics(cut in 0usize..800, replaced in any::<String>(), after in 0usize..800) {
        let whole = with_sharing();
        let text: String = whole.chars().take(cut).chain(replaced.chars()).chain(whole.chars().skip(after)).collect();
        let _ = Parameters::parse_all(&text, "p").map_err(|error| error.to_string());
        let _ = Parameters::parse(&replaced, "p");
    }
}
