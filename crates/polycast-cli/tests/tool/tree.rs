//! `polycast tree`.

use std::fs;

use crate::fake::{World, error, output};
use serde_json::Value;

/// Three hosts, the third behind another switch.
const CORNER: &str =
    "SwitchName=s0 Nodes=a,b Switches=s1 LinkSpeed=100\nSwitchName=s1 Nodes=c LinkSpeed=100\n";

fn world() -> World {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("corner.conf"), CORNER).unwrap();
    world
}

/// One of the evaluation topologies of Patarasuk et al. 2008.
fn evaluation(number: u32) -> String {
    format!("{}/../../examples/topologies/{number}.conf", env!("CARGO_MANIFEST_DIR"))
}

fn tree(world: &World, topology: &str, arguments: &[&str]) -> String {
    output(&mut world.polycast(&[&["tree", "--topology", topology], arguments].concat()))
}

fn tree_json(world: &World, topology: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&tree(world, topology, &[&["--json"], arguments].concat())).unwrap()
}

fn contending_pairs(world: &World, topology: u32, arguments: &[&str]) -> u64 {
    tree_json(world, &evaluation(topology), arguments)["contending_pairs"].as_u64().unwrap()
}

#[test]
fn a_tree_is_drawn_with_its_numbers() {
    let text = tree(&world(), "corner.conf", &["--root", "1", "--bytes", "80KiB", "--segment", "8KiB"]);
    let (drawing, numbers) = text.split_once("\n\n").unwrap();
    assert_eq!(drawing, "1 b\n├→ 0 a\n└⇒ 2 c");
    let lines: Vec<_> = numbers.lines().map(str::trim).collect();
    assert_eq!(
        lines[..5],
        [
            "contention-free-binary from rank 1 to 3 ranks on 3 hosts and 2 switches",
            "height            1 (complete binary tree: 1)",
            "most children     2",
            "contending pairs  0",
            "busiest link      b → s0, 2 messages",
        ]
    );
    assert!(lines[5].starts_with("estimated time") && lines[5].ends_with("for 80KiB in segments of 8KiB"));
}

#[test]
fn messages_that_share_a_link_are_marked_and_long_lines_broken() {
    let text = tree(&world(), &evaluation(5), &["--unaware", "--shape", "chain"]);
    assert!(text.starts_with("0 n0 ⇒ 1 n1 ! ⇒ 2 n2 ! ⇒ 3 n3 ! ⇒ 4 n4 !"), "{text}");
    assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // A job knows which ranks share a host: there the message stays inside, and no other goes the same way.
    let text =
        tree(&world(), "corner.conf", &["--hosts-of-ranks", "a,c,b,c", "--unaware", "--shape", "chain"]);
    assert!(text.starts_with("0 a ⇒ 1 c → 3 c ⇒ 2 b\n"), "{text}");
}

/// What Patarasuk et al. 2008, §5.2, say of its topologies must hold for ours, since the figure's wiring is lost.
#[test]
fn the_evaluation_topologies_are_as_the_paper_tells() {
    let world = world();
    let unaware = |topology, shape| contending_pairs(&world, topology, &["--unaware", "--shape", shape]);
    for benign in 1..=4 {
        assert_eq!(unaware(benign, "chain"), 0, "{benign}: a chain by name happens to be contention-free");
    }
    assert!(unaware(5, "chain") > 0, "in topology 5 it is not");
    assert_eq!(unaware(1, "binary"), 0);
    for several_switches in 2..=5 {
        assert!(
            unaware(several_switches, "binary") > 0,
            "{several_switches}: a binary tree by name contends"
        );
    }
    let links = tree_json(&world, &evaluation(5), &["--unaware", "--shape", "chain"]);
    assert_eq!(
        links["busiest_link"]["messages"], 8,
        "each link between switches carries the message eight times"
    );
}

#[test]
fn contention_free_trees_are_so_wherever_ranks_are() {
    let world = world();
    for topology in 1..=5 {
        for shape in ["contention-free-chain", "contention-free-binary", "contention-free-k-ary:k=3"] {
            for placement in ["by-name", "cyclic", "shuffled:3"] {
                let place = ["--placement", placement, "--ranks-per-host", "2", "--root", "7"];
                let pairs = contending_pairs(&world, topology, &[&["--shape", shape], &place[..]].concat());
                assert_eq!(pairs, 0, "{shape} on topology {topology}, {placement}");
            }
        }
    }
}

#[test]
fn a_tree_in_json_is_the_whole_tree() {
    let answer = tree_json(&world(), &evaluation(5), &["--root", "9"]);
    let places = answer["tree"].as_array().unwrap();
    assert_eq!((places.len(), &answer["root"]), (32, &Value::from(9)));
    for (rank, place) in places.iter().enumerate() {
        assert_eq!(place["host"], format!("n{rank}"));
        for child in place["children"].as_array().unwrap() {
            assert_eq!(places[child.as_u64().unwrap() as usize]["parent"], rank);
        }
    }
    assert_eq!(places[9]["parent"], Value::Null);
    assert_eq!(places.iter().filter(|place| place["parent"].is_null()).count(), 1);
}

#[test]
fn shapes_are_compared() {
    let world = world();
    let answer = tree_json(&world, &evaluation(5), &["--compare"]);
    let of = |shape: &str, knows: &str| {
        let trees = answer["trees"].as_array().unwrap().iter();
        let mut trees = trees.filter(|row| row["knows"] == knows).map(|row| &row["tree"]);
        trees.find(|tree| tree["shape"] == shape).unwrap_or_else(|| panic!("{shape}: {answer:#}"))
    };
    let time = |tree: &Value| tree["estimated_time_ns"].as_u64().unwrap();
    let (unaware, aware) = (of("chain", "hosts"), of("contention-free-chain", "switches"));
    assert_eq!(
        (&unaware["busiest_link"]["messages"], &aware["busiest_link"]["messages"]),
        (&8.into(), &1.into())
    );
    assert!(time(unaware) > 5 * time(aware), "the paper: several times slower\n{unaware:#}\n{aware:#}");
    let link_aware = time(of("link-aware", "switches"));
    assert!(link_aware <= time(aware) && link_aware <= time(of("contention-free-binary", "switches")));

    let text = tree(&world, &evaluation(5), &["--compare"]);
    assert!(
        text.starts_with("from rank 0 to 32 ranks on 32 hosts and 4 switches, 1MiB in segments of 8KiB\n")
    );
    let chain = text.lines().find(|line| line.starts_with(" chain (hosts only) ")).unwrap();
    assert!(chain.contains(" s0 → s1 ") && chain.split_whitespace().any(|word| word == "8"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_picture_has_all_ranks_and_messages() {
    let world = world();
    tree(&world, &evaluation(5), &["--svg", "tree.svg", "--unaware", "--shape", "chain"]);
    let picture = fs::read_to_string(world.path().join("tree.svg")).unwrap();
    let events: Vec<_> = svg::read(&picture).unwrap().collect();
    assert!(!events.iter().any(|event| matches!(event, svg::parser::Event::Error(_))), "not well-formed");
    assert_eq!(picture.matches("<circle").count(), 32);
    assert_eq!(picture.matches("marker-end").count(), 31);
    assert!(picture.contains("↓8 ↑7") && picture.contains("Orange"), "{picture}");
    assert!(picture.contains("↓3 ↑0:"), "what the numbers mean: {picture}");
    // What is drawn later lies above: no arrow goes through a name or a number.
    let last_arrow = picture.rfind("marker-end").unwrap();
    let places = ["↓8 ↑7\n", "\ns0\n", "\nn0\n"].map(|text| picture.find(text).unwrap_or_default());
    assert!(places.iter().all(|place| *place > last_arrow), "{places:?}: {picture}");
}

#[test]
fn hosts_that_the_file_lacks_are_told_and_placed_apart() {
    let world = world();
    let mut command =
        world.polycast(&["tree", "--topology", "corner.conf", "--hosts-of-ranks", "a,x,c", "--json"]);
    let assertion = command.assert().success();
    let said = String::from_utf8_lossy(&assertion.get_output().stderr).into_owned();
    assert_eq!(said, "polycast: corner.conf lacks host x: it stands apart, on a switch of its own\n");
    let answer: Value = serde_json::from_slice(&assertion.get_output().stdout).unwrap();
    assert_eq!(answer["switches"], 3);
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let world = world();
    for (arguments, status, expected) in [
        (&["--root", "3"][..], 2, "--root 3: expected a rank from 0 to 2"),
        (&["--ranks", "4"], 2, "--ranks 4: expected 1 to 3 ranks"),
        (&["--ranks", "0"], 2, "expected a whole number of at least 1"),
        (&["--shape", "scatter-ring"], 2, "expected an algorithm with one tree"),
        (&["--shape", "tree"], 2, "expected one of flat, chain"),
        (&["--placement", "shuffled"], 2, "shuffled:SEED"),
        (&["--segment", "0"], 2, "expected at least 1 byte"),
        (&["--ranks-per-host", "2000", "--svg", "tree.svg"], 2, "expected at most 4096 ranks, found 6000"),
        (&["--svg", "none/tree.svg"], 1, "none/tree.svg: No such file"),
    ] {
        let said =
            error(&mut world.polycast(&[&["tree", "--topology", "corner.conf"], arguments].concat()), status);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let said = error(&mut world.polycast(&["tree", "--topology", "none.conf"]), 1);
    assert!(said.contains("none.conf"), "{said}");
    error(&mut world.polycast(&["tree", "--shape", "chain"]), 2);
}

#[test]
fn the_study_repeats_itself_and_its_trees_are_low_and_contention_free() {
    let world = world();
    let study =
        ["tree", "study", "--machines", "64,256", "--topologies", "5", "--json", "--svg", "study.svg"];
    let first = output(&mut world.polycast(&study));
    assert_eq!(first, output(&mut world.polycast(&study)));
    assert_ne!(first, output(&mut world.polycast(&[&study[..], &["--seed", "1"]].concat())));
    let answer: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(answer["contending_pairs"], 0);
    let clusters = answer["clusters"].as_array().unwrap();
    assert_eq!(clusters.len(), 2 * 2 * 2, "wirings, machines per switch, machines");
    for cluster in clusters {
        let ratio = cluster["ratio"].as_f64().unwrap();
        assert!((1.0..=2.0).contains(&ratio), "the paper: within a factor of two; {cluster}");
    }
    let plot = fs::read_to_string(world.path().join("study.svg")).unwrap();
    for text in ["grown, 8 machines/switch", "joined, 16 machines/switch", "complete binary tree", "256"] {
        assert!(plot.contains(text), "{text}");
    }
}

#[test]
fn the_study_of_one_switch_is_the_complete_binary_tree() {
    let text = output(&mut world().polycast(&["tree", "study", "--machines", "16", "--per-switch", "16"]));
    assert!(text.contains("     4  4.00  4 … 4           1.00"), "{text}");
    assert!(text.ends_with(
        "Greatest mean over complete: 1.00 grown, 1.00 joined. Contending pairs in all trees: 0.\n"
    ));
}
