//! Files that people write.

use polycast_core::select::{Collective, Shape, Table};
use polycast_core::units::Bytes;
use polycast_lab::topology::{MAX_NODES, Topology};

/// Sizes at both ends of the range and around a limit of the shipped table.
const SIZES: [u64; 7] = [0, 1, 8191, 8192, 1 << 20, (1 << 40) - 1, u64::MAX];

/// A table: if it is one, the prepared choices and the explanation agree for all shapes and sizes.
pub fn table(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let table = match Table::parse(text, "fuzz.toml") {
        Ok(table) => table,
        Err(error) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&error.line) && error.column > 0, "{error}: no place of the text");
            return;
        }
    };
    for (ranks, nodes) in [(1, 1), (2, 2), (64, 16), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
        let shape = Shape::new(ranks, nodes, None).expect("a shape");
        for shape in [shape, shape.without_multicast()] {
            let choices = table.broadcast_rules(shape);
            for bytes in SIZES.map(Bytes) {
                let explained = table.explain(Collective::Broadcast, shape, bytes).choice;
                assert_eq!(*choices.choose(bytes), explained, "{bytes} on {shape:?}");
            }
        }
    }
}

/// A topology with its hostlists: if it is one, it is within its limits and is read again from how it is written.
pub fn topology(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    match Topology::parse(text, "topology.conf") {
        Ok(topology) => {
            assert!((1..=MAX_NODES).contains(&topology.nodes.len()));
            assert_eq!(topology.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
            assert_eq!(Topology::parse(&topology.to_string(), "topology.conf"), Ok(topology));
        }
        Err(error) => assert!(error.line <= text.lines().count(), "{error}: no line of the text"),
    }
}
