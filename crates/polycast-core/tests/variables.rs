//! The list of variables is whole: what the sources read, what the documentation says, and the words in C.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use polycast_core::variables::{self, ALL, OFF};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Files of sources and scripts below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| ["rs", "c", "h", "sh", "py"].iter().any(|e| end == *e)) {
            found.push(path);
        }
    }
}

/// The words of capitals that begin with `POLYCAST` and stand in quotes alone, as names of variables do; but not what the
/// compiler was told.
fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |word: &str| {
        word.starts_with("POLYCAST") && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let words = text.split('"').zip(text.split('"').skip(1));
    words.filter(move |(before, word)| is_name(word) && !before.ends_with("env!(")).map(|(_, word)| word)
}

#[test]
fn every_variable_that_sources_name_is_listed() {
    let mut files = Vec::new();
    for folder in ["crates", "doors", "bench", "scripts"] {
        sources(&root().join(folder), &mut files);
    }
    let mut unknown = BTreeSet::new();
    let header = read("include/polycast.h");
    for file in files {
        // Tests also use names that do not exist.
        if file.iter().any(|part| part == "tests") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let production = text.split("#[cfg(test)]").next().unwrap();
        let names = quoted_names(production).filter(|name| {
            let is_constant = header.contains(&format!("#define {name} "));
            let is_other = is_constant || name.starts_with("POLYCAST_TEST") || name.ends_with('_');
            variables::find(name).is_none() && !is_other
        });
        unknown.extend(names.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(unknown.is_empty(), "not in polycast_core::variables: {unknown:#?}");
    assert_eq!(
        quoted_names(r#"getenv("POLYCAST_NET"); "no POLYCAST_X""#).collect::<Vec<_>>(),
        ["POLYCAST_NET"]
    );
}

#[test]
fn the_page_of_variables_says_what_the_list_says() {
    let page = read("docs/variables.md");
    let found: Vec<&str> = page.lines().filter(|line| line.starts_with("| `POLYCAST")).collect();
    let row = |variable: &variables::Variable| {
        let variables::Variable { name, values, default, meaning, .. } = variable;
        format!("| `{name}` | {} | {default} | {meaning} |", values.written())
    };
    let expected: Vec<String> = ALL.iter().map(row).collect();
    assert_eq!(found, expected, "docs/variables.md should have these rows:\n{}\n", expected.join("\n"));
    for word in OFF.iter().chain(&variables::ON) {
        assert!(page.contains(&format!("`{word}`")), "docs/variables.md lacks the word {word}");
    }
}

/// C cannot share the list: the preloaded object has the words for "off" itself.
#[test]
fn the_preloaded_object_knows_the_same_words_for_off() {
    let source = read("doors/pmpi/say.c");
    let (_, after) =
        source.split_once("int is_off(const char *variable) {").expect("it reads POLYCAST itself");
    let (body, _) = after.split_once("\n}").unwrap();
    let words: BTreeSet<&str> = body.split('"').skip(1).step_by(2).collect();
    assert_eq!(words, OFF.into_iter().collect());
}
