//! `polycast predict`.

use std::fs;

use crate::common::checkout;
use crate::fake::{World, error, output};
use serde_json::Value;

/// Patarasuk et al. 2008, Table 2 at 100 Mb/s, in part.
const PARAMETERS: &str = r#"{"format":"polycast-parameters","version":1,
"measured":{"when":"2026-11-22T03:00:00Z","where":"32 machines, 100 Mb/s","how":"Patarasuk et al. 2008, Table 2"},
"classes":{"same-switch":{
 "latency":[{"bytes":256,"ns":110000,"low":110000,"high":110000,"samples":36},{"bytes":512,"ns":156000,"low":156000,"high":156000,"samples":36},
            {"bytes":1024,"ns":250000,"low":250000,"high":250000,"samples":36},{"bytes":2048,"ns":318000,"low":318000,"high":318000,"samples":36}],
 "gap":[{"bytes":256,"ns":30000,"low":30000,"high":30000,"samples":36},{"bytes":512,"ns":51000,"low":51000,"high":51000,"samples":36},
        {"bytes":1024,"ns":89000,"low":89000,"high":89000,"samples":36},{"bytes":2048,"ns":177000,"low":177000,"high":177000,"samples":36}]}}}"#;

pub fn world() -> World {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("p.json"), PARAMETERS).unwrap();
    world
}

pub fn predict(world: &World, arguments: &[&str]) -> String {
    output(&mut world.polycast(&[&["predict", "--params", "p.json"], arguments].concat()))
}

/// Table 3: 1 MiB down a chain of 32 goes best in segments of 1 KiB.
#[test]
fn the_best_segment_size_and_the_terms_behind_it() {
    let world = world();
    let arguments = [
        "--ranks",
        "32",
        "--bytes",
        "128KiB,1MiB",
        "--algorithms",
        "chain,chain:segment=2KiB,binary",
        "--json",
    ];
    let answer: Value = serde_json::from_str(&predict(&world, &arguments)).unwrap();
    let best = &answer["sizes"][1]["predictions"][0];
    assert_eq!(best["algorithm"], "chain:segment=1KiB");
    let expected_us = 31.0 * (250.0 + 89.0) + 1023.0 * 89.0;
    assert_eq!(best["time_us"].as_f64().unwrap(), expected_us);
    assert_eq!((&best["interval_us"], &best["segments"]), (&89.0.into(), &1024.into()));
    // By these parameters 512 B would be better; what is smaller than a packet is not tried.
    assert_eq!(answer["sizes"][0]["best"], "chain:segment=1KiB");
    assert_eq!(answer["sizes"][0]["predictions"].as_array().unwrap().len(), 3);
}

#[test]
fn a_table_and_a_plot() {
    let world = world();
    let text = predict(
        &world,
        &["--hosts", "a,b:2,c", "--bytes", "1KiB..64KiB:4", "--no-multicast", "--svg", "t.svg"],
    );
    let expected = [
        "bcast to 4 ranks from rank 0",
        "32 machines, 100 Mb/s",
        "LIMIT",
        "64KiB  ",
        "segments of 1 KiB and more",
    ];
    for expected in expected {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("multicast"), "{text}");
    let picture = fs::read_to_string(world.path().join("t.svg")).unwrap();
    assert!(picture.contains("scatter-ring"));
    // Under the title stands what it was made with.
    assert!(picture.contains(concat!("polycast predict ", env!("CARGO_PKG_VERSION"), ", by parameters of")));
    let text = predict(&world, &["--ranks", "4"]);
    assert!(text.lines().count() < 40 && text.contains("--all"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let all = predict(&world, &["--ranks", "4", "--all"]);
    assert!(all.contains("multicast-pull") && all.lines().count() > 80 && !all.contains("--all"), "{all}");
}

/// Patarasuk et al. 2008, formula 1, and two models that are known in advance: one hop, and log2 P of them.
#[test]
fn models_and_closed_forms() {
    let world = world();
    let arguments = ["--models", "--ranks", "32", "--bytes", "1KiB,1MiB"];
    let text = predict(&world, &arguments);
    for expected in [
        "same-switch, 256 B to 2 KiB",
        "alpha + m beta",
        "RESIDUAL",
        "segments of 1 KiB and",
        "Siebert 2006",
        "opt-tree",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let answer: Value =
        serde_json::from_str(&predict(&world, &[&arguments[..], &["--json"]].concat())).unwrap();
    let class = &answer["classes"][0];
    assert_eq!((&class["class"], &class["efficient_segment_bytes"]), (&"same-switch".into(), &1024.into()));
    let hockney = &class["models"][0];
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value / expected - 1.0).abs() < 1e-9, "{value} for {expected}");
    };
    let message_us =
        (hockney["startup_ns"].as_f64().unwrap() + 1024.0 * hockney["per_byte_ns"].as_f64().unwrap()) / 1e3;
    let sizes = &answer["closed_forms"]["sizes"];
    let row = |size: usize, name: &str| {
        let rows = sizes[size]["algorithms"].as_array().unwrap();
        rows.iter().find(|row| row["algorithm"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}")).clone()
    };
    near(&row(0, "binomial")["hockney_us"], 5.0 * message_us);
    near(&row(0, "binomial")["hold_end_us"], 5.0 * 339.0);
    near(&row(0, "chain")["hold_end_us"], 31.0 * 339.0);
    let chain = row(1, "chain:segment=1KiB");
    let expected_us = 31.0 * (250.0 + 89.0) + 1023.0 * 89.0;
    near(&chain["p_log_gp_us"], expected_us);
    near(&chain["schedule_us"], expected_us);
    assert!(row(1, "chain:segment=1KiB")["hold_end_us"].is_null());
    // rounds alpha + bytes beta of a ring: of an all-to-all the two exchanges that have a formula.
    let of = |collective: &str| -> Value {
        let arguments =
            ["--models", "--ranks", "32", "--bytes", "1KiB", "--json", "--collective", collective];
        serde_json::from_str(&predict(&world, &arguments)).unwrap()
    };
    let ring = of("allgather")["closed_forms"]["sizes"][0]["algorithms"][0].clone();
    assert_eq!(ring["algorithm"], "ring");
    near(&ring["hockney_us"], 31.0 * message_us);
    near(&ring["schedule_us"], 31.0 * 339.0);
    assert_eq!(of("alltoall")["closed_forms"]["sizes"][0]["algorithms"].as_array().unwrap().len(), 2);
    let alone: Value = serde_json::from_str(&predict(&world, &["--models", "--json"])).unwrap();
    assert_eq!((&alone["classes"], &alone["closed_forms"]), (&answer["classes"], &Value::Null));
}

#[test]
fn held_against_measurements() {
    let world = world();
    let environment = r#"{"environment":{"hosts":[{"name":"a","ranks":1},{"name":"b","ranks":1}]}}"#;
    let point = |variant: &str, us: f64| {
        format!(
            r#"{{"variant":"{variant}","bytes":1024,"root":"0","median_us":{us},"ci_low_us":null,"ci_high_us":null}}"#
        )
    };
    // One message: 339 µs.
    let fewer = point("chain", 9.0).replace("{", "{\"ranks\":1,");
    let lines =
        [environment.to_owned(), point("chain", 339.0), point("flat", 678.0), point("stock", 1.0), fewer];
    fs::write(world.path().join("r.json"), lines.join("\n")).unwrap();
    let answer = predict(&world, &["--against", "r.json", "--json", "--svg", "e.svg"]);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["median_error"], 0.25);
    assert_eq!((&answer["pairs"][0]["error"], &answer["pairs"][1]["error"]), (&0.0.into(), &(-0.5).into()));
    assert_eq!(answer["left_out"][0], "stock");
    assert!(world.path().join("e.svg").exists());
    let text = predict(&world, &["--against", "r.json"]);
    assert!(text.contains("2 predictions: median error 25.0 %"), "{text}");
}

#[test]
fn what_would_change_nothing_is_refused() {
    let world = world();
    let refused = |words: &str, status| {
        let words: Vec<&str> = words.split(' ').collect();
        error(
            &mut world.polycast(&[&["predict", "--params", "p.json", "-n", "4"], &words[..]].concat()),
            status,
        )
    };
    for unused in [
        "--crossover --root 1",
        "--against r.json --root 0",
        "--crossover --all",
        "--models --all",
        "--models --combine 1gbit",
        "--models --no-multicast",
        "--against r.json --no-multicast",
    ] {
        assert!(refused(unused, 2).contains("cannot be used with"), "{unused}");
    }
    for (collective, option) in [
        ("allreduce", "--root 1"),
        ("bcast", "--combine 1gbit"),
        ("reduce", "--loss 1%"),
        ("scatter", "--no-multicast"),
    ] {
        let said = refused(&format!("--collective {collective} {option}"), 2);
        let option = option.split(' ').next().unwrap();
        assert_eq!(said, format!("polycast: {option} changes nothing with --collective {collective}\n"));
    }
}

#[test]
fn errors_say_what_to_do() {
    let world = world();
    fs::write(world.path().join("broken.json"), PARAMETERS.replace("\"gap\"", "\"gaps\"")).unwrap();
    fs::write(world.path().join("r.json"), "{}").unwrap();
    let environment = r#"{"environment":{"hosts":[{"name":"a","ranks":1},{"name":"b","ranks":1}]}}"#;
    let stock = r#"{"variant":"stock","bytes":1024,"root":"0","median_us":1.0}"#;
    fs::write(world.path().join("stock.json"), format!("{environment}\n{stock}\n")).unwrap();
    fs::write(world.path().join("empty.json"), environment).unwrap();
    for (arguments, expected) in [
        (&["--params", "p.json"][..], "expected --ranks, --hosts or --topology"),
        (&["--params", "broken.json", "--ranks", "2"], "broken.json: line 6"),
        (&["--params", "none.json", "--ranks", "2"], "none.json"),
        (&["--params", "p.json", "--ranks", "2", "--root", "2"], "expected a rank below 2"),
        (&["--params", "p.json", "--ranks", "2", "--algorithms", "stock"], "expected an algorithm"),
        (&["--params", "p.json", "--against", "r.json"], "r.json:1: expected the environment"),
        (
            &["--params", "p.json", "--ranks", "2", "--no-multicast", "--algorithms", "multicast-pull"],
            "expected other algorithms, found multicast alone",
        ),
        (&["--params", "p.json", "--against", "stock.json"], "bench --variants chain,…`, found stock"),
        (
            &["--params", "p.json", "--crossover", "--ranks", "4", "--algorithms", "chain,flat"],
            "expected multicast and others in --algorithms, found chain,flat",
        ),
        (&["--params", "p.json", "--against", "empty.json"], "found nothing on 2 ranks"),
        (
            &[
                "--params",
                "p.json",
                "--crossover",
                "--ranks",
                "4",
                "--collective",
                "gather",
                "--algorithms",
                "flat",
            ],
            "expected at least two algorithms in --algorithms, found flat",
        ),
        (
            &["--params", "p.json", "--ranks", "4", "--collective", "gather,bcast", "--svg", "x.svg"],
            "expected one --collective",
        ),
    ] {
        // What files hold is no wrong value.
        let is_of_a_file = expected.contains(".json")
            || expected.contains("found stock")
            || expected.contains("found nothing");
        let status = if is_of_a_file { 1 } else { 2 };
        let said = error(&mut world.polycast(&[&["predict"], arguments].concat()), status);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

/// Sharing takes 1 us and 0.5 ns a byte, on nodes of four ranks; down a chain of four nodes segments of 2 KiB follow each other after 177 us.
fn world_of_levels() -> World {
    let world = world();
    let sharing = r#""sharing":[{"collective":"bcast","ranks":4,
 "cost":[{"bytes":2000,"ns":2000,"low":2000,"high":2000,"samples":9},{"bytes":2002000,"ns":1002000,"low":1002000,"high":1002000,"samples":9}]}]"#;
    let text = PARAMETERS.strip_suffix('}').unwrap();
    fs::write(world.path().join("levels.json"), format!("{text},{sharing}}}")).unwrap();
    world
}

#[test]
fn two_levels_are_predicted_form_by_form() {
    let world = world_of_levels();
    let of = |further: &[&str]| {
        let common = ["predict", "--params", "levels.json", "--bytes", "64KiB"];
        output(&mut world.polycast(&[&common[..], further].concat()))
    };
    let answer: Value =
        serde_json::from_str(&of(&["--ranks", "16", "--ranks-per-host", "4", "--json"])).unwrap();
    let best = &answer["two_level"][0]["predictions"][0];
    assert_eq!((&best["form"], &best["equation"]), (&"complete overlap".into(), &"4.4".into()));
    let forms = best["forms"].as_array().unwrap();
    let of_form = |equation: &str| forms.iter().find(|form| form["equation"] == equation).unwrap();
    let time = |equation: &str| of_form(equation)["time_us"].as_f64().unwrap();
    assert_eq!(best["time_us"], of_form("4.4")["time_us"]);
    assert!(time("4.4") <= time("4.3") && time("4.3") < time("4.6"), "{best}");
    assert!(forms.iter().all(|form| form["equation"] != "4.5"), "nobody knows the penalty");
    let page = of(&["--ranks", "16", "--ranks-per-host", "4"]);
    assert!(page.contains("complete overlap (4.4)") && page.contains("largest penalty (4.6)"), "{page}");
    let unknown = of(&["--ranks", "16", "--ranks-per-host", "2"]);
    assert!(unknown.contains("`polycast measure --ranks-per-host 2`"), "{unknown}");
    assert!(!of(&["--ranks", "16"]).contains("two-level"), "one rank on each host");
}

/// Reductions and gathers on a node take what broadcasts do here.
#[test]
fn other_collectives_on_two_levels_are_predicted_form_by_form() {
    let world = world_of_levels();
    let text = fs::read_to_string(world.path().join("levels.json")).unwrap();
    let of_broadcasts = &text[text.find("{\"collective\"").unwrap()..text.rfind("]}").unwrap()];
    let others = ["reduce", "gather"].map(|name| of_broadcasts.replacen("bcast", name, 1)).join(",");
    fs::write(
        world.path().join("all.json"),
        text.replacen("\"sharing\":[", &format!("\"sharing\":[{others},"), 1),
    )
    .unwrap();
    let of = |collective: &str, further: &[&str]| {
        let common =
            ["predict", "--params", "all.json", "--ranks", "16", "--ranks-per-host", "4", "--collective"];
        output(&mut world.polycast(&[&common[..], &[collective], further].concat()))
    };
    let best = |collective: &str| -> Value {
        let answer: Value = serde_json::from_str(&of(collective, &["--bytes", "16KiB", "--json"])).unwrap();
        answer["two_level"][0]["predictions"][0].clone()
    };
    for (collective, equation, is_after_a_step) in [
        ("reduce", "4.4", false),
        ("allreduce", "4.3.3", false),
        ("allgather", "4.4", true),
        ("gather", "4.3.3", false),
    ] {
        let best = best(collective);
        assert_eq!(best["equation"], equation, "{best}");
        assert_eq!(best["before_us"].as_f64() > Some(0.0), is_after_a_step, "{best}");
        let [time, between] = ["time_us", "between_us"].map(|name| best[name].as_f64().unwrap());
        assert!(time > between && between > 0.0, "{best}");
    }
    // In segments down a tree of nodes allreduces overlap; a ring of nodes is faster here.
    assert!(of("allreduce", &["--bytes", "16KiB", "--all"]).contains("complete overlap (4.4)"));
    let page = of("allgather", &["--bytes", "16KiB"]);
    assert!(page.contains("two-level") && page.contains("largest penalty (4.6)"), "{page}");
    let said = |collective| of(collective, &[]).replace('\n', " ");
    assert!(said("scatter").contains("what scatter takes among 4 ranks of a node"), "{}", said("scatter"));
    assert!(said("alltoall").contains("the mixed-mode model has forms for bcast"), "{}", said("alltoall"));
}

/// Of the nodes alone as they were measured, and by equation how far it is off.
#[test]
fn two_levels_are_held_against_what_was_measured() {
    let world = world_of_levels();
    let results = |name: &str, ranks: u32, points: &[(&str, f64)]| {
        let hosts =
            ["a", "b", "c", "d"].map(|host| format!(r#"{{"name":"{host}","ranks":{ranks}}}"#)).join(",");
        let point = |(variant, us): &(&str, f64)| {
            format!(r#"{{"variant":"{variant}","bytes":65536,"root":"0","median_us":{us}}}"#)
        };
        let lines: Vec<String> = points.iter().map(point).collect();
        let text = format!("{{\"environment\":{{\"hosts\":[{hosts}]}}}}\n{}\n", lines.join("\n"));
        fs::write(world.path().join(name), text).unwrap();
    };
    let levels = [
        ("two-level:between=chain,overlap=none,segment=2KiB", 6033.768),
        ("two-level:between=chain,segment=2KiB", 6002.024),
        ("two-level:between=chain,segment=4KiB", 9000.0),
    ];
    results("levels-results.json", 4, &levels);
    results("between-results.json", 1, &[("chain:segment=2KiB", 6000.0)]);
    let of = |further: &[&str]| {
        let common = ["predict", "--params", "levels.json", "--against", "levels-results.json"];
        output(&mut world.polycast(&[&common[..], &["--between", "between-results.json"], further].concat()))
    };
    let answer: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let entries = answer["two_level"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    for (entry, nearest) in entries.iter().zip(["4.3.3", "4.4"]) {
        assert_eq!((&entry["nearest"], &entry["between_us"]), (&nearest.into(), &6000.0.into()));
        assert!(entry["error"].as_f64().unwrap().abs() < 1e-6, "{entry}");
    }
    assert_eq!(entries[2]["between_is_measured"], false);
    let text = fs::read_to_string(world.path().join("levels-results.json")).unwrap();
    fs::write(world.path().join("other-root.json"), text.replace(r#""root":"0""#, r#""root":"16""#)).unwrap();
    let other_root = ["predict", "--params", "levels.json", "--against", "other-root.json"];
    let said = error(&mut world.polycast(&other_root), 2);
    assert!(said.contains("root 16, but there are 16 ranks"), "{said}");
    let each = [&other_root[..], &["--ranks-per-host", "4"]].concat();
    let said = error(&mut world.polycast(&each), 2);
    assert!(said.contains("cannot be used with"), "the results say it: {said}");
    // Of a reduction the same chain backwards, by its own curve.
    let sharing = fs::read_to_string(world.path().join("levels.json")).unwrap();
    fs::write(world.path().join("levels.json"), sharing.replacen("bcast", "reduce", 1)).unwrap();
    for name in ["levels-results.json", "between-results.json"] {
        let of_broadcasts = fs::read_to_string(world.path().join(name)).unwrap();
        let of_reductions = of_broadcasts.replace(r#"{"variant""#, r#"{"collective":"reduce","variant""#);
        fs::write(world.path().join(name), of_reductions).unwrap();
    }
    let reductions: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let entry = &reductions["two_level"][1];
    assert_eq!((&entry["collective"], &entry["between_us"]), (&"reduce".into(), &6000.0.into()));
    assert_eq!((&entry["nearest"], &entry["errors"]), (&"4.4".into(), &entries[1]["errors"]));
    let page = of(&[]);
    for expected in ["reduce, 64KiB, chain of nodes", "nodes alone", "4.3.3 +0.0 %", "about ", "MEDIAN"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

/// The rule of thumb is about messages between nodes, however many ranks share one.
#[test]
fn the_rule_of_thumb_is_for_what_lies_between_nodes() {
    let world = World::with_doors(&[]);
    let params = checkout().join("examples/params/lab-20mbit.json");
    let rule = |more: &[&str]| {
        let words = ["predict", "--params", params.to_str().unwrap(), "--bytes", "1MiB"];
        let text = output(&mut world.polycast(&[&words[..], more].concat()));
        let text = text.replace('\n', " ");
        let from = text.find("segments of ").unwrap();
        text[from..].split(" (binary) on").next().unwrap().to_owned()
    };
    let of_nodes = rule(&["-n", "8"]);
    assert_eq!(rule(&["-n", "32", "--ranks-per-host", "4"]), of_nodes);
    assert!(rule(&["-n", "8", "--ranks-per-host", "8"]) != of_nodes, "within a node it is another");
}

/// Files of busy machines predict what nobody will see.
#[test]
fn predictions_from_what_is_hardly_known_are_warned_of() {
    let world = World::with_doors(&[]);
    let curve = |reach: f64, times: [f64; 3]| {
        let point = |(bytes, ns): (u64, f64)| {
            format!(
                r#"{{"bytes":{bytes},"ns":{ns},"low":{},"high":{},"samples":9}}"#,
                ns - reach * ns,
                ns + reach * ns
            )
        };
        let points: Vec<_> = [1, 1024, 65536].into_iter().zip(times).map(point).collect();
        format!("[{}]", points.join(","))
    };
    let said = |reach: f64, times: [f64; 3], more: &[&str]| {
        let text = format!(
            r#"{{"format":"polycast-parameters","version":1,"measured":{{"when":"","where":"","how":""}},
            "classes":{{"same-switch":{{"latency":{},"gap":{}}}}}}}"#,
            curve(0.0, [1e4; 3]),
            curve(reach, times)
        );
        fs::write(world.path().join("p.json"), text).unwrap();
        let words = ["predict", "--params", "p.json", "--ranks", "4", "--bytes", "1KiB"];
        let ended = world.polycast(&[&words[..], more].concat()).output().unwrap();
        assert!(ended.status.success());
        String::from_utf8(ended.stderr).unwrap().replace('\n', " ")
    };
    let straight = [1e4, 2e4, 6.5e5];
    assert_eq!(said(0.02, straight, &[]), "");
    assert!(
        said(0.4, straight, &[])
            .contains("same-switch: the 95 % intervals of what was measured reach 40 % far")
    );
    assert_eq!(said(0.02, straight, &["--models"]), "");
    let stepped = said(0.02, [1e4, 5e6, 6e6], &["--models"]);
    assert!(stepped.contains("a line misses what was measured by "), "{stepped}");
}
