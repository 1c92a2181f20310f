//! `polycast explain`.

use std::fs;

use crate::fake::{World, error, output};
use serde_json::Value;

const TABLE: &str = r#"version = 1

[[rule]]
collective = "bcast"
nodes = 1
use = "stock"

[[rule]]
collective = "bcast"
ranks_per_node = 4
bytes = "64KiB.."
use = "chain:segment=8KiB"
because = "16 hosts, 100 Mb/s"
"#;

fn world() -> World {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("cluster.toml"), TABLE).unwrap();
    world
}

fn explain(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let mut command =
        world.polycast(&[&["explain", "--json", "--table", "cluster.toml"], arguments].concat());
    serde_json::from_str(&output(command.envs(environment.iter().copied()))).unwrap()
}

#[test]
fn the_rule_that_decides_is_named_with_its_line_and_reason() {
    let world = world();
    let answer = explain(&world, &["--ranks", "16", "--nodes", "4", "--bytes", "1MiB"], &[]);
    let decision = &answer["decision"];
    assert_eq!(decision["choice"], "chain:segment=8KiB");
    assert_eq!(decision["decided_by"], "cluster.toml");
    assert_eq!(decision["line"], 8);
    assert_eq!(decision["because"], "16 hosts, 100 Mb/s");
    assert_eq!(decision["looked_at"][0]["verdict"], "is for 1 node, not 4");
    assert_eq!(answer["ranks_per_node"], 4);
}

#[test]
fn without_a_matching_rule_it_is_stock() {
    let answer = explain(&world(), &["--ranks", "16", "--bytes", "1MiB"], &[]);
    assert_eq!(answer["decision"]["choice"], "stock");
    assert_eq!(answer["decision"]["line"], Value::Null);
    assert_eq!(answer["decision"]["looked_at"][1]["verdict"], "is for 4 ranks on the fullest node, not 1");
}

#[test]
fn without_a_size_every_size_is_shown() {
    let answer = explain(&world(), &["--ranks", "16", "--nodes", "4"], &[]);
    let sizes: Vec<_> =
        answer["sizes"].as_array().unwrap().iter().map(|size| size["from_bytes"].as_u64()).collect();
    assert_eq!(sizes, [Some(0), Some(65536)]);
}

#[test]
fn the_environment_counts_and_is_named() {
    let world = world();
    let call = ["--ranks", "16", "--nodes", "4", "--bytes", "1MiB"];
    let forced = explain(&world, &call, &[("POLYCAST_BCAST", "binomial")]);
    assert_eq!(forced["decision"]["choice"], "binomial");
    assert_eq!(forced["decision"]["decided_by"], "environment");
    assert!(forced["notes"].to_string().contains("POLYCAST_BCAST=binomial: forced"), "{forced}");
    // The library takes each of these for "off", so the tool must.
    for word in ["off", "OFF", "0", "no", "false"] {
        let off = explain(&world, &call, &[("POLYCAST_BCAST", "binomial"), ("POLYCAST", word)]);
        assert_eq!(off["decision"]["choice"], "stock", "POLYCAST={word}");
    }

    let mut command = world.polycast(&[&["explain"], &call[..]].concat());
    let text = output(command.env("POLYCAST_TABLE", "cluster.toml"));
    assert!(text.contains("chain:segment=8KiB\n  decided by cluster.toml, line 8\n"), "{text}");
    assert!(text.contains("POLYCAST_TABLE=cluster.toml: in place of the shipped table"), "{text}");
}

/// As in a job: a forced multicast that the network does not carry leaves the decision to the shipped table.
#[test]
fn a_forced_multicast_needs_multicast() {
    let world = world();
    let call = ["--ranks", "16", "--bytes", "1MiB", "--no-multicast"];
    let environment = [("POLYCAST_BCAST", "multicast-pull")];
    let forced = explain(&world, &call, &environment);
    assert_eq!(forced["decision"]["choice"], "chain:segment=3KiB,ready", "{forced}");
    assert!(forced["decision"]["line"].is_number(), "{forced}");
    let with = explain(&world, &call[..4], &environment);
    assert_eq!(with["decision"]["choice"], "multicast-pull", "{with}");
    let sizes = explain(&world, &["--ranks", "16", "--no-multicast"], &environment);
    assert!(!sizes["sizes"].to_string().contains("multicast"), "{sizes}");
}

#[test]
fn calls_are_counted() {
    let world = world();
    let rule = "[[rule]]\ncollective = 'bcast'\n";
    let table = format!("version = 1\n{rule}earlier_calls = '..3'\nuse = 'stock'\n{rule}use = 'flat'\n");
    fs::write(world.path().join("cluster.toml"), table).unwrap();
    let chosen = |earlier: &str| {
        let answer = explain(&world, &["--ranks", "4", "--bytes", "1KiB", "--earlier-calls", earlier], &[]);
        answer["decision"]["choice"].as_str().unwrap().to_owned()
    };
    assert_eq!(["0", "2", "3"].map(chosen), ["stock", "stock", "flat"]);
    let text = output(&mut world.polycast(&["explain", "--ranks", "4", "--table", "cluster.toml"]));
    assert!(text.contains("stock\nafter 3 earlier calls\n  from        0   flat\n"), "{text}");
}

#[test]
fn the_shipped_table_answers_by_itself() {
    let text =
        output(&mut world().polycast(&["explain", "--ranks", "16", "--nodes", "16", "--bytes", "1MiB"]));
    assert!(text.contains("decided by shipped tuning/default.toml, line "), "{text}");
    assert!(!text.contains("rules looked at") && text.contains("--all lists them"), "{text}");
    let all = ["explain", "--ranks", "16", "--nodes", "16", "--bytes", "1MiB", "--all"];
    let all = output(&mut world().polycast(&all));
    assert!(all.contains("rules looked at") && all.contains("matches") && !all.contains("is for scatter"));
    let short = output(&mut world().polycast(&["explain", "--ranks", "4", "--bytes", "8"]));
    assert!(short.starts_with("bcast of 8 bytes, "), "{short}");
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let world = world();
    for (arguments, status, expected) in [
        (
            &["--collective", "scan", "--ranks", "2"][..],
            2,
            "unknown collective \"scan\", expected one of bcast",
        ),
        (&["--ranks", "2", "--bytes", "many"], 2, "expected a size such as"),
        (&["--ranks", "2", "--nodes", "3"], 2, "2 ranks on 3 nodes"),
        (&["--ranks", "8", "--nodes", "4", "--ranks-per-node", "1"], 2, "expected 2 to 5 ranks"),
        (&["--ranks", "2", "--table", "none.toml"], 1, "table none.toml: No such file"),
    ] {
        let said = error(&mut world.polycast(&[&["explain"], arguments].concat()), status);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn what_jobs_of_this_user_compared_is_told() {
    let world = world();
    let finding = |first_bytes: u64, stays: &str| {
        serde_json::json!({
            "version": 1, "mpi": "/lib/libmpi.so.40", "hosts": "node#", "build": "9f",
            "ranks": 16, "nodes": 16, "ranks_per_node": 1, "switches": 1,
            "collective": "bcast", "first_bytes": first_bytes, "interval": 0, "epoch": 0, "capabilities": 3,
            "ways": [{"choice": "multicast-pull", "nanos": 2_100_000}, {"choice": "stock", "nanos": 9_000_000}],
            "stays": stays, "again": 1024, "day": 1u64 << 40,
        })
    };
    let text = format!("{}\n{{\n{}\n", finding(1 << 20, "multicast-pull"), finding(1 << 16, "stock"));
    fs::write(world.path().join("trials.jsonl"), text).unwrap();
    let folder = world.path().to_string_lossy().into_owned();
    let notes = |bytes: &str| {
        let arguments = ["--ranks", "16", "--bytes", bytes];
        explain(&world, &arguments, &[("POLYCAST_CACHE", &folder)])["notes"].to_string()
    };
    let told = "compared by a job on node# above /lib/libmpi.so.40: multicast-pull 2.10 ms, stock 9.00 ms: multicast-pull stays";
    assert!(notes("1500KiB").contains(told), "{}", notes("1500KiB"));
    assert!(notes("64KiB").contains("stock stays"));
    assert!(!notes("2MiB").contains("compared"));
}

/// What a broadcast on two levels is predicted to take, and which mode says so; for ranks that nobody has measured, who learns it.
#[test]
fn the_mode_that_decided_is_named() {
    let world = world();
    let point =
        |bytes: u64, ns: u64| format!(r#"{{"bytes":{bytes},"ns":{ns},"low":{ns},"high":{ns},"samples":9}}"#);
    let line = |per_byte: u64| format!("[{},{}]", point(0, 1000), point(1 << 20, 1000 + (per_byte << 20)));
    let parameters = |sharing: u64| {
        format!(
            r#"{{"format":"polycast-parameters","version":1,"measured":{{"when":"","where":"","how":""}},
            "classes":{{"same-switch":{{"latency":{},"gap":{}}}}},"sharing":[{{"collective":"bcast","ranks":4,"cost":{}}},{{"collective":"reduce","ranks":4,"cost":{}}}]}}"#,
            line(0),
            line(8),
            line(sharing),
            line(sharing)
        )
    };
    let explained = |sharing, nodes: &str, choice: &str| {
        fs::write(world.path().join("p.json"), parameters(sharing)).unwrap();
        let arguments = ["--ranks", "16", "--nodes", nodes, "--bytes", "1MiB", "--params", "p.json"];
        explain(&world, &arguments, &[("POLYCAST_BCAST", choice)])
    };
    let of = |sharing, choice| explained(sharing, "4", choice)["decision"]["two_level"].clone();
    let chosen = "two-level:between=chain,segment=16KiB";
    for (sharing, choice, equation) in [
        (1, chosen, "4.4"),
        (20, chosen, "4.3"),
        (1, "two-level:between=chain,overlap=none,segment=16KiB", "4.3.3"),
    ] {
        let found = of(sharing, choice);
        assert_eq!((&found["equation"], &found["is_choice"]), (&equation.into(), &true.into()), "{found}");
        assert_eq!(found["algorithm"], choice);
    }
    assert_eq!(of(1, "chain")["is_choice"], false, "the best one on two levels stands beside it");
    let unknown = explained(1, "8", chosen);
    assert_eq!(unknown["decision"]["two_level"], Value::Null);
    assert!(unknown["notes"].to_string().contains("polycast measure --ranks-per-host 2"), "{unknown}");
    let arguments = ["explain", "--ranks", "16", "--nodes", "4", "--bytes", "1MiB", "--params", "p.json"];
    let page = output(world.polycast(&arguments).env("POLYCAST_BCAST", chosen));
    assert!(page.contains("mode: complete overlap"), "{page}");
    let allreduce = [&arguments[1..], &["--collective", "allreduce"]].concat();
    for (choice, equation) in [("two-level:between=chain,segment=64KiB", "4.4"), ("two-level", "4.3.3")] {
        let found =
            explain(&world, &allreduce, &[("POLYCAST_ALLREDUCE", choice)])["decision"]["two_level"].clone();
        assert_eq!((&found["algorithm"], &found["equation"]), (&choice.into(), &equation.into()), "{found}");
    }
}

/// A job without multicast has the memory that ranks of a node share all the same, unless that is switched off, too.
#[test]
fn without_multicast_memory_is_still_shared() {
    let world = world();
    let of = |collective: &str, further: &[&str], off: &[&str]| {
        let arguments = ["explain", "--json", "--collective", collective, "--ranks", "8", "--nodes", "4"];
        let call = ["--bytes", "64KiB", "--rate", "100mbit", "--earlier-calls", "60"];
        let mut command = world.polycast(&[&arguments[..], &call, further].concat());
        off.iter().for_each(|name| {
            command.env(name, "off");
        });
        let answer: Value = serde_json::from_str(&output(&mut command)).unwrap();
        answer["decision"]["choice"].as_str().unwrap().to_owned()
    };
    for (further, off) in [(&["--no-multicast"][..], &[][..]), (&[], &["POLYCAST_MULTICAST"])] {
        assert_eq!(of("bcast", further, off), "two-level:between=chain,segment=3KiB");
        assert_eq!(of("reduce", &[further, &["--exact"]].concat(), off), "two-level:segment=3KiB");
        assert_eq!(of("reduce", further, off), "two-level:between=pairwise,segment=8KiB");
        let off = [off, &["POLYCAST_SHARED_MEMORY"]].concat();
        assert!(!of("bcast", further, &off).starts_with("two-level"), "{further:?}");
        assert_eq!(of("reduce", further, &off), "stock");
    }
}

/// Of a size without a number of calls it is said from which on what serves.
#[test]
fn what_serves_later_calls_is_said() {
    let world = world();
    let ask = ["explain", "--ranks", "4", "--nodes", "1", "--bytes", "64KiB"];
    let answer: Value =
        serde_json::from_str(&output(&mut world.polycast(&[&ask[..], &["--json"]].concat()))).unwrap();
    let decision = &answer["decision"];
    assert_eq!(
        (&decision["choice"], &decision["later"][0]["choice"]),
        (&"stock".into(), &"two-level".into())
    );
    assert_eq!(decision["later"][0]["earlier_calls"], 32);
    assert!(!answer["notes"].to_string().contains("polycast tune"), "it is served: {answer}");
    let text = output(&mut world.polycast(&ask));
    assert!(text.replace('\n', " ").contains(": stock, from the 33rd call on two-level"), "{text}");
    assert!(text.contains("\n  from the 33rd call on: two-level, line "), "{text}");
    let first = output(&mut world.polycast(&[&ask[..], &["--earlier-calls", "0"]].concat()));
    assert!(!first.contains("33rd"), "who names calls is told of these: {first}");
    assert!(first.contains("is for 32 or more earlier calls, not 0"), "{first}");
}

/// Where rules end, it is said what they are for, and who finds out more.
#[test]
fn where_nothing_is_known_it_is_said_how_to_find_out() {
    let world = world();
    for more in [&["--bytes", "64KiB"][..], &[]] {
        let ask = [&["explain", "--ranks", "64", "--nodes", "1"][..], more].concat();
        let text = output(&mut world.polycast(&ask));
        let joined = text.replace("\n", " ");
        assert!(
            text.contains("nearest miss: line ") && text.contains("is for 3 to 16 ranks, not 64"),
            "{text}"
        );
        assert!(joined.contains("`polycast tune`") && text.contains("POLYCAST_TUNE=20s"), "{text}");
        assert!(joined.contains("compared with the MPI"), "{text}");
        assert!(text.lines().count() < 24, "the answer stays in sight: {text}");
    }
    let forced =
        output(world.polycast(&["explain", "--ranks", "64", "--nodes", "1"]).env("POLYCAST_BCAST", "stock"));
    assert!(!forced.contains("polycast tune"), "who forces it wants no other: {forced}");
}

/// Of clusters that no rule is for, a job finds out by itself: it is said what it will compare, and from when on.
#[test]
fn what_a_job_will_compare_is_told() {
    let world = world();
    let explain = |more: &[&str], environment: &[(&str, &str)]| -> Value {
        let shape = ["--ranks", "4096", "--nodes", "64", "--rate", "20gbit", "--latency", "20us", "--json"];
        let mut command = world.polycast(&[&["explain"], &shape[..], more].concat());
        serde_json::from_str(&output(command.envs(environment.iter().copied()))).unwrap()
    };
    for collective in ["allreduce", "allgather", "alltoall", "barrier", "gather", "reduce", "scatter"] {
        let exact = ["allreduce", "reduce"].contains(&collective).then_some("--exact");
        let asked = ["--collective", collective, "--bytes", "64"].into_iter().chain(exact);
        let answer = explain(&asked.collect::<Vec<_>>(), &[]);
        assert_eq!(answer["decision"]["choice"], "stock");
        let compared = &answer["compared"][0];
        assert_eq!(compared["earlier_calls"], 256, "{answer}");
        let challengers = compared["challengers"].as_array().unwrap();
        assert!((1..=3).contains(&challengers.len()), "{answer}");
        let times = challengers.iter().map(|way| way["predicted_ns"].as_u64().unwrap());
        assert!(times.is_sorted(), "{answer}");
        assert!(answer["notes"].to_string().contains("within 2 %"), "{answer}");
    }
    let allreduce = ["--collective", "allreduce", "--bytes", "64KiB", "--exact"];
    assert_eq!(explain(&allreduce, &[])["compared"][0]["earlier_calls"], 32);
    let nothing = |more: &[&str], environment: &[(&str, &str)]| {
        let answer = explain(&[&allreduce[..], more].concat(), environment);
        assert_eq!(answer["compared"], Value::Null, "{answer}");
    };
    nothing(&[], &[("POLYCAST_TRIALS", "off")]);
    nothing(&[], &[("POLYCAST_ALLREDUCE", "stock")]);
    nothing(&["--table", "cluster.toml"], &[]);
    let text =
        output(&mut world.polycast(&["explain", "--collective", "gather", "--ranks", "64", "--nodes", "16"]));
    assert!(text.contains("compared with the MPI, from the 257th call on at the latest"), "{text}");
}

/// What is combined are floating-point numbers, unless it is said otherwise: from the first call on, by a way that keeps their order.
#[test]
fn sums_go_one_way() {
    let world = world();
    let of = |further: &[&str], sums: &str| {
        let arguments = ["explain", "--json", "--collective", "allreduce", "--bytes", "1KiB"];
        let mut command = world.polycast(&[&arguments[..], further].concat());
        let answer: Value =
            serde_json::from_str(&output(command.env("POLYCAST_SUMS", sums))).expect("one JSON object");
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [choice, by] = ["choice", "decided_by"].map(|key| word(&answer["decision"][key]));
        (choice, word(&answer["sums"]), by, answer["decision"]["later"].clone())
    };
    let node = ["--ranks", "8", "--nodes", "1", "--ranks-per-processor", "4"];
    let (choice, sums, by, later) = of(&node, "");
    assert_eq!((choice.as_str(), sums.as_str(), later), ("cells", "auto", Value::Null));
    assert!(by.contains("default.toml"), "{by}");
    let (exact, sums, _, later) = of(&[&node[..], &["--exact"]].concat(), "");
    assert_eq!((exact.as_str(), sums.as_str()), ("stock", ""));
    assert_eq!(later[0]["choice"], "cells");
    assert_eq!(of(&[&node[..], &["--subset"]].concat(), "").0, "stock");
    assert_eq!((of(&node, "mpi").0, of(&node, "mpi").2), ("stock".to_owned(), "environment".to_owned()));
    // Three ranks of a node are no part of the tree of nine.
    for (ranks, expected) in [("8", "two-level:between=recursive-doubling"), ("9", "recursive-doubling")] {
        let nodes = if ranks == "8" { "2" } else { "3" };
        let (choice, sums, by, _) = of(&["--ranks", ranks, "--nodes", nodes], "canonical");
        assert_eq!((choice.as_str(), sums.as_str()), (expected, "canonical"));
        assert!(ranks == "8" || by.contains("sums.toml"), "{by}");
    }
}
