//! `polycast cache`, and `polycast info --cache`.

use std::fs;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::fake::{World, output};

fn today() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() / 86_400
}

/// A line as jobs write it, of so many days ago.
pub fn finding(mpi: &str, collective: &str, days: u64) -> String {
    json!({
        "version": 1, "mpi": mpi, "hosts": "node#", "build": "9f",
        "ranks": 16, "nodes": 4, "ranks_per_node": 4, "switches": 1,
        "collective": collective, "first_bytes": 65536, "interval": 0, "epoch": 0, "capabilities": 3,
        "ways": [{"choice": "two-level", "nanos": 2_100_000}, {"choice": "stock", "nanos": 9_000_000}],
        "stays": "two-level", "again": 1024, "day": today() - days,
    })
    .to_string()
}

#[test]
fn findings_stand_by_mpi_with_their_age_until_they_are_forgotten() {
    let world = World::with_doors(&[]);
    let lines = [
        finding("/opt/z/libmpi.so", "bcast", 2),
        finding("/opt/a/libmpi.so", "reduce", 5),
        finding("/opt/z/libmpi.so", "allreduce", 3),
        finding("/opt/a/libmpi.so", "bcast", 45),
        "{damaged".to_owned(),
    ];
    let file = world.path().join("kept/trials.jsonl");
    fs::create_dir(world.path().join("kept")).unwrap();
    fs::write(&file, lines.join("\n")).unwrap();
    let folder = world.path().join("kept");
    let polycast = |words: &[&str]| output(world.polycast(words).env("POLYCAST_CACHE", &folder));

    let shown: Value = serde_json::from_str(&polycast(&["cache", "show", "--json"])).unwrap();
    let found = shown["found"].as_array().unwrap().iter();
    let found: Vec<_> = found
        .map(|one| (one["mpi"].as_str().unwrap(), one["collective"].as_str().unwrap(), &one["age_days"]))
        .collect();
    let days = [5, 3, 2].map(Value::from);
    assert_eq!(
        found,
        [
            ("/opt/a/libmpi.so", "reduce", &days[0]),
            ("/opt/z/libmpi.so", "allreduce", &days[1]),
            ("/opt/z/libmpi.so", "bcast", &days[2]),
        ],
        "what is too old counts no more"
    );
    assert_eq!(shown["unread_lines"], 1);

    let text = polycast(&["info", "--cache"]);
    assert_eq!(text, polycast(&["cache", "show"]));
    assert!(text.contains("3 findings") && text.contains("two-level 2.10 ms, stock"), "{text}");
    assert_eq!(text.matches("on node# above /opt/z/libmpi.so").count(), 1, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80 || line.contains("trials.jsonl")), "{text}");

    let told = polycast(&["cache", "clear"]);
    assert!(told.replace('\n', " ").contains("3 findings forgotten") && !file.exists(), "{told}");
    assert!(polycast(&["cache", "show"]).contains("0 findings"));
    assert!(polycast(&["cache", "clear"]).contains("0 findings"), "again");
    let off = output(world.polycast(&["cache", "show"]).env("POLYCAST_CACHE", "off"));
    assert!(off.starts_with("nothing is kept"), "{off}");
}
