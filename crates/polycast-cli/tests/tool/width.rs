//! What is printed for people fits 80 columns, whatever hosts and files are called.

use std::fs;

use crate::common::checkout;
use crate::fake::{World, traces};

/// Hosts and switches with the long names that sites give them; two of the switches are joined twice.
const CLUSTER: &str = "\
SwitchName=leaf-03.rack-17.example.org Nodes=compute-a-[01-08].example.org LinkSpeed=1000
SwitchName=leaf-04.rack-18.example.org Nodes=compute-b-[01-08].example.org LinkSpeed=1000
SwitchName=spine-1.example.org Switches=leaf-03.rack-17.example.org,leaf-04.rack-18.example.org LinkSpeed=10000
SwitchName=spine-2.example.org Switches=leaf-03.rack-17.example.org,leaf-04.rack-18.example.org LinkSpeed=10000
";

const TABLE: &str = r#"
version = 1
[[rule]]
collective = "bcast"
bytes = "..8KiB"
ranks = "3..1000"
use = "contention-free-binary:segment=8KiB"
because = "measured on the cluster of this site in its quiet hours, with all of its links at 1 Gb/s and nobody beside"
[[rule]]
collective = "bcast"
use = "stock"
"#;

#[test]
fn nothing_is_wider_than_80_columns() {
    let world = World::with_doors(&[]);
    let file = |name: &str, text: &str| fs::write(world.path().join(name), text).unwrap();
    let (cluster, table) = ("the-topology-of-our-cluster-as-slurm-has-it.conf", "the-table-of-our-site.toml");
    file(cluster, CLUSTER);
    file(table, TABLE);
    let params = checkout().join("examples/params/lab-20mbit.json");
    let params = params.to_str().unwrap();
    let hosts =
        r#"{"environment":{"hosts":[{"name":"compute-a-01.example.org","ranks":1},{"name":"x","ranks":1}]}}"#;
    let of = |variant: &str| format!(r#"{{"variant":"{variant}","bytes":1024,"root":"0","median_us":12.5}}"#);
    let variants =
        ["contention-free-binary:segment=1048576", "ready", "a-variant-of-which-nothing-is-known", "stock"];
    let points: Vec<String> = variants.into_iter().map(of).collect();
    file("results.json", &format!("{hosts}\n{}\n", points.join("\n")));

    traces::leave(&world.path().join("traces"), 3);
    let placed = ["--hosts", "compute-a-[01-08].example.org:2,elsewhere.example.org", "--topology", cluster];
    for arguments in [
        vec!["explain", "--bytes", "4KiB", "--table", table],
        vec!["explain", "--bytes", "1MiB", "--no-multicast", "--params", params],
        vec!["explain", "--table", table],
        vec!["predict", "--params", params, "--bytes", "1KiB,1MiB", "--all"],
        vec!["predict", "--params", params, "--bytes", "1KiB", "--collective", "allgather"],
        vec!["predict", "--params", params, "--against", "results.json"],
        vec!["predict", "--params", params, "--models", "--bytes", "1KiB"],
        vec!["report", "traces"],
        vec!["tree", "--shape", "chain"],
        vec!["tree", "--compare"],
        vec!["topology", "check", cluster],
        vec!["topology", "convert", cluster, "--to", "slurm-conf", "-o", "out.conf"],
    ] {
        let further: &[&str] = match arguments[0] {
            "topology" | "report" => &[],
            "tree" => &placed[2..],
            _ if arguments.contains(&"results.json") => &placed[2..],
            _ => &placed,
        };
        let further =
            if arguments[0] == "explain" && arguments.len() == 3 { &["--ranks", "16"][..] } else { further };
        let output = world.polycast(&[&arguments[..], further].concat()).output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}");
        // A name that is copied stays whole, on a line of its own; the picture of a tree is as wide as the tree; what is told of a
        // line of a file is one line, as editors read it.
        let is_too_wide = |line: &&str| {
            let may_be = line.starts_with(&format!("{cluster}:")) || line.contains(['→', '⇒', '─']);
            line.chars().count() > 80 && line.split_whitespace().count() > 1 && !may_be
        };
        let wide: Vec<&str> = text.lines().filter(is_too_wide).collect();
        assert!(wide.is_empty(), "{arguments:?}: {wide:#?}\n{text}");
        assert!(text.lines().count() > 2, "{arguments:?}: {text}");
    }
}
