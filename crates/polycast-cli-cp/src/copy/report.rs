//! The report on a copy: the nodes that have the files, and those that have not, and why.

use serde::Serialize;

fn in_words(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// A copy.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Bytes of all files.
    pub bytes: u64,
    /// With `-C`: the bytes of all blocks as they travel, the list of files among them.
    pub compressed_bytes: Option<u64>,
    pub files: u64,
    pub folders: u64,
    pub links: u64,
    /// The way of the bytes: by `multicast`, or from node to node: `chain`, or `tree` where the
    /// fan-out is more than 1.
    pub method: &'static str,
    /// The time from the first byte until the last node has the files.
    pub seconds: f64,
    /// Files that could not be read as they were, and so are on no node, or not on those that were behind.
    pub left_out: Vec<LeftOut>,
    /// Paths in the sources that are neither plain files, folders nor links, and so were not
    /// copied.
    pub skipped: Vec<String>,
    pub nodes: Vec<NodeReport>,
}

/// A file that no node has, or that nodes which were behind could not have.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    pub file: String,
    pub reason: String,
}

/// A node.
#[derive(Clone, Debug, Serialize)]
pub struct NodeReport {
    pub host: String,
    /// True if the node has everything, verified.
    pub has_all: bool,
    /// The time from the first byte until the node had everything.
    pub seconds: Option<f64>,
    /// Bytes that an earlier run had left there.
    pub resumed_bytes: u64,
    /// The node that wrote DEST for both, which have it in common.
    pub in_common_with: Option<String>,
    /// The reason why other nodes went around this one on the way.
    pub set_aside: Option<&'static str>,
    /// The reason why the node has not got everything.
    pub reason: Option<String>,
}

impl Report {
    /// Every node has everything.
    pub fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.nodes.iter().all(|node| node.has_all)
    }

    /// The groups of nodes that have DEST in common and have everything, in the order of the nodes.
    fn in_common(&self) -> impl Iterator<Item = Vec<&str>> {
        self.nodes.iter().filter(|node| node.has_all).filter_map(|writer| {
            let is_with = |node: &&NodeReport| node.in_common_with.as_ref() == Some(&writer.host);
            self.nodes.iter().any(|node| is_with(&node)).then(|| {
                let together = self.nodes.iter().filter(|node| node.host == writer.host || is_with(node));
                together.map(|node| node.host.as_str()).collect()
            })
        })
    }

    /// The report for people: a line, and one more for all that is not as wished.
    pub fn text(&self) -> String {
        let done = self.nodes.iter().filter(|node| node.has_all).count();
        // What an earlier run had left did not travel.
        let writers = self.nodes.iter().filter(|node| node.in_common_with.is_none());
        let resumed = writers.map(|node| node.resumed_bytes).min().unwrap_or(0);
        let bits = self.bytes.saturating_sub(resumed) as f64 * 8.0;
        let rate = if self.seconds > 0.0 { bits / self.seconds / 1e6 } else { 0.0 };
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut text = format!(
            "{}, {} bytes{}: on {done} of {} in {}, {rate:.0} Mb/s to each\n",
            plural(self.files, "file"),
            self.bytes,
            self.compressed_bytes.map_or(String::new(), |bytes| format!(" (sent as {bytes})")),
            plural(self.nodes.len() as u64, "node"),
            in_words(self.seconds),
        );
        for together in self.in_common() {
            let together = together.join(", ");
            text += &format!("{together} have DEST in common (same file system): copied once\n");
        }
        for file in &self.left_out {
            text += &format!("left out: {}: {}\n", file.file, file.reason);
        }
        for what in &self.skipped {
            text += &format!("skipped: {what}\n");
        }
        for node in &self.nodes {
            let host = &node.host;
            match (&node.reason, node.set_aside, node.seconds) {
                (Some(reason), _, _) => text += &format!("{host}: failed: {reason}\n"),
                (None, Some(why), Some(at)) => {
                    text += &format!(
                        "{host}: was {why}; others went around it, and it had everything after {}\n",
                        in_words(at)
                    );
                }
                _ => {}
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_run_had_left_did_not_travel() {
        let node = |resumed_bytes: u64| NodeReport {
            host: "n".to_owned(),
            has_all: true,
            seconds: Some(2.0),
            resumed_bytes,
            in_common_with: None,
            set_aside: None,
            reason: None,
        };
        let report = Report {
            bytes: 9_000_000,
            compressed_bytes: None,
            files: 1,
            folders: 0,
            links: 0,
            method: "chain",
            seconds: 2.0,
            left_out: Vec::new(),
            skipped: Vec::new(),
            nodes: vec![node(9_000_100), node(8_000_000)],
        };
        assert_eq!(report.text(), "1 file, 9000000 bytes: on 2 of 2 nodes in 2.00 s, 4 Mb/s to each\n");
    }
}
