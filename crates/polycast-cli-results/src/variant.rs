//! What is compared: `stock`, `polycast`, one algorithm, or `blast`.

use std::fmt;

use polycast_core::policy::{Choice, ParseChoiceError};

use crate::operation::Operation;

/// The most variants of one job.
pub const MAX_VARIANTS: usize = 32;

/// A variant: the way in which calls are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The MPI's own function.
    Stock,
    /// The choice that polycast makes by its table.
    Polycast,
    /// An algorithm of polycast, or multicast.
    Forced(Choice),
    /// A bare UDP multicast of the same bytes: no MPI, and lost data is lost. Shows the best that
    /// the network can do.
    Blast,
}

impl From<Choice> for Variant {
    fn from(choice: Choice) -> Variant {
        match choice {
            Choice::Stock => Variant::Stock,
            choice => Variant::Forced(choice),
        }
    }
}

impl Variant {
    /// True if polycast must be preloaded.
    pub fn needs_polycast(self) -> bool {
        matches!(self, Variant::Polycast | Variant::Forced(_))
    }

    /// True if the variant delivers all data whatever the network does.
    pub fn is_reliable(self) -> bool {
        self != Variant::Blast
    }
}

/// An error in a list of variants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariantsError {
    /// A word in the list is no variant.
    #[error("variant {found:?}: expected stock, polycast, blast or an algorithm: {source}")]
    Unknown {
        /// The unknown word.
        found: String,
        /// The reason why the word is no algorithm.
        source: ParseChoiceError,
    },
    /// A multicast of the same bytes is none.
    #[error("variant blast: a bare multicast does what bcast does, not {0}")]
    Blast(Operation),
    /// A variant is in the list twice.
    #[error("variant {0} is listed twice")]
    Twice(Variant),
    /// Too many variants.
    #[error("{0} variants: expected at most {MAX_VARIANTS}")]
    TooMany(usize),
}

/// Reads a list of variants: `stock,polycast,chain:segment=8KiB,ready,binomial`. Each operation gets those that serve it; one that serves none of
/// them is an error.
///
/// The comma also separates the parameters of an algorithm. An item that has the form of a parameter, that is
/// `ready`, `parity` or `name=value`, belongs to the item before it: the example has four variants.
pub fn parse_for(operations: &[Operation], text: &str) -> Result<Vec<Vec<Variant>>, VariantsError> {
    let mut lists = vec![Vec::new(); operations.len()];
    for item in split(text) {
        let mut problem = None;
        let mut serves_one = false;
        for (operation, variants) in operations.iter().zip(&mut lists) {
            match parse_one(*operation, &item) {
                Ok(variant) if variants.contains(&variant) => return Err(VariantsError::Twice(variant)),
                Ok(variant) => {
                    variants.push(variant);
                    serves_one = true;
                }
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        if let Some(problem) = problem.filter(|_| !serves_one) {
            return Err(problem);
        }
    }
    match lists.iter().map(Vec::len).max() {
        Some(most) if most > MAX_VARIANTS => Err(VariantsError::TooMany(most)),
        _ => Ok(lists),
    }
}

/// Splits a list into its items, each with its parameters: what follows a comma may be one.
pub fn split(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for item in text.split(',').map(str::trim) {
        match items.last_mut() {
            Some(before) if is_parameter(item) => {
                before.push(if before.contains(':') { ',' } else { ':' });
                before.push_str(item);
            }
            _ => items.push(item.to_owned()),
        }
    }
    items
}

fn is_parameter(item: &str) -> bool {
    item == "ready" || item == "parity" || item.split(':').next().is_some_and(|head| head.contains('='))
}

fn parse_one(operation: Operation, item: &str) -> Result<Variant, VariantsError> {
    match item {
        "stock" => Ok(Variant::Stock),
        "polycast" => Ok(Variant::Polycast),
        "blast" if operation == Operation::Bcast => Ok(Variant::Blast),
        "blast" => Err(VariantsError::Blast(operation)),
        _ => match Choice::read(operation.collective(), item) {
            Ok(choice) => Ok(Variant::Forced(choice)),
            Err(source) => Err(VariantsError::Unknown { found: item.to_owned(), source }),
        },
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::Stock => f.pad("stock"),
            Variant::Polycast => f.pad("polycast"),
            Variant::Blast => f.pad("blast"),
            Variant::Forced(choice) => choice.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(operation: Operation, text: &str) -> Result<Vec<Variant>, VariantsError> {
        parse_for(&[operation], text).map(|mut lists| lists.remove(0))
    }

    fn names(text: &str) -> Vec<String> {
        parse(Operation::Bcast, text).unwrap().iter().map(Variant::to_string).collect()
    }

    #[test]
    fn parameters_stay_with_their_algorithm() {
        assert_eq!(
            names("stock,polycast,chain:segment=8KiB,ready,k-nomial:k=4,segment=1000,binomial"),
            ["stock", "polycast", "chain:segment=8KiB,ready", "k-nomial:k=4,segment=1000", "binomial"]
        );
        assert_eq!(names("chain,ready"), ["chain:ready"]);
        assert_eq!(names("multicast-push,parity,stock"), ["multicast-push:parity", "stock"]);
        assert_eq!(names("stock,blast,chain"), ["stock", "blast", "chain"]);
    }

    #[test]
    fn errors_name_the_item() {
        for (text, expected) in [
            ("stock,bianry", "variant \"bianry\": expected stock, polycast, blast or an algorithm"),
            ("", "variant \"\""),
            ("stock,ready", "variant \"stock:ready\""),
            ("segment=8KiB", "variant \"segment=8KiB\""),
            ("chain,stock,chain", "chain is listed twice"),
            ("blast,ready", "variant \"blast:ready\""),
        ] {
            let error = parse(Operation::Bcast, text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn each_operation_gets_what_serves_it() {
        let operations = [Operation::Bcast, Operation::Allgatherv, Operation::Reduce];
        let lists = parse_for(&operations, "stock,blast,ring,binomial:segment=8KiB").unwrap();
        let names: Vec<String> = lists
            .iter()
            .map(|list| list.iter().map(Variant::to_string).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(names, ["stock blast binomial:segment=8KiB", "stock ring", "stock binomial:segment=8KiB"]);
        let nobody = parse_for(&operations[1..], "stock,blast").unwrap_err().to_string();
        assert!(nobody.contains("not allgatherv"), "{nobody}");
        let nobody = parse_for(&operations[..2], "dissemination").unwrap_err().to_string();
        assert!(nobody.contains("dissemination serves barrier"), "{nobody}");
    }

    #[test]
    fn the_limit_of_variants() {
        let list =
            |count: u32| (1..=count).map(|i| format!("chain:segment={i}")).collect::<Vec<_>>().join(",");
        assert_eq!(parse(Operation::Bcast, &list(32)).unwrap().len(), 32);
        assert_eq!(parse(Operation::Bcast, &list(33)), Err(VariantsError::TooMany(33)));
    }
}
