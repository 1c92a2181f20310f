//! `polycast info`.

use std::fs;

use crate::fake::{MPICH_5, OPEN_MPI_4, World, output};
use serde_json::Value;

fn info(world: &World, environment: &[(&str, &str)]) -> Value {
    let mut command = world.polycast(&["info", "--json"]);
    serde_json::from_str(&output(command.envs(environment.iter().copied()))).unwrap()
}

#[test]
fn doors_are_matched_with_launchers() {
    let world =
        World::with_doors(&["openmpi"]).launcher("mpiexec", OPEN_MPI_4).launcher("mpiexec.mpich", MPICH_5);
    let info = info(&world, &[]);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(info["library_directory"], world.library().to_str().unwrap());
    assert_eq!(info["preload"], world.preload().to_str().unwrap());
    assert!(info["doors"][0]["path"].is_string() && info["doors"][1]["path"].is_null());
    assert_eq!(info["doors"][0]["serves"][0], "libmpi.so.40");
    let launchers = info["launchers"].as_array().unwrap();
    let seen: Vec<_> =
        launchers.iter().map(|l| (l["mpi"].as_str().unwrap(), l["has_door"].as_bool())).collect();
    assert_eq!(seen, [("Open MPI 4.1.4", Some(true)), ("MPICH 5.0.2", Some(false))]);

    let text = output(&mut world.polycast(&["info"]));
    assert!(text.contains("no door, `make doors MPICC=mpicc.mpich` builds it"), "{text}");
}

#[test]
fn without_anything_it_says_what_to_do_and_fails() {
    let world = World::with_doors(&[]);
    for arguments in [&["info"][..], &["info", "--json"]] {
        let mut command = world.polycast(arguments);
        let assert = command.env("POLYCAST_LIBDIR", "/nowhere").assert().code(1);
        let said = assert.get_output();
        let [out, err] = [&said.stdout, &said.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(err.contains("no libpolycast-mpi.so in /nowhere") && err.contains("`make build`"), "{err}");
        let is_whole = out.contains("apt-get install") || serde_json::from_str::<Value>(&out).is_ok();
        assert!(is_whole, "what is there is said all the same: {out}");
    }
}

#[test]
fn variables_are_shown_with_their_values_and_unknown_ones_named() {
    let world = World::with_doors(&[]);
    let environment =
        [("POLYCAST_NET", "=ib0"), ("POLYCAST_BCST", "chain"), ("POLYCAST_MULTICAST", "sometimes")];
    let info = info(&world, &environment);
    let of = |name: &str| {
        let variables = info["variables"].as_array().unwrap();
        variables.iter().find(|variable| variable["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!((of("POLYCAST_NET"), of("POLYCAST_MADCAP")), ("=ib0".into(), Value::Null));
    let problems = info["problems"].as_array().unwrap();
    assert_eq!(problems[0], "POLYCAST_BCST is unknown: did you mean POLYCAST_BCAST?");
    assert!(problems[1].as_str().unwrap().starts_with("POLYCAST_MULTICAST=sometimes: expected on, off"));

    let text = output(world.polycast(&["info"]).envs(environment));
    assert!(text.contains("  POLYCAST_NET           =ib0\n"), "{text}");
    assert!(text.contains("  POLYCAST_MADCAP        (a random group)\n"), "{text}");
    assert!(text.contains("  POLYCAST_BCST is unknown: did you mean"), "{text}");
}

#[test]
fn the_table_in_use_is_marked() {
    let world = World::with_doors(&[]);
    let in_use = |environment: &[(&str, &str)]| -> Vec<bool> {
        let info = info(&world, environment);
        info["tables"].as_array().unwrap().iter().map(|table| table["in_use"].as_bool().unwrap()).collect()
    };
    fs::write(world.path().join("good.toml"), "version = 1\n").unwrap();
    fs::write(world.path().join("bad.toml"), "version = 2\n").unwrap();
    assert_eq!(in_use(&[]), [true]);
    assert_eq!(in_use(&[("POLYCAST_TABLE", "good.toml")]), [false, true]);
    assert_eq!(in_use(&[("POLYCAST_TABLE", "bad.toml")]), [true]);
    assert_eq!(in_use(&[("POLYCAST_BCAST", "flat")]), [false]);
    assert_eq!(in_use(&[("POLYCAST", "off")]), [false]);

    let notes = info(&world, &[("POLYCAST_TABLE", "bad.toml")])["environment"].to_string();
    assert!(notes.contains("bad.toml:1:11") && notes.contains("the shipped table is used"), "{notes}");
}

#[test]
fn the_algorithms_are_listed() {
    let world = World::with_doors(&[]);
    let text = output(&mut world.polycast(&["info", "--algorithms"]));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with(
        "bcast\n  flat\n      the root sends to everybody itself (Patarasuk et al. 2008, §3)\n"
    ));
    assert!(text.contains("\nbarrier\n  dissemination\n"), "{text}");
    assert!(text.contains("      k        the factor; a whole number of at least 2; required\n"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("adaptive or a delay such as 50us; default: adaptive"), "{text}");

    let json = output(&mut world.polycast(&["info", "--algorithms", "--json"]));
    let json: Vec<Value> = serde_json::from_str(&json).unwrap();
    let pull = json.iter().find(|algorithm| algorithm["name"] == "multicast-pull").unwrap();
    assert_eq!(
        (&pull["collectives"][0], &pull["source"]),
        (&"bcast".into(), &"Siebert 2006; Hoefler et al. 2007".into())
    );
    assert_eq!(pull["parameters"][1]["name"], "parity");
    assert_eq!(
        (&pull["parameters"][0]["default"], &pull["parameters"][1]["default"]),
        (&"adaptive".into(), &"no".into())
    );
    assert!(json.iter().all(|algorithm| text.contains(algorithm["name"].as_str().unwrap())));
}
