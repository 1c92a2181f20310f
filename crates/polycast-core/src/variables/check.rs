use super::{ALL, OFF, ON, ReportTo, Values, budget, find};

/// The prefix of all variables' names.
const PREFIX: &str = "POLYCAST";
/// The prefix of names that polycast's own tests use; they are passed over.
const OF_TESTS: &str = "POLYCAST_TEST";

/// Lists the problems of an environment's polycast variables, a clause for each, in the order of
/// their names: unknown names, and values that a variable cannot have. Variables of other programs,
/// and empty ones, are passed over.
pub fn problems(environment: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let is_ours = |name: &str| name.starts_with(PREFIX) && !name.starts_with(OF_TESTS);
    let ours = environment.into_iter().filter(|(name, value)| is_ours(name) && !value.is_empty());
    let mut ours: Vec<(String, String)> = ours.collect();
    ours.sort_unstable();
    ours.iter().filter_map(|(name, value)| problem(name, value)).collect()
}

/// The mistake in the value of a variable, or in its name.
pub(super) fn problem(name: &str, value: &str) -> Option<String> {
    let Some(variable) = find(name) else { return Some(unknown(name)) };
    let (expected, otherwise) = match variable.values {
        Values::Free(_) => return None,
        Values::ReportTo if ReportTo::parse(value).is_some() => return None,
        Values::ReportTo => {
            ("on, off, or the name of a file with a / or a . in it".to_owned(), "taken for on")
        }
        Values::Word(words) if words.iter().any(|word| word.eq_ignore_ascii_case(value)) => return None,
        Values::Word(words) => (one_of(words), "left out"),
        Values::Time if budget(value).is_some() => return None,
        Values::Time => ("a time such as 20s, on or off".to_owned(), "taken for off"),
        Values::Switch { further, otherwise } => {
            let words = [&ON[..], &OFF, further].concat();
            if words.iter().any(|word| word.eq_ignore_ascii_case(value)) {
                return None;
            }
            (one_of(&[&["on", "off"], further].concat()), otherwise)
        }
    };
    Some(format!("{name}={value}: expected {expected}; {otherwise}"))
}

/// Joins words for a sentence: `a`, `a or b`, `a, b or c`.
fn one_of(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

/// Words for a name that no variable has.
pub(super) fn unknown(name: &str) -> String {
    let upper = name.to_ascii_uppercase();
    let distance = |known: &str| strsim::osa_distance(known, &upper);
    let nearest = ALL.iter().map(|variable| variable.name).min_by_key(|known| distance(known));
    // At most a third of the letters: more changes make another word of a short name.
    let is_near = |known: &&str| distance(known) * 3 <= known.len() - PREFIX.len();
    match nearest.filter(is_near) {
        Some(nearest) => format!("{name} is unknown: did you mean {nearest}?"),
        None => format!("{name} is unknown: `polycast info` lists the variables there are"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(name: &str, value: &str) -> Vec<String> {
        problems([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (name, meant) in [
            ("POLYCAST_BCST", "POLYCAST_BCAST"),
            ("POLYCAST_BCASt", "POLYCAST_BCAST"),
            ("POLYCAST_REPROT", "POLYCAST_REPORT"),
            ("POLYCAST_MULTCAST", "POLYCAST_MULTICAST"),
            ("POLYCAST_TOPOLOGIE", "POLYCAST_TOPOLOGY"),
            ("POLYCASTREPORT", "POLYCAST_REPORT"),
        ] {
            assert_eq!(said(name, "1"), [format!("{name} is unknown: did you mean {meant}?")]);
        }
        let far = said("POLYCAST_FROBNICATE", "1");
        assert_eq!(far, ["POLYCAST_FROBNICATE is unknown: `polycast info` lists the variables there are"]);
    }

    #[test]
    fn a_value_that_is_none_is_answered_with_those_there_are() {
        assert_eq!(said("POLYCAST", "maybe"), ["POLYCAST=maybe: expected on or off; taken for on"]);
        assert_eq!(
            said("POLYCAST_MULTICAST", "ipv5"),
            [
                "POLYCAST_MULTICAST=ipv5: expected on, off, verbs, ipv4, ipv4-global or ipv6; trees serve in place of multicast"
            ]
        );
        assert_eq!(
            said("POLYCAST_TUNE", "20"),
            ["POLYCAST_TUNE=20: expected a time such as 20s, on or off; taken for off"]
        );
        let report = said("POLYCAST_REPORT", "ture");
        assert!(report[0].contains("expected on, off, or the name of a file with a /"), "{report:?}");
    }

    #[test]
    fn what_is_right_or_not_ours_passes() {
        for (name, value) in [
            ("POLYCAST", "OFF"),
            ("POLYCAST", ""),
            ("POLYCAST_MULTICAST", "IPv6"),
            ("POLYCAST_REPORT", "Yes"),
            ("POLYCAST_REPORT", "report.json"),
            ("POLYCAST_REPORT", "./report"),
            ("POLYCAST_TABLE", "anything"),
            ("POLYCAST_TUNE", "20s"),
            ("POLYCAST_TESTS_ALLOW_SKIP", "1"),
            ("POLYCAST_BCST", ""),
            ("PATH", "x"),
            ("POLYGON", "x"),
        ] {
            assert!(said(name, value).is_empty(), "{name}={value}");
        }
    }

    proptest! {
        /// One slip of the finger in any name is mended.
        #[test]
        fn one_wrong_letter_finds_the_way_back(which in 0..ALL.len(), at in 9usize..30, letter in "[A-Z]") {
            let name = ALL[which].name;
            prop_assume!(at < name.len());
            let wrong = format!("{}{letter}{}", &name[..at], &name[at + 1..]);
            prop_assume!(find(&wrong).is_none() && !wrong.starts_with(OF_TESTS));
            prop_assert!(said(&wrong, "1")[0].contains("did you mean POLYCAST_"), "{wrong}");
        }
    }
}
