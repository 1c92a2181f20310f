//! The progress of a copy, and its outcome.

use polycast_copy::{Standing, Trouble};

use super::coordinator::Copy;
use super::node::Node;
use super::report::{LeftOut, NodeReport, Report};
use super::request::Progress;

impl Copy<'_> {
    pub(super) fn show(&self, show: &mut impl FnMut(&Progress<'_>)) {
        let (Some(fleet), Some(source)) = (&self.fleet, &self.source) else { return };
        let taking: Vec<u32> = (1..self.nodes.len() as u32)
            .filter(|node| matches!(fleet.standing(*node), Standing::Taking | Standing::Silent))
            .collect();
        let least = taking.iter().map(|node| fleet.have(*node)).min().unwrap_or(source.stream.blocks());
        let most = taking.iter().map(|node| fleet.have(*node)).max().unwrap_or(0);
        let mut behind: Vec<u32> =
            taking.into_iter().filter(|node| fleet.have(*node) * 10 < most * 9).collect();
        behind.sort_by_key(|node| fleet.have(*node));
        show(&Progress {
            bytes: source.stream.bytes,
            least_bytes: source.stream.range(least).start,
            done: self.nodes.iter().filter(|node| node.done_at.is_some()).count(),
            nodes: self.nodes.len() - 1,
            behind: behind.iter().take(3).map(|node| self.nodes[*node as usize].host.as_str()).collect(),
        });
    }

    pub(super) fn report(&self) -> Report {
        let begun_at = self.begun_at.unwrap_or(0.0);
        let source = self.source.as_ref();
        let node_report = |number: usize, node: &Node| {
            let fleet = self.fleet.as_ref();
            let standing = fleet.map(|fleet| fleet.standing(number as u32));
            let reason = match standing {
                Some(Standing::Out(reason)) if node.done_at.is_none() => Some(reason.clone()),
                _ => None,
            };
            NodeReport {
                host: node.host.clone(),
                has_all: node.done_at.is_some()
                    && self.read.as_ref().is_some_and(|read| read.spoiled.is_empty()),
                // Who had everything may have been through before.
                seconds: node.done_at.map(|at| (at - begun_at).max(0.0)),
                resumed_bytes: source.map_or(0, |source| source.stream.range(node.resumed).start),
                set_aside: fleet.and_then(|fleet| fleet.trouble(number as u32)).map(
                    |trouble| match trouble {
                        Trouble::Silent => "silent",
                        Trouble::Slow => "slow",
                        Trouble::Late => "late",
                    },
                ),
                in_common_with: node.in_common_with.map(|with| self.nodes[with as usize].host.clone()),
                reason,
            }
        };
        let nodes: Vec<NodeReport> =
            self.nodes.iter().enumerate().skip(1).map(|(number, node)| node_report(number, node)).collect();
        let spoiled = || self.read.iter().flat_map(|read| &read.spoiled);
        let unreadable = self.unreadable.iter().filter(|file| spoiled().all(|known| known.file != file.file));
        let compressed = self.read.as_ref().filter(|_| self.request.compress);
        Report {
            bytes: source.map_or(0, |source| source.stream.bytes - source.stream.manifest_bytes),
            compressed_bytes: compressed.map(|read| read.sent_bytes),
            files: source.map_or(0, |source| source.files),
            folders: source.map_or(0, |source| source.folders),
            links: source.map_or(0, |source| source.links),
            method: if self.has_ring {
                "multicast"
            } else if source.is_some_and(|source| self.fanout(&source.stream) > 1) {
                "tree"
            } else {
                "chain"
            },
            seconds: nodes.iter().filter_map(|node| node.seconds).fold(0.0, f64::max),
            left_out: spoiled()
                .map(|spoiled| LeftOut { file: spoiled.file.clone(), reason: spoiled.reason.clone() })
                .chain(unreadable.cloned())
                .collect(),
            skipped: source.map_or(Vec::new(), |source| source.skipped.clone()),
            nodes,
        }
    }
}
