//! The registry of algorithms: whoever reads it knows an algorithm by its entry alone, and the documentation lists it.

use std::fs;
use std::path::Path;

use polycast_core::algorithm::broadcast::Planner;
use polycast_core::algorithm::{Algorithm, Entry, Parameter, Registry};
use polycast_core::collective::Call;
use polycast_core::collective::{self, Collective};
use polycast_core::cost::{Predictor, compare};
use polycast_core::model::Parameters;
use polycast_core::schedule::check;
use polycast_core::topology::Topology;
use polycast_core::tree::Tree;
use polycast_core::units::{Bytes, Rank};

/// What it takes to add an algorithm that is a tree.
static ONE_MORE: [Entry; 1] =
    [Entry::tree("spread", "`width` children per rank", "nobody", |a| Tree::KAry(a.number("width")))
        .with(&[Parameter::number("width", "how many", 2, 3).at_most(9)])];

const REGISTRY: Registry = Registry::with(&ONE_MORE);

#[test]
fn one_more_entry_is_read_printed_and_listed() {
    let text = "spread:width=5,segment=1KiB,ready";
    assert_eq!(REGISTRY.read(Collective::Broadcast, text).unwrap().to_string(), text);
    assert!(REGISTRY.names(Collective::Broadcast).ends_with(", multicast-pull, cells, spread"));
    let error = |text: &str| REGISTRY.read(Collective::Broadcast, text).unwrap_err().to_string();
    assert!(error("spred").ends_with("multicast-pull, cells, spread"));
    assert_eq!(error("spread"), "spread needs width, for example spread:width=3");
    assert_eq!(error("spread:width=10"), "width=10: expected a whole number from 2 to 9");
    assert!(text.parse::<Algorithm>().is_err(), "polycast itself has no such algorithm");
    let samples: Vec<String> = REGISTRY
        .samples(Collective::Broadcast)
        .iter()
        .map(Algorithm::to_string)
        .filter(|text| text.starts_with("spread"))
        .collect();
    assert_eq!(samples, ["spread:width=2", "spread:width=3"]);
}

#[test]
fn one_more_entry_is_proven_and_predicted() {
    let (ranks, bytes) = (11, Bytes(1000));
    let call = Call::broadcast(ranks, Rank(4), bytes);
    let mut planner = Planner::flat(ranks);
    for sample in
        REGISTRY.samples(Collective::Broadcast).into_iter().filter(|sample| sample.entry == &ONE_MORE[0])
    {
        let schedules: Vec<_> =
            (0..ranks).map(|rank| sample.schedule(call, Rank(rank), &mut planner)).collect();
        let promised = collective::Call::new(Collective::Broadcast, ranks, call.root, bytes);
        assert_eq!(check(&schedules, &promised).unwrap().bytes, Bytes(10_000));
    }
    let hosts: Vec<String> = (0..ranks).map(|rank| format!("host{rank}")).collect();
    let placed = Topology::flat(hosts.clone()).place(&hosts);
    let text = fs::read_to_string(root().join("examples/params/lab-20mbit.json"));
    let parameters = Parameters::parse(&text.unwrap(), "params").unwrap();
    let mut predictor = Predictor::new(&placed, &parameters, Rank(0));
    let predicted =
        compare(&mut predictor, &REGISTRY.compared(Collective::Broadcast), &[bytes]).remove(0).predicted;
    assert!(predicted.iter().any(|predicted| predicted.algorithm.to_string() == "spread:width=3"));
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Every entry can be found by its name, has a source, and is built with whatever its parameters allow.
#[test]
fn entries_are_complete() {
    for entry in Registry::BUILT_IN.entries() {
        for collective in entry.collectives {
            let found = Registry::BUILT_IN.find(*collective, entry.name);
            assert_eq!(found, Some(entry), "{entry:?} has its name alone");
        }
        assert!(entry.parameters.len() <= polycast_core::algorithm::ParameterValues::MOST, "{entry:?}");
        assert!(!entry.about.is_empty() && !entry.source.is_empty(), "{entry:?}");
        for sample in entry.tried(1000) {
            assert_eq!(Registry::BUILT_IN.read(entry.collectives[0], &sample.to_string()), Ok(sample));
        }
    }
}

/// The tables of algorithms in docs/table.md.
#[test]
fn the_documentation_lists_all_algorithms() {
    let text = fs::read_to_string(root().join("docs/table.md")).unwrap();
    let found = |header: &str| -> Vec<&str> {
        let after = text.split(header).nth(1).unwrap_or_else(|| panic!("docs/table.md has no {header:?}"));
        after.lines().take_while(|line| line.starts_with("| ")).collect()
    };
    let broadcasts = Registry::BUILT_IN.of(Collective::Broadcast);
    let expected: Vec<String> =
        broadcasts.map(|entry| format!("| `{}` | {} |", entry.complete(), entry.about)).collect();
    let rows = found("| name | how the data travels |\n|---|---|\n");
    assert_eq!(rows, expected, "docs/table.md should be\n{}", expected.join("\n"));

    let others = Collective::ALL.into_iter().filter(|collective| *collective != Collective::Broadcast);
    let row = |of: Collective, entry: &Entry| format!("| `{of}` | `{}` | {} |", entry.name, entry.about);
    let expected: Vec<String> =
        others.flat_map(|of| Registry::BUILT_IN.of(of).map(move |entry| row(of, entry))).collect();
    let rows = found("| collective | name | how the data travels |\n|---|---|---|\n");
    assert_eq!(rows, expected, "docs/table.md should be\n{}", expected.join("\n"));

    // `sync` has a row for each of its ways.
    let parameters: Vec<String> = Registry::BUILT_IN
        .find(Collective::Broadcast, "chain")
        .into_iter()
        .flat_map(Entry::all_parameters)
        .map(|parameter| format!("| `{}` | {}", parameter.written(parameter.typical), parameter.about))
        .collect();
    for (row, expected) in found("| parameter of trees | meaning |\n|---|---|\n").iter().zip(&parameters) {
        assert!(row.starts_with(expected.as_str()), "docs/table.md should be\n{}", parameters.join("\n"));
    }
}
