//! Decision files of stock libraries: which of the library's own algorithms serves which size, so that tuning helps where polycast is not
//! loaded, too.
//!
//! ```text
//!  a launch for each way ─▶ Search ─┐
//!  our table, for a shape ──────────┼─▶ Rules ─▶ classic  coll_tuned_dynamic_rules_filename, Open MPI 3 to 5
//!  classic, json ───────────────────┘         ├▶ json     the same by names, Open MPI 6
//!  MPICH's own tree, from its library ────────┴▶ Tree     MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE, MPICH 4 and 5
//! ```

mod classic;
mod json;
mod names;
mod of_table;
mod search;
mod tree;

pub use names::{Library, Way};
pub use of_table::of_table;
pub use search::Search;
pub use tree::Tree;

use polycast_core::collective::Collective;
use polycast_core::units::Bytes;

/// The rules of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// The rules of each collective, in rising order of the library's numbers for collectives.
    pub collectives: Vec<OfCollective>,
}

/// The rules for a collective.
#[derive(Clone, Debug, PartialEq)]
pub struct OfCollective {
    /// The collective.
    pub collective: Collective,
    /// The rules by rising sizes of communicators; each entry is for sizes up to the next. Where
    /// placements have rules of their own, the entries stand placement after placement, with
    /// [`Placement::Any`] last.
    pub communicators: Vec<OfRanks>,
}

/// The rules for communicators from a size on.
#[derive(Clone, Debug, PartialEq)]
pub struct OfRanks {
    /// The placement of the communicators' ranks.
    pub placement: Placement,
    /// The fewest ranks.
    pub ranks: u32,
    /// The rules by rising bytes, from 0 on; each is for sizes up to the next.
    pub rules: Vec<Rule>,
}

/// The placement of a communicator's ranks on nodes, as far as Open MPI 6 asks:
/// `comm_rank_distribution`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each rank is on a node of its own.
    OnePerNode,
    /// The ranks are all on one node.
    SingleNode,
    /// Any placement that has no rules of its own.
    Any,
}

impl Placement {
    /// All placements, those with rules of their own first.
    const ALL: [Placement; 3] = [Placement::OnePerNode, Placement::SingleNode, Placement::Any];

    /// Returns Open MPI's name of the placement.
    fn name(self) -> &'static str {
        match self {
            Placement::OnePerNode => "one-per-node",
            Placement::SingleNode => "single-node",
            Placement::Any => "any",
        }
    }
}

/// The way that serves messages from a size on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The first size in bytes, counted in all: of gather, scatter, allgather and all-to-all the
    /// blocks of all ranks.
    pub bytes: u64,
    /// The way that serves these sizes.
    pub way: Way,
    /// The reason for the rule, for readers.
    pub because: Option<String>,
}

impl Rule {
    /// A rule that leaves sizes from `bytes` on to the library.
    fn stock(bytes: u64) -> Rule {
        Rule { bytes, way: Way::STOCK, because: None }
    }
}

impl OfRanks {
    /// The rules for communicators from `ranks` ranks on.
    fn new(ranks: u32, rules: Vec<Rule>) -> OfRanks {
        OfRanks { placement: Placement::Any, ranks, rules }
    }

    /// An entry that leaves communicators from `ranks` ranks on to the library.
    fn stock(ranks: u32) -> OfRanks {
        OfRanks::new(ranks, vec![Rule::stock(0)])
    }
}

/// What a file is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Target {
    /// Numbers, as Open MPI up to 5 reads them: coll_tuned_dynamic_rules_filename
    Openmpi,
    /// JSON by names, as Open MPI 6 reads it
    OpenmpiJson,
    /// MPICH's selection, 4 and 5: MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE
    Mpich,
}

impl Target {
    /// Returns the format of this library's rules; `None`: MPICH has no rules, but a [`Tree`].
    pub fn format(self) -> Option<RulesFormat> {
        match self {
            Target::Openmpi => Some(RulesFormat::Openmpi),
            Target::OpenmpiJson => Some(RulesFormat::OpenmpiJson),
            Target::Mpich => None,
        }
    }
}

/// The format of a file of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesFormat {
    /// Numbers, one behind the other.
    Openmpi,
    /// JSON by names.
    OpenmpiJson,
}

impl RulesFormat {
    /// Guesses the format of a text by its marks; `None` if it has the marks of neither.
    pub fn of(text: &str) -> Option<RulesFormat> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let first = lines.clone().next()?;
        match first.chars().next()? {
            '{' => Some(RulesFormat::OpenmpiJson),
            digit if digit.is_ascii_digit() => Some(RulesFormat::Openmpi),
            _ if first.starts_with(classic::VERSION) => Some(RulesFormat::Openmpi),
            _ => None,
        }
    }
}

impl Rules {
    /// Makes rules for this number of ranks alone; others are as the library has them. Up to Open
    /// MPI 4 the first rules are for smaller communicators, too.
    pub fn for_ranks(ranks: u32, of: Vec<(Collective, Vec<Rule>)>) -> Rules {
        let one = |(collective, mut rules): (Collective, Vec<Rule>)| {
            if rules.first().is_none_or(|rule| rule.bytes > 0) {
                rules.insert(0, Rule::stock(0));
            }
            rules.dedup_by(|later, earlier| later.way == earlier.way);
            let larger = ranks.checked_add(1).map(OfRanks::stock);
            let communicators =
                [OfRanks::stock(0), OfRanks::new(ranks, rules)].into_iter().chain(larger).collect();
            OfCollective { collective, communicators }
        };
        let mut collectives: Vec<OfCollective> = of.into_iter().map(one).collect();
        collectives.sort_by_key(|one| names::number_of(one.collective));
        Rules { collectives }
    }

    /// Reads a file in one of the formats.
    ///
    /// # Errors
    /// What was expected and what was found, with the line.
    pub fn parse(text: &str, format: RulesFormat) -> Result<Rules, String> {
        let rules = match format {
            RulesFormat::Openmpi => classic::parse(text)?,
            RulesFormat::OpenmpiJson => json::parse(text)?,
        };
        rules.check()?;
        Ok(rules)
    }

    /// Writes the rules as a file of that format.
    ///
    /// # Errors
    /// It cannot say that.
    pub fn write(&self, format: RulesFormat, head: &[String]) -> Result<String, String> {
        match format {
            RulesFormat::Openmpi => classic::write(self, head),
            RulesFormat::OpenmpiJson => Ok(json::write(self)),
        }
    }

    /// Checks that the library understands the rules as they look: sizes of communicators and bytes
    /// rise, and the first rule is for 0 bytes.
    fn check(&self) -> Result<(), String> {
        for OfCollective { collective, communicators } in &self.collectives {
            let is_behind =
                |two: &[OfRanks]| two[0].placement == two[1].placement && two[0].ranks >= two[1].ranks;
            if communicators.windows(2).any(is_behind) {
                return Err(format!("{collective}: expected rising sizes of communicators"));
            }
            for OfRanks { ranks, rules, .. } in communicators {
                let of = || format!("{collective} of {ranks} ranks and more");
                if rules.first().is_none_or(|rule| rule.bytes != 0) {
                    return Err(format!("{}: expected the first rule to be for 0 bytes", of()));
                }
                if rules.windows(2).any(|two| two[0].bytes >= two[1].bytes) {
                    return Err(format!("{}: expected rules by rising bytes", of()));
                }
            }
        }
        Ok(())
    }

    /// Writes the rules for people.
    pub fn show(&self) -> String {
        let mut text = String::new();
        for OfCollective { collective, communicators } in &self.collectives {
            for OfRanks { placement, ranks, rules } in communicators {
                let placed = match placement {
                    Placement::OnePerNode => ", each on its own node",
                    Placement::SingleNode => ", all on one node",
                    Placement::Any => "",
                };
                text += &format!("{collective}, {ranks} ranks and more{placed}\n");
                for rule in rules {
                    text += &format!("  from {:>8}  {}\n", Bytes(rule.bytes).to_string(), rule.way);
                }
            }
        }
        text
    }

    /// Returns the rules for communicators of `ranks` ranks, by collective, where they differ from
    /// the library's.
    pub fn of_ranks(&self, ranks: u32) -> impl Iterator<Item = (Collective, &[Rule])> {
        let of = move |one: &OfCollective| one.communicators.iter().position(|of| of.ranks == ranks);
        self.collectives.iter().filter_map(move |one| {
            let rules = &one.communicators[of(one)?].rules[..];
            rules.iter().any(|rule| rule.way != Way::STOCK).then_some((one.collective, rules))
        })
    }

    /// Counts the rules.
    pub fn count(&self) -> usize {
        self.collectives.iter().flat_map(|one| &one.communicators).map(|one| one.rules.len()).sum()
    }
}

#[cfg(test)]
mod tests;
