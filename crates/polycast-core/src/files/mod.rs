//! The kinds of files that polycast reads, so that one given in place of another is recognised.

/// The kind of a file that polycast reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A table of rules that choose algorithms.
    Table,
    /// A topology, switches and hosts, in any format.
    Topology,
    /// Measured parameters of the costs of messages.
    Parameters,
    /// Results of broadcast measurements.
    Results,
    /// The neighbours of a host: the switches at the other ends of its links, as LLDP shows them.
    Neighbours,
    /// The addresses that Slurm tells ranks about their place.
    Addresses,
}

impl FileKind {
    /// A description of the kind and where such a file comes from, for messages.
    pub fn description(self) -> &'static str {
        match self {
            FileKind::Table => "a table of rules in TOML (see docs/table.md)",
            FileKind::Topology => {
                "Slurm's topology.conf or topology.yaml, or the JSON that `polycast topology convert` writes"
            }
            FileKind::Parameters => "the JSON of measured parameters that `polycast measure -o FILE` writes",
            FileKind::Results => "the lines of JSON that `polycast bench --json FILE` writes",
            FileKind::Neighbours => "the JSON that `lldpcli -f json0 show neighbors` prints",
            FileKind::Addresses => "lines with a host and its SLURM_TOPOLOGY_ADDR",
        }
    }

    /// The kind that a text has the marks of; `None` if it has those of none.
    pub fn of(text: &str) -> Option<FileKind> {
        let has_line = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
        if text.trim_start().starts_with('{') {
            let marks = [
                ("\"polycast-parameters\"", FileKind::Parameters),
                ("\"polycast-topology\"", FileKind::Topology),
                ("\"environment\"", FileKind::Results),
                ("\"lldp\"", FileKind::Neighbours),
            ];
            return marks.into_iter().find(|(mark, _)| text.contains(mark)).map(|(_, kind)| kind);
        }
        match () {
            () if has_line("[[rule]]") => Some(FileKind::Table),
            () if has_line("SwitchName=") || has_line("- topology:") => Some(FileKind::Topology),
            () => None,
        }
    }

    /// The text of a file that is to be of this kind.
    ///
    /// # Errors
    /// What was expected and what was found, if that is no text, nothing, or a file of another kind.
    pub fn text(self, bytes: Vec<u8>) -> Result<String, String> {
        let found = |found: &str| format!("expected {}, found {found}", self.description());
        let text = match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => text,
            _ => return Err(found("binary data")),
        };
        match FileKind::of(&text) {
            _ if text.trim().is_empty() => Err(found("an empty file")),
            Some(other) if other != self => Err(found(other.description())),
            _ => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_or_of_another_kind_is_named() {
        for (bytes, found) in [
            (&b"\x7fELF\x02\xff\xfe"[..], "found binary data"),
            (b"a\0b", "found binary data"),
            (b" \n", "found an empty file"),
            (b"{\"format\":\"polycast-parameters\",\"version\":1}", "`polycast measure -o FILE` writes"),
            (b"{\"environment\":{}}\n{}", "`polycast bench --json FILE` writes"),
            (b"# Slurm\nSwitchName=s0 Nodes=a", "found Slurm's topology.conf"),
        ] {
            let error = FileKind::Table.text(bytes.to_vec()).unwrap_err();
            assert!(
                error.starts_with("expected a table of rules in TOML") && error.contains(found),
                "{error}"
            );
        }
        assert!(FileKind::Topology.text(b"SwitchName=s0 Nodes=a".to_vec()).is_ok());
        assert!(
            FileKind::Table.text(b"version = 1\n".to_vec()).is_ok(),
            "without a mark the decoder decides"
        );
    }
}
