//! Optimal trees and the measured times that they are planned for: `tree`, `explain`, `predict` and jobs agree.

use std::fs;
use std::sync::Arc;

use polycast_core::algorithm::Algorithm;
use polycast_core::algorithm::broadcast::Planner;
use polycast_core::collective::Call;
use polycast_core::cost::Predictor;
use polycast_core::model::Parameters;
use polycast_core::topology::{Reading, Topology};
use polycast_core::tree::Site;
use polycast_core::units::{Bytes, Rank};
use serde_json::Value;

use crate::fake::{World, output};

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn parameters() -> (String, Parameters) {
    let file = example("params/lab-20mbit.json");
    let read = Parameters::parse(&fs::read_to_string(&file).unwrap(), &file).unwrap();
    (file, read)
}

fn json(world: &World, arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let mut command = world.polycast(arguments);
    serde_json::from_str(&output(command.envs(environment.iter().copied()))).unwrap()
}

/// Hosts on as many switches, on one, and with several ranks each.
#[test]
fn the_three_verbs_and_jobs_plan_the_same_tree() {
    let world = World::with_doors(&[]);
    let (params, measured) = parameters();
    for (topology, hosts, class) in [
        ("uneven.conf", "n[0-3]", "across-switches"),
        ("two-switches.conf", "node[00-07]", "same-switch"),
        ("two-switches.conf", "node00:9,node08:6,node09", "same-node"),
    ] {
        let topology = example(&format!("topologies/{topology}"));
        let text = fs::read_to_string(&topology).unwrap();
        let read = Topology::parse(&text, &topology, Reading::default()).unwrap();
        for (shape, bytes, planned_for) in [
            ("opt-tree:segment=4MiB", 3000, 4096),
            ("opt-tree:segment=4MiB", 1 << 20, 1 << 20),
            ("opt-tree:segment=8KiB", 1 << 20, 8192),
            ("alpha-port:ports=3,segment=64KiB", 1 << 20, 65536),
        ] {
            let case = format!("{shape} {bytes} {hosts}");
            let text = bytes.to_string();
            let common = ["--json", "--topology", &topology, "--params", &params, "--bytes", &text];
            let tree = [&["tree"], &common[..], &["--hosts-of-ranks", hosts, "--shape", shape]].concat();
            let tree = json(&world, &tree, &[]);
            let explain = [&["explain"], &common[..], &["--hosts", hosts]].concat();
            let explain = json(&world, &explain, &[("POLYCAST_BCAST", shape)]);
            let predict = [&["predict"], &common[..], &["--hosts", hosts, "--algorithms", shape]].concat();
            let predict = json(&world, &predict, &[]);

            // What a job does that has these files.
            let names: Vec<String> = tree["tree"]
                .as_array()
                .unwrap()
                .iter()
                .map(|rank| rank["host"].as_str().unwrap().into())
                .collect();
            let placed = read.place(&names);
            let mut planner = Planner::new(Site::new(&placed)).measured(Arc::new(measured.clone()));
            let algorithm: Algorithm = shape.parse().unwrap();
            let call = Call::broadcast(names.len() as u32, Rank(0), Bytes(bytes));
            let in_a_job = planner.tree(&algorithm, call).unwrap();

            let parents = tree["tree"].as_array().unwrap().iter().map(|rank| rank["parent"].as_u64());
            let expected =
                (0..call.ranks).map(|rank| in_a_job.parent(Rank(rank)).map(|parent| parent.0.into()));
            assert!(parents.eq(expected), "{case}: {tree}");
            let times = &tree["times"];
            assert_eq!(
                (&times["from"], &times["class"], &times["bytes"]),
                (&"measured".into(), &class.into(), &planned_for.into()),
                "{case}"
            );
            assert_eq!(&explain["decision"]["times"], times, "{case}");
            let row = &predict["sizes"][0]["predictions"][0];
            assert_eq!(&row["times"], times, "{case}");
            let mut predictor = Predictor::new(&placed, &measured, Rank(0));
            let prepared = predictor.prepare_tree(&in_a_job);
            let segment = algorithm.segment.map(|segment| segment.get());
            let cost = prepared.cost(&predictor, Bytes(bytes), segment);
            assert_eq!(row["time_us"].as_f64(), Some(cost.time.0 as f64 / 1e3), "{case}");
        }
    }
}

#[test]
fn where_the_times_come_from_is_said() {
    let world = World::with_doors(&[]);
    let (params, _) = parameters();
    let mut derived: Value = serde_json::from_str(&fs::read_to_string(&params).unwrap()).unwrap();
    derived["classes"]["same-switch"].as_object_mut().unwrap().remove("hold");
    fs::write(world.path().join("derived.json"), derived.to_string()).unwrap();
    fs::write(world.path().join("flat.conf"), "SwitchName=s0 Nodes=n[0-7]\n").unwrap();
    let assumed = "planned for t_hold 20.0 µs, t_end 55.0 µs (assumed times: nobody measured any)";
    let say = |arguments: &[&str], shape: &str| {
        let text = output(world.polycast(arguments).env("POLYCAST_BCAST", shape));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let tree = |shape, further: &[&str]| {
        say(
            &[&["tree", "--topology", "flat.conf", "--bytes", "4KiB", "--shape", shape], further].concat(),
            "off",
        )
    };
    assert!(tree("opt-tree", &[]).contains(assumed));
    assert!(tree("opt-tree", &["--params", &params]).contains("(measured for same-switch, 4KiB)"));
    assert!(
        tree("opt-tree", &["--params", "derived.json"])
            .contains("(derived from L and g for same-switch, 4KiB)")
    );
    assert!(tree("opt-tree:hold=1us,end=2us", &["--params", &params]).contains("t_end 2.00 µs (given)"));
    assert!(!tree("binomial", &["--params", &params]).contains("planned for"));
    let compared = say(&["tree", "--topology", "flat.conf", "--compare"], "off");
    assert!(compared.contains("opt-tree: assumed times: nobody measured any."), "{compared}");

    let explain = |further: &[&str]| say(&[&["explain", "--ranks", "8"], further].concat(), "opt-tree");
    assert!(explain(&["--bytes", "4KiB"]).contains(assumed));
    assert!(explain(&[]).contains("opt-tree: assumed times: nobody measured any"));
    assert!(explain(&["--bytes", "4KiB", "--params", &params]).contains("(measured for same-switch, 4KiB)"));
    assert!(!explain(&["--params", &params]).contains("assumed"));

    let predict = |shape| {
        let common = ["predict", "--params", "derived.json", "--ranks", "8", "--bytes", "4KiB,64KiB"];
        say(&[&common[..], &["--algorithms", shape]].concat(), "off")
    };
    assert!(
        predict("chain,opt-tree")
            .contains("opt-tree: planned for times derived from L and g for same-switch")
    );
    assert!(!predict("chain").contains("planned for"));
}
