//! The lines that `POLYCAST_REPORT=1` prints at finalize.

use std::collections::BTreeMap;

use polycast_core::policy::Choice;

/// What polycast counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Broadcasts per algorithm, by its written form, in the order of the report.
    pub broadcasts: Vec<Served>,
    /// What multicast did, by the names of the report; empty if it was not asked for.
    pub multicast: BTreeMap<String, u64>,
    /// Communicators that got a private duplicate.
    pub attached: u64,
    /// Those of them that were given back.
    pub released: u64,
}

/// What one algorithm carried.
#[derive(Debug, PartialEq, Eq)]
pub struct Served {
    pub algorithm: String,
    pub calls: u64,
    pub bytes: u64,
}

impl Report {
    /// Reads the report out of everything that a job wrote to its error output.
    ///
    /// # Errors
    /// There is no report, or a line of it is not understood.
    pub fn parse(stderr: &str) -> Result<Report, String> {
        let mut report = Report::default();
        let mut found = false;
        for line in stderr.lines() {
            let Some(rest) = line.trim().strip_prefix("polycast: report: ") else { continue };
            found = true;
            report.line(rest).ok_or_else(|| format!("not understood: `{line}`"))?;
        }
        if found { Ok(report) } else { Err("no line `polycast: report: …`: polycast was not there".into()) }
    }

    /// Takes a line of a kind that the tests know; others may stand between them.
    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["bcast", algorithm, ..] => self.broadcasts.push(Served {
                algorithm: algorithm.into(),
                calls: number(&words, "calls")?,
                bytes: number(&words, "bytes")?,
            }),
            ["attached", ..] => {
                self.attached = number(&words, "communicators")?;
                self.released = number(&words, "released")?;
            }
            ["multicast", ..] => {
                let fields = words[1..].iter().filter_map(|word| word.split_once('='));
                // Beside numbers it says whose they are: ranks=all.
                let numbers = fields.filter_map(|(name, value)| Some((name.into(), value.parse().ok()?)));
                self.multicast = numbers.collect();
            }
            _ => {}
        }
        Some(())
    }

    /// Broadcasts that polycast served itself.
    pub fn served(&self) -> u64 {
        self.sum(|algorithm| algorithm != "stock")
    }

    /// Broadcasts that went to the MPI library.
    pub fn stock(&self) -> u64 {
        self.sum(|algorithm| algorithm == "stock")
    }

    /// Broadcasts by this algorithm, however it is written.
    pub fn served_by(&self, algorithm: &str) -> u64 {
        let wanted: Choice = algorithm.parse().expect("the test names an algorithm that exists");
        self.sum(|name| name.parse() == Ok(wanted))
    }

    /// A counter of multicast. Fails if the report has none of this name.
    pub fn multicast(&self, name: &str) -> u64 {
        *self.multicast.get(name).unwrap_or_else(|| panic!("no multicast counter {name}: {self:?}"))
    }

    fn sum(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        self.broadcasts.iter().filter(|served| wanted(&served.algorithm)).map(|served| served.calls).sum()
    }
}

fn number(words: &[&str], name: &str) -> Option<u64> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

#[test]
fn a_report_is_read_amid_other_lines() {
    let text = "a warning of somebody\npolycast: report: bcast chain:segment=1KiB calls=12 bytes=34567\n\
                polycast: report: bcast stock calls=3 bytes=0\n\
                polycast: report: multicast broadcasts=5 repaired=1 ranks=all\n\
                polycast: report: attached communicators=3 released=2\n";
    let report = Report::parse(text).unwrap();
    assert_eq!((report.served(), report.stock(), report.served_by("chain:segment=1024")), (12, 3, 12));
    assert_eq!((report.attached, report.released), (3, 2));
    assert_eq!((report.multicast("broadcasts"), report.multicast("repaired")), (5, 1));
    assert!(Report::parse("nothing\n").is_err());
}
