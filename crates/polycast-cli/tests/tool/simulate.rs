//! `polycast simulate`.

use crate::fake::{World, error, output};
use serde_json::Value;

fn simulate(arguments: &[&str]) -> String {
    output(&mut World::with_doors(&[]).polycast(&[&["simulate"], arguments].concat()))
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&simulate(&[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn the_last_line_has_the_totals_and_a_seed_means_the_same_each_time() {
    let arguments = ["--protocol", "--seeds", "100", "--first-seed", "7", "--nodes", "2..9"];
    let text = simulate(&arguments);
    assert!(text.starts_with("100 seeds, 0 failures, ") && text.contains("\n100 runs, "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (mut first, mut second) = (json(&arguments), json(&arguments));
    for result in [&mut first, &mut second] {
        assert!(result["seconds"].take().is_number());
    }
    assert_eq!(first, second);
    assert_eq!(first["runs"], 100);
    assert!(first["lost"].as_u64().unwrap() > 0 && first["failures"].as_array().unwrap().is_empty());
}

#[test]
fn one_seed_is_told_step_by_step() {
    let text = simulate(&["--protocol", "--seed", "5", "--verbose"]);
    for part in
        ["Scenario {", "seed: 5", "calls 0:0 multicast-", "returns from 0:0", "everything held; 1 runs"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn experiments_have_a_line_for_each_case() {
    let scaling =
        json(&["--scaling", "--nodes", "2,32", "--broadcasts", "5", "--bytes", "1KiB", "--loss", "1%"]);
    assert_eq!(scaling["loss"], 0.01);
    let completions = scaling["completions"].as_array().unwrap();
    assert_eq!(completions.len(), 2 * 5);
    for of_two_and_more in completions.chunks(2) {
        let [two, more] = [0, 1].map(|index| of_two_and_more[index]["median_us"].as_f64().unwrap());
        assert!(two > 30.0 && more >= two, "more nodes take no less: {of_two_and_more:?}");
    }
    let sync = json(&["--root-sync", "--nodes", "4", "--broadcasts", "5", "--bytes", "64KiB"]);
    let results = sync["results"].as_array().unwrap();
    assert_eq!(results.len(), 2 * 5 * 4);
    // Where nobody is late, a root that waits 50 us takes 50 us longer.
    let completion = |sync: &str| {
        let wanted = |result: &&Value| {
            result["form"] == "pull" && result["arrival"] == "all together" && result["sync"] == sync
        };
        results.iter().find(wanted).unwrap()["completion_us"].as_f64().unwrap()
    };
    assert!((completion("50us") - completion("none") - 50.0).abs() < 1e-6, "{results:?}");
}

/// With o = 5 us, L = 25 us, 8 ns per byte, and 66 bytes around each packet of up to 1472: such a packet takes 12.304 us of a port.
#[test]
fn collectives_take_what_can_be_reckoned_by_hand() {
    let (o, l, packet, empty) = (5_000, 25_000, 8 * (1472 + 66), 8 * 66);
    let times = |collective: &str, further: &[&str]| -> Vec<[u64; 2]> {
        let found = json(&[&["--collective", collective, "--nodes", "4"], further].concat());
        assert_eq!(found["collective"], collective);
        let ns = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e3).round() as u64;
        let results = found["results"].as_array().unwrap();
        results.iter().map(|result| [&result["completion_us"], &result["wire_us"]].map(ns)).collect()
    };
    let of_a_packet =
        |collective, algorithm| times(collective, &["--algorithms", algorithm, "--bytes", "1472"])[0];
    let hop = o + l + packet + o;
    assert_eq!(of_a_packet("bcast", "binomial"), [2 * hop, packet]);
    // Three packets meet at the root's port.
    assert_eq!(of_a_packet("gather", "flat"), [o + l + 3 * packet + o, 3 * packet]);
    // Two rounds. The slowest rank copies its 1472 bytes, at 0.1 ns each, adds to them twice, and once copies the sum back.
    assert_eq!(
        of_a_packet("allreduce", "recursive-doubling"),
        [2 * hop + 4 * 147, 8 * (1472 / 4 * 6 + 2 * 66)]
    );
    let two_rounds = 2 * (o + l + empty + o);
    assert_eq!(times("barrier", &[]), [[two_rounds, 0]]);
    // All that are compared, for each size.
    let scatters = times("scatter", &["--bytes", "8,1KiB", "--cluster", "infiniband"]);
    assert!(scatters.len() >= 4 && scatters.iter().all(|[took, wire]| took > wire), "{scatters:?}");
    let text = simulate(&["--collective", "MPI_Allreduce", "--nodes", "3,8", "--bytes", "5,64KiB"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with(" ALGORITHM") && text.contains("halving-doubling"), "{text}");
}

/// Two ranks of a node use its link one after the other, and so do two nodes that of their switch, which is ten times slower; what comes from the
/// root's node or switch is there before them.
#[test]
fn ranks_and_switches_share_links() {
    let (o, l, packet) = (5_000, 25_000, 8 * (1472 + 66));
    let times = |further: &[&str]| -> Vec<[u64; 3]> {
        let found = json(&[&["--collective", "gather", "--bytes", "1472"], further].concat());
        let ns = |value: &Value| (value.as_f64().unwrap_or(0.0) * 1e3).round() as u64;
        let of = |it: &Value| [it["ranks"].as_u64().unwrap(), ns(&it["completion_us"]), ns(&it["wire_us"])];
        found["results"].as_array().unwrap().iter().map(of).collect()
    };
    let flat = ["--algorithms", "flat"];
    let on_nodes = times(&[&flat[..], &["--nodes", "2", "--ranks-per-host", "2"]].concat());
    assert_eq!(on_nodes, [[4, o + l + 2 * packet + o, 2 * packet]]);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("topology.conf");
    let leaves = "SwitchName=s0 Nodes=n[0,2] LinkSpeed=1000\nSwitchName=s1 Nodes=n[1,3] LinkSpeed=1000\n";
    std::fs::write(&file, format!("{leaves}SwitchName=top Switches=s[0-1] LinkSpeed=100\n")).unwrap();
    let over_switches = [&flat[..], &["--topology", file.to_str().unwrap()]].concat();
    assert_eq!(times(&over_switches), [[4, o + l + 20 * packet + o, 20 * packet]]);
    let of_two = times(&[&over_switches[..], &["--nodes", "2"]].concat());
    assert_eq!(of_two, [[2, o + l + 10 * packet + o, 10 * packet]]);

    let text = simulate(&["--collective", "allgather", "--nodes", "2", "--ranks-per-host", "2"]);
    assert!(text.contains(" two-level:between=bruck ") && text.contains(" 2 × 2 "), "{text}");
}

/// Receivers that a file lets come 3 ms after the root are those of the case that is built in, whoever the recorded root was.
#[test]
fn nodes_call_as_the_ranks_of_a_job_did() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.arrivals");
    let rows = "1 3000000 0 3000000 3000000\n0 0 3000000 3000000 3000000\n";
    std::fs::write(&file, format!("polycast-arrivals 1\n# a.out\nranks 4\n{rows}")).unwrap();
    let measured = ["--root-sync", "--broadcasts", "5", "--bytes", "64KiB"];
    let recorded = json(&[&measured[..], &["--arrival", file.to_str().unwrap()]].concat());
    let recorded = recorded["results"].as_array().unwrap();
    let known = json(&[&measured[..], &["--nodes", "4"]].concat());
    let known: Vec<&Value> =
        known["results"].as_array().unwrap().iter().filter(|it| it["arrival"] == "root 3 ms early").collect();
    assert_eq!((recorded.len(), known.len()), (2 * 4, 2 * 4));
    for (one, other) in recorded.iter().zip(known) {
        assert_eq!(one["arrival"], "as recorded");
        assert_eq!([&one["form"], &one["sync"]], [&other["form"], &other["sync"]]);
        for key in ["completion_us", "after_last_call_us", "repaired_per_receiver"] {
            let [one, other] = [one, other].map(|result| result[key].as_f64().unwrap());
            assert!((one - other).abs() < 1e-6, "{key}: {one} {other}");
        }
    }
}

#[test]
fn trees_on_wormhole_networks_are_compared_and_the_ordered_ones_do_not_wait() {
    let arguments = ["--mesh", "8x8", "--group", "16", "--quick", "--placements", "2"];
    let text = simulate(&arguments);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let found = json(&arguments);
    let points = found["points"].as_array().unwrap();
    let waiting = |tree: &str| {
        let point = points.iter().find(|point| point["tree"] == tree).unwrap();
        point["contention_rate"].as_f64().unwrap()
    };
    assert_eq!((points.len(), waiting("u-mesh"), waiting("opt-mesh")), (6, 0.0, 0.0));
}

#[test]
fn a_multicast_is_drawn_with_what_stood_still() {
    let world = World::with_doors(&[]);
    let run = |tree: &str| {
        let arguments = ["simulate", "--mesh", "8x8", "--group", "48", "--tree", tree, "--bytes", "16KiB"];
        output(&mut world.polycast(&[&arguments[..], &["--quick", "--trace", "trace.svg"]].concat()));
        std::fs::read_to_string(world.path().join("trace.svg")).unwrap()
    };
    let bars = |svg: &str, colour: &str| svg.matches(&format!("fill=\"{colour}\"")).count();
    let (unordered, ordered) = (run("opt-tree"), run("opt"));
    // One of each colour is the legend's.
    assert!(bars(&unordered, "#d55e00") > 1 && bars(&ordered, "#d55e00") == 1);
    assert!(bars(&ordered, "#0072b2") > 47 && bars(&ordered, "#c8c8c8") == 1, "{ordered}");
}

#[test]
fn a_figure_goes_on_after_its_last_point() {
    let world = World::with_doors(&[]);
    let arguments = ["simulate", "--figure", "5.9", "--quick", "--placements", "1", "--out", "figures"];
    let first = output(&mut world.polycast(&arguments));
    assert!(first.starts_with("Figure 5.9: 32 nodes on a mesh"), "{first}");
    let figures = world.path().join("figures");
    let svg = std::fs::read_to_string(figures.join("figure-5.9.svg")).unwrap();
    assert!(["OPT-Mesh", "OPT-Tree", "U-Mesh"].iter().all(|tree| svg.contains(tree)), "{svg}");

    // A point that is there is believed, one that was being written is measured again.
    let points = std::fs::read_to_string(figures.join("points.jsonl")).unwrap();
    let (kept, cut) = points.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(kept.lines().count() + 1, 15);
    let changed = kept.replacen("\"multicasts\":", "\"multicasts\":7000", 1);
    std::fs::write(figures.join("points.jsonl"), format!("{changed}\n{}", &cut[..cut.len() / 2])).unwrap();
    output(&mut world.polycast(&arguments));
    let again: Value =
        serde_json::from_slice(&std::fs::read(figures.join("figure-5.9.json")).unwrap()).unwrap();
    let points = again["points"].as_array().unwrap();
    assert_eq!(points.iter().filter(|point| point["multicasts"].as_u64() >= Some(7000)).count(), 1);
    assert_eq!(std::fs::read_to_string(figures.join("points.jsonl")).unwrap().lines().count(), 16);
}

#[test]
fn what_cannot_be_is_refused_and_told() {
    let world = World::with_doors(&[]);
    let refused =
        |arguments: &[&str], status| error(&mut world.polycast(&[&["simulate"], arguments].concat()), status);
    assert!(refused(&[], 2).contains("--protocol|--scaling|--root-sync"));
    assert!(refused(&["--mesh", "16"], 2).contains("expected a mesh such as 16x16"));
    assert!(refused(&["--min", "16"], 2).contains("--group 64 --groups 1: min:16 has 16 nodes"));
    assert!(refused(&["--min", "64", "--load", "0.1"], 2).contains("expected 2 or more outside"));
    assert!(refused(&["--figure", "6.1"], 2).contains("expected all, or one of 5.9 5.10"));
    assert!(refused(&["--protocol", "--nodes", "1..4"], 2).contains("expected a number from 2 to 65536"));
    assert!(refused(&["--protocol", "--nodes", "9..4"], 2).contains("expected a range such as 2..64"));
    assert!(refused(&["--scaling", "--bytes", "0"], 2).contains("expected at least 1"));
    for unused in [
        "--root-sync --loss 1%",
        "--scaling --quick",
        "--mesh 4x4 --nodes 9",
        "--mesh 4x4 --broadcasts 7",
        "--scaling --seeds 3",
        "--figure 6.7 --bytes 64KiB",
        "--root-sync --placements 3",
        "--scaling --tree u",
        "--root-sync --cluster gigabit",
        "--root-sync --algorithms chain",
        "--scaling --ranks-per-host 2",
        "--collective bcast --loss 1%",
        "--collective bcast --seed 1",
        "--collective bcast --quick",
    ] {
        let words: Vec<&str> = unused.split(' ').collect();
        assert!(refused(&words, 2).contains("cannot be used with"), "{unused}");
    }
    let collective = |name: &str, further: &str, status| {
        let words = further.split(' ').filter(|word| !word.is_empty());
        refused(&["--collective", name].into_iter().chain(words).collect::<Vec<_>>(), status)
    };
    assert!(collective("scan", "", 2).contains("expected one of bcast, scatter"));
    assert!(
        collective("reduce", "--algorithms rng", 2).contains("unknown algorithm \"rng\", expected one of")
    );
    assert!(
        collective("reduce", "--algorithms ring", 2).contains("ring serves allgather, allreduce, not reduce")
    );
    assert!(collective("bcast", "--algorithms multicast-push", 2).contains("multicast is in --scaling"));
    assert!(collective("allgather", "--ranks-per-host 2 --algorithms direct", 2).contains("between nodes"));
    assert!(collective("barrier", "--bytes 8", 2).contains("--bytes changes nothing"));
    assert!(collective("allgather", "--bytes 1GiB", 2).contains("16GiB or less for all 16 ranks"));
    assert!(collective("alltoall", "--bytes 1 --nodes 2000", 1).contains("steps of all ranks"));
    assert!(refused(&["--figure", "6.7", "--seed", "5"], 2).contains("--seed changes nothing"));
    assert!(refused(&["--figure", "s0.18", "--placements", "3"], 2).contains("--placements changes nothing"));
    assert!(refused(&["--scaling", "--bytes", "1TiB"], 2).contains("16GiB or less for all 16 ranks"));
    assert!(
        refused(&["--mesh", "4x4", "--group", "4", "--bytes", "18446744073709551615"], 2).contains("or less")
    );
    assert!(refused(&["--scaling", "--loss", "lots"], 2).contains("expected a percentage such as 0.1%"));
    assert!(refused(&["--protocol", "--verbose"], 2).contains("--seed"));
    let arrival = |file: &str, status| refused(&["--root-sync", "--arrival", file], status);
    assert!(arrival("/dev/null", 1).contains("expected polycast-arrivals 1"));
    assert!(arrival("/nowhere", 1).contains("--arrival /nowhere: No such file"));
}

/// A cluster of one's own: a faster link makes a long broadcast faster, by about what the wire takes less.
#[test]
fn networks_of_ones_own_are_simulated_and_drawn() {
    let world = World::with_doors(&[]);
    let run = |more: &[&str]| -> Value {
        let arguments = [
            "simulate",
            "--collective",
            "bcast",
            "--nodes",
            "8",
            "--bytes",
            "64KiB,1MiB",
            "--algorithms",
            "binomial",
            "--json",
        ];
        serde_json::from_str(&output(&mut world.polycast(&[&arguments[..], more].concat()))).unwrap()
    };
    let us = |found: &Value| found["results"][1]["completion_us"].as_f64().unwrap();
    let ten = run(&["--cluster", "10gbe"]);
    let faster = [run(&["--cluster", "25gbe"]), run(&["--cluster", "100gbe"])];
    assert!(us(&ten) > us(&faster[0]) && us(&faster[0]) > us(&faster[1]), "{ten} {faster:?}");
    let own = run(&["--cluster", "10gbe", "--rate", "40gbit", "--latency", "5us"]);
    assert_eq!(own["cluster"], "G = 0.20 ns per byte (40000 Mb/s), o = 3.00 µs, L = 5.00 µs");
    let file = format!("{}/../../examples/params/lab-20mbit.json", env!("CARGO_MANIFEST_DIR"));
    let measured = run(&["--params", &file, "--svg", "it.svg"]);
    assert!(us(&measured) > 1e6 && measured["cluster"].as_str().unwrap().starts_with("G = "), "{measured}");
    let svg = std::fs::read_to_string(world.path().join("it.svg")).unwrap();
    for text in
        ["MPI_Bcast, 8 nodes, in virtual time", "64 KiB", "binomial", "the wire", "Simulated by polycast"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    let said =
        error(&mut world.polycast(&["simulate", "--scaling", "--params", &file, "--rate", "1gbit"]), 2);
    assert!(said.contains("--params") && said.contains("--rate"), "{said}");
}

#[test]
fn scaling_is_drawn() {
    let world = World::with_doors(&[]);
    let arguments = ["simulate", "--scaling", "--nodes", "2,4", "--broadcasts", "2", "--bytes", "1KiB,4KiB"];
    output(&mut world.polycast(&[&arguments[..], &["--svg", "it.svg"]].concat()));
    let svg = std::fs::read_to_string(world.path().join("it.svg")).unwrap();
    for text in ["binomial, 1KiB", "multicast-push, 4KiB", "nodes", "95 % interval"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
}
