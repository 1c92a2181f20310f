//! docs/json.md against what the verbs print: every key that is printed stands there, and every key there is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::common::checkout;
use crate::fake::{OPEN_MPI_4, World, traces};

/// The keys of a page's sections: of each table the first column.
fn page() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(checkout().join("docs/json.md")).unwrap();
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if let Some(heading) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
        {
            section = heading.to_owned();
        } else if let Some((keys, _)) = line.strip_prefix("| `").and_then(|row| row.split_once(" |")) {
            let keys = keys.split(", ").map(|key| key.trim_matches('`').to_owned());
            sections.entry(section.clone()).or_default().extend(keys);
        }
    }
    sections
}

/// The paths of all keys; those of the times of trees, which stand apart, are told by themselves.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>, times: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if key == "times" {
                    keys(value, "", times, &mut BTreeSet::new());
                } else {
                    keys(value, &path, found, times);
                }
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), found, times)),
        _ => {}
    }
}

fn is_leaf_on_page(section: &str, key: &str, shown: &BTreeSet<String>) -> bool {
    // What holds others may stand there by these alone, and a tree among others is one.
    let prefix = [format!("{key}."), format!("{key}[]")];
    shown.contains(key)
        || shown.iter().any(|other| prefix.iter().any(|prefix| other.starts_with(prefix)))
        || (section == "polycast tree --compare" && key.starts_with("trees[].tree."))
}

#[test]
fn the_page_has_the_keys_that_are_printed() {
    let world = World::with_doors(&["openmpi"]).launcher("mpiexec", OPEN_MPI_4);
    let example = |name: &str| checkout().join("examples").join(name).to_str().unwrap().to_owned();
    let (cluster, params) = (example("topologies/two-switches.conf"), example("params/lab-20mbit.json"));
    fs::write(
        world.path().join("table.toml"),
        "version = 1\n[[rule]]\ncollective = \"bcast\"\nearlier_calls = \"3..\"\nuse = \"opt-tree\"\n",
    )
    .unwrap();
    let found = r#"{"key":{"version":"0","mpi":"Open MPI","place":"a,b","ranks":8,"nodes":8,"ranks_per_node":1,"collective":"bcast","exhaustive":false},
        "bytes":65536,"block_bytes":65536,"best":"chain","time":[2.0,1.0,3.0,9],"stock":[4.0,3.0,5.0,9],"second":null,"separates":true,
        "measured":2,"all":[["chain",[2.0,1.0,3.0,9]],["stock",[4.0,3.5,5.0,9]]],"seconds":1.0}"#;
    fs::write(world.path().join("table.toml.found"), found.replace('\n', "") + "\n").unwrap();
    fs::write(world.path().join("wrong.conf"), "SwitchName=s0 Nodes=a\nSwitchName=s0 Nodes=\nNonsense\n")
        .unwrap();
    fs::write(
        world.path().join("ring.conf"),
        "SwitchName=l Nodes=a\nSwitchName=r Nodes=b\nSwitchName=x Switches=l,r\nSwitchName=y Switches=l,r\n",
    )
    .unwrap();
    traces::leave(&world.path().join("traces"), 3);
    for file in ["first.json", "later.json"] {
        fs::write(world.path().join(file), crate::report::job_report("a.out", 1_700_000_000)).unwrap();
    }
    let cache = world.path().join(".cache/polycast");
    fs::create_dir_all(&cache).unwrap();
    fs::write(cache.join("trials.jsonl"), crate::cache::finding("/lib/libmpi.so", "bcast", 3) + "\n")
        .unwrap();
    let hosts = r#"{"environment":{"hosts":[{"name":"h0","ranks":1},{"name":"h1","ranks":1}]}}"#;
    let point =
        r#"{"variant":"chain","bytes":1024,"root":"0","median_us":12.5,"ci_low_us":12.0,"ci_high_us":13.0}"#;
    fs::write(world.path().join("results.json"), format!("{hosts}\n{point}\n")).unwrap();

    // Of two ranks that share a node it is known what that takes, of three it is not.
    let network = fs::read_to_string(&params).unwrap();
    let sharing = r#""sharing":[{"collective":"bcast","ranks":2,"cost":[{"bytes":1024,"ns":2000,"low":1900,"high":2100,"samples":9}]}]"#;
    let network = network.trim_end().strip_suffix('}').unwrap();
    fs::write(world.path().join("sharing.json"), format!("{network},{sharing}}}")).unwrap();
    let point = point.replace("chain", "two-level:between=chain,segment=1KiB").replace("1024", "65536");
    for (file, ranks) in [("two.json", 2), ("three.json", 3)] {
        let hosts = hosts.replace(r#""ranks":1"#, &format!(r#""ranks":{ranks}"#));
        fs::write(world.path().join(file), format!("{hosts}\n{point}\n")).unwrap();
    }
    let shared = ["--params", "sharing.json", "--ranks", "6", "--bytes", "64KiB"];

    let placed = ["--hosts", "node[00-07]", "--topology", &cluster, "--params", &params];
    let explain = [&["explain", "--no-multicast"], &placed[..]].concat();
    let tree = ["tree", "--topology", &cluster];
    let predict = ["predict", "--params", &params];
    let simulate = ["simulate", "--broadcasts", "2", "--seed", "1"];
    let runs: Vec<(&str, Vec<&str>)> = vec![
        ("explain", [&explain[..], &["--bytes", "1MiB"]].concat()),
        ("explain", [&explain[..], &["--bytes", "4KiB", "--earlier-calls", "3"]].concat()),
        ("explain", vec!["explain", "--ranks", "8", "--bytes", "64KiB", "--table", "table.toml"]),
        ("explain", [&explain[..], &["--earlier-calls", "3", "--table", "table.toml"]].concat()),
        ("explain", [&["explain", "--no-multicast", "--nodes", "3"], &shared[..]].concat()),
        ("explain", vec!["explain", "--ranks", "4", "--nodes", "1", "--bytes", "64KiB"]),
        ("explain", vec!["explain", "--ranks", "64", "--nodes", "1"]),
        ("explain", vec!["explain", "--collective", "allreduce", "--ranks", "4", "--nodes", "1"]),
        ("predict", [&predict[..], &["--ranks", "8", "--bytes", "64KiB"]].concat()),
        ("predict", [&["predict", "--ranks-per-host", "2"], &shared[..]].concat()),
        ("predict", [&["predict", "--ranks-per-host", "3"], &shared[..]].concat()),
        ("predict --against", vec!["predict", "--params", "sharing.json", "--against", "two.json"]),
        ("predict --against", vec!["predict", "--params", "sharing.json", "--against", "three.json"]),
        (
            "predict --crossover",
            [&predict[..], &["--crossover", "--ranks", "20", "--bytes", "64KiB"]].concat(),
        ),
        (
            "predict --crossover",
            [&predict[..], &["--crossover", "--ranks", "4", "--collective", "gather"]].concat(),
        ),
        ("predict --models", [&predict[..], &["--models", "--ranks", "8", "--bytes", "1KiB"]].concat()),
        ("predict --against", [&predict[..], &["--against", "results.json"]].concat()),
        ("tree", [&tree[..], &["--params", &params, "--shape", "opt-tree"]].concat()),
        ("tree --compare", [&tree[..], &["--compare"]].concat()),
        ("tree study", vec!["tree", "study", "--machines", "16", "--topologies", "2"]),
        ("simulate --protocol", vec!["simulate", "--protocol", "--seeds", "2"]),
        ("simulate --scaling", [&simulate[..], &["--scaling", "--nodes", "4"]].concat()),
        ("simulate --figure s0.18", vec!["simulate", "--figure", "s3.6", "--broadcasts", "2"]),
        ("simulate --root-sync", [&simulate[..], &["--root-sync", "--nodes", "4"]].concat()),
        ("simulate --collective", vec!["simulate", "--collective", "reduce"]),
        ("simulate --mesh", vec!["simulate", "--min", "16", "--group", "4", "--quick"]),
        ("simulate --figure", vec!["simulate", "--figure", "5.9", "--quick", "--placements", "1"]),
        ("info", vec!["info"]),
        ("cache show", vec!["cache", "show"]),
        ("report", vec!["report", "traces"]),
        ("report", vec!["report", "first.json", "later.json"]),
        ("topology check", vec!["topology", "check", "wrong.conf"]),
        ("topology check", vec!["topology", "check", "ring.conf"]),
        ("doctor", vec!["doctor", "--interface", "=nothing0"]),
        ("doctor", vec!["doctor"]),
        ("cp", vec!["cp", "--hosts", "localhost", "table.toml", "copy.toml"]),
        ("cp", vec!["cp", "--hosts", "localhost", "-r", ".", "nowhere/copy"]),
    ];
    let mut printed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut times = BTreeSet::new();
    for (verb, arguments) in runs {
        let mut command = world.polycast(&[&arguments[..], &["--json"]].concat());
        let output =
            command.env("POLYCAST_BCAST", if arguments.contains(&"3") { "opt-tree" } else { "" }).output();
        let output = output.unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {}", String::from_utf8_lossy(&output.stderr))
        });
        keys(&value, "", printed.entry(format!("polycast {verb}")).or_default(), &mut times);
    }
    printed.insert("Times".into(), times);
    let mut page = page();
    page.remove("Of labs and measurements");
    for (section, printed) in &printed {
        let shown = page.remove(section).unwrap_or_else(|| panic!("docs/json.md lacks {section}"));
        let lacking: Vec<_> = printed.iter().filter(|key| !is_leaf_on_page(section, key, &shown)).collect();
        assert!(lacking.is_empty(), "docs/json.md, {section}: lacks {lacking:?}");
        let unseen: Vec<_> = shown.difference(printed).collect();
        assert!(unseen.is_empty(), "docs/json.md, {section}: nothing prints {unseen:?}");
    }
    assert!(page.is_empty(), "docs/json.md has sections that nobody prints: {:?}", page.keys());
}
