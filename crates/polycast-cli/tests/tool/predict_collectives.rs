//! `polycast predict --collective`.

use std::fs;

use serde_json::Value;

use crate::fake::error;
use crate::predict::{predict, world};

/// Four ranks on one switch, by the same parameters: g(1 KiB) = 89 us, L(1 KiB) = 250 us.
#[test]
fn all_eight_collectives_are_predicted() {
    let world = world();
    let of = |collective, further: &[&str]| {
        let common = ["--ranks", "4", "--bytes", "1KiB", "--json", "--collective", collective];
        let answer: Value = serde_json::from_str(&predict(&world, &[&common[..], further].concat())).unwrap();
        assert_eq!(answer["collective"], collective.trim_start_matches("MPI_").to_lowercase());
        answer["sizes"][0]["predictions"][0].clone()
    };
    let ring = of("MPI_Allgather", &["--algorithms", "ring"]);
    assert_eq!((&ring["algorithm"], &ring["time_us"]), (&"ring".into(), &(3.0 * (250.0 + 89.0)).into()));
    // Two exchanges, each with a combination, between two copies at 0.2 ns per byte.
    let us = |combined_us: f64| 2.0 * (250.0 + 89.0 + combined_us) + 2.0 * 0.2048;
    let close = |row: &Value, us: f64| assert!((row["time_us"].as_f64().unwrap() - us).abs() < 0.01, "{row}");
    close(&of("allreduce", &[]), us(0.2048));
    close(&of("allreduce", &["--combine", "1gbit"]), us(8.192));
    for collective in ["bcast", "scatter", "gather", "alltoall", "barrier", "reduce"] {
        let root: &[&str] =
            if ["alltoall", "barrier"].contains(&collective) { &[] } else { &["--root", "3"] };
        assert!(of(collective, root)["time_us"].as_f64().unwrap() > 0.0);
    }
    let text = predict(
        &world,
        &["--ranks", "4", "--collective", "reduce", "--bytes", "1KiB,1MiB", "--svg", "r.svg"],
    );
    assert!(text.starts_with("reduce of 4 ranks, rank 0 being the root\n"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80) && text.contains("binomial:segment="),
        "{text}"
    );
    assert!(fs::read_to_string(world.path().join("r.svg")).unwrap().contains("Predicted reduce of 4 ranks"));
    for (arguments, expected) in [
        (&["--collective", "scan", "--ranks", "2"][..], "expected one of bcast, scatter"),
        (&["--collective", "scatter", "--ranks", "2", "--algorithms", "ring"], "binomial"),
        (&["--collective", "alltoall", "--ranks", "2000"], "can be followed"),
    ] {
        let status = 2;
        let said =
            error(&mut world.polycast(&[&["predict", "--params", "p.json"], arguments].concat()), status);
        assert!(said.contains(expected), "{said}");
    }
}

/// Two nodes of two: between them 339 us for 1 KiB, and on them the same, for nobody measured that.
#[test]
fn measurements_of_any_collective_are_held_against_predictions() {
    let world = world();
    let environment = r#"{"environment":{"hosts":[{"name":"a","ranks":2},{"name":"b","ranks":2}]}}"#;
    let point = |collective: &str, variant: &str, bytes: u32, us: f64| {
        format!(
            r#"{{"collective":"{collective}","variant":"{variant}","bytes":{bytes},"root":"0","median_us":{us}}}"#
        )
    };
    // The largest buffer has four blocks. Two levels: each node's second rank has its part there, the nodes exchange it, and it goes back.
    let lines = [
        environment.to_owned(),
        point("allgather", "ring", 4096, 3.0 * 339.0),
        point("allgatherv", "ring", 4096, 2.0 * 3.0 * 339.0),
        point("reduce", "two-level:between=chain,within=messages", 1024, 2.0 * 339.0),
        point("alltoall", "two-level", 4096, 1.0),
        point("reduce", "two-level", 1024, 1.0),
    ];
    fs::write(world.path().join("r.json"), lines.join("\n")).unwrap();
    let of = |further: &[&str]| predict(&world, &[&["--against", "r.json"], further].concat());
    let answer: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let pairs = answer["pairs"].as_array().unwrap();
    let told: Vec<(&str, f64)> = pairs
        .iter()
        .map(|pair| (pair["collective"].as_str().unwrap(), pair["error"].as_f64().unwrap()))
        .collect();
    let expected = [("allgather", 0.0), ("allgatherv", -0.5), ("reduce", 0.0)];
    assert_eq!(told.len(), expected.len(), "{answer}");
    for (told, expected) in told.iter().zip(expected) {
        // Copies and combinations at 0.2 ns a byte.
        assert!(told.0 == expected.0 && (told.1 - expected.1).abs() < 0.002, "{told:?} and {expected:?}");
    }
    assert_eq!(answer["left_out"], serde_json::json!(["two-level"]));
    let missing = answer["two_level_missing"].as_str().unwrap();
    for expected in ["alltoall on two levels", "what reduce takes among 2 ranks"] {
        assert!(missing.contains(expected), "{expected}: {missing}");
    }
    let text = of(&["--collective", "allgather"]);
    assert!(text.contains("2 predictions") && text.contains("allgatherv ring"), "{text}");
    assert!(!text.contains("reduce"), "{text}");
}

#[test]
fn several_collectives_are_told_one_after_the_other() {
    let world = world();
    let text =
        predict(&world, &["--collective", "all", "--ranks", "4", "--ranks-per-host", "2", "--bytes", "1KiB"]);
    for collective in ["bcast to", "scatter of", "gather of", "allgather of", "alltoall of", "barrier of"] {
        assert!(text.contains(&format!("{collective} 4 ranks")), "{collective}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let of = |further: &[&str]| -> Value {
        let common = ["--ranks", "4", "--bytes", "1KiB", "--collective", "bcast,barrier,allreduce", "--json"];
        serde_json::from_str(&predict(&world, &[&common[..], further].concat())).unwrap()
    };
    let names = |answer: &Value| -> Vec<String> {
        let each = answer["collectives"].as_array().unwrap();
        each.iter().map(|one| one["collective"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["bcast", "barrier", "allreduce"];
    assert_eq!(names(&of(&[])), all);
    assert_eq!(names(&of(&["--models"])), all);
    assert_eq!(names(&of(&["--crossover"])), all);
    // Each gets of a list what serves it.
    assert_eq!(names(&of(&["--algorithms", "dissemination,ring"])), all[1..]);
    let by_messages = of(&["--ranks-per-host", "2", "--algorithms", "two-level:within=messages"]);
    let best = |place: usize| by_messages["collectives"][place]["sizes"][0]["predictions"][0].clone();
    assert_eq!(best(1)["algorithm"], "two-level:within=messages");
    // To the other node, and on both to the second rank: nobody measured messages on a node, so they take as long.
    assert_eq!((&best(0)["time_us"], &best(0)["fill_us"]), (&(2.0 * 339.0).into(), &Value::Null));
}

/// By the same parameters as before, 1 KiB takes 339 us: 2 rounds of 1 and 2 KiB against 3 of 1 KiB for blocks of four ranks.
#[test]
fn from_how_many_nodes_on_another_algorithm_is_ahead() {
    let world = world();
    let arguments =
        ["--collective", "allgather", "--bytes", "1KiB", "--algorithms", "ring,bruck", "--ranks", "40"];
    let of = |further: &[&str]| predict(&world, &[&["--crossover"], &arguments[..], further].concat());
    let answer: Value = serde_json::from_str(&of(&["--json"])).unwrap();
    let size = &answer["sizes"][0];
    assert_eq!(
        (&answer["collective"], &size["fastest"]["algorithm"]),
        (&"allgather".into(), &"bruck".into())
    );
    let from = size["from_nodes"].as_u64().unwrap() as usize;
    let best = |nodes: usize| {
        let nodes = nodes.to_string();
        let further = ["--ranks", &nodes, "--json"];
        let answer: Value =
            serde_json::from_str(&predict(&world, &[&arguments[..6], &further].concat())).unwrap();
        answer["sizes"][0]["best"].as_str().unwrap().to_owned()
    };
    assert!(from > 2 && best(from) == "bruck" && best(from - 1) == "ring", "{size}");
    assert!(of(&[]).contains("FASTEST OF 40"));
    let alone = predict(&world, &["--crossover", "--collective", "barrier", "--ranks", "4"]);
    assert!(alone.contains("no other"), "{alone}");
}
