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
fn without_anything_it_says_what_to_do() {
    let world = World::with_doors(&[]);
    let text = output(world.polycast(&["info"]).env("POLYCAST_LIBDIR", "/nowhere"));
    assert!(text.contains("build it with `make build`") && text.contains("apt-get install"), "{text}");
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
