//! Names of types.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use super::{files_below, identifier, production_code, root};

/// Names that may stand for several types of a crate, `*` for any: those that clap's derived types have, the registers of each
/// kind of processor, of which one is compiled, a C struct of which a routine has one or the other, and what is left.
const SEVERAL: [(&str, &str); 10] = [
    ("*", "Args"),
    ("*", "Verb"),
    ("polycast-runtime", "Environment"),
    ("polycast-study", "choice"),
    ("polycast-core", "Call"),
    ("polycast-core", "Rule"),
    ("polycast-core", "Way"),
    ("polycast-runtime", "Found"),
    ("polycast-runtime", "Shared"),
    ("polycast-runtime", "Wanted"),
];

/// The type that a line of Rust declares.
fn declared_type(line: &str) -> Option<String> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let rest = ["struct ", "enum ", "trait ", "union "].iter().find_map(|word| line.strip_prefix(word))?;
    Some(identifier(rest)).filter(|name| !name.is_empty())
}

/// A name stands for one type of a crate. Of verbs each has `Args` and some a `Verb`, for clap.
#[test]
fn a_name_stands_for_one_type_of_a_crate() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().file_name().into_string().unwrap();
        let mut declared = BTreeMap::<String, Vec<PathBuf>>::new();
        for path in files_below(&format!("crates/{folder}/src"), &["rs"]) {
            // What stands in for an MPI in tests has words of its own.
            if path.components().any(|part| part.as_os_str() == "fake_door" || part.as_os_str() == "tests") {
                continue;
            }
            for name in production_code(&path).lines().filter_map(declared_type) {
                declared.entry(name).or_default().push(path.clone());
            }
        }
        for (name, paths) in declared.into_iter().filter(|(_, paths)| paths.len() > 1) {
            let is_known = SEVERAL.iter().any(|(of, known)| *known == name && (*of == folder || *of == "*"));
            if !is_known {
                wrong.push(format!("{folder}: {name} in {paths:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "one name for several types; name each by its role:\n{}", wrong.join("\n"));
}

#[test]
fn a_declared_type_is_seen() {
    let seen = |line: &str| declared_type(line).unwrap_or_default();
    assert_eq!(seen("    pub(super) struct Part<'a> {"), "Part");
    assert_eq!(seen("enum Part {"), "Part");
    assert_eq!(seen("pub trait Part: Sized {"), "Part");
    assert_eq!(seen("pub fn structure() {}"), "");
    assert_eq!(seen("publish(struct_of(x));"), "");
}
