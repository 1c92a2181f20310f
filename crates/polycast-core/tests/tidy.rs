//! The repository checks itself: arrows point down, the core is pure, files stay small.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of polycast-core from the ground up, as in docs/architecture.md: each may use those before it.
const MODULES: [&str; 10] = [
    "files",
    "variables",
    "topology",
    "model",
    "tree",
    "schedule",
    "algorithm",
    "cost",
    "policy",
    "executor",
];

/// Who may depend on whom among our crates.
const CRATES: [(&str, &[&str]); 9] = [
    ("polycast-units", &[]),
    ("polycast-protocol", &["polycast-units"]),
    ("polycast-core", &["polycast-units", "polycast-protocol"]),
    ("polycast-sim", &["polycast-core"]),
    ("polycast-lab", &["polycast-core"]),
    ("polycast-net", &[]),
    ("polycast-madcap", &["polycast-net"]),
    ("polycast-runtime", &["polycast-core", "polycast-net", "polycast-madcap"]),
    ("polycast-cli", &["polycast-core", "polycast-lab", "polycast-net", "polycast-madcap", "polycast-sim"]),
];

/// The crates that are values in, values out.
const PURE: [&str; 3] = ["polycast-units", "polycast-protocol", "polycast-core"];

/// What a pure crate does not touch.
const IMPURE: [&str; 9] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::io",
    "std::time",
    "std::thread",
    "std::process",
    "static mut",
    "Mutex",
];

const LINES_MOST: usize = 450;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extensions, found);
        } else if path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted)) {
            found.push(path);
        }
    }
}

fn files_below(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join(folder), extensions, &mut found);
    assert!(!found.is_empty(), "{folder} has no {extensions:?}");
    found
}

/// The file without its unit tests, which may use what they like.
fn production_code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]").next().unwrap().to_owned()
}

/// The modules of this crate that a file uses, with their lines: `use crate::a::…`, `crate::{a::…, b}`, `super::…` stay
/// inside a module.
fn uses(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for after in line.split("crate::").skip(1) {
            let names = after.strip_prefix('{').unwrap_or(after);
            for part in names.split(", ") {
                let name: String = part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                found.push((index + 1, name));
            }
        }
    }
    found
}

#[test]
fn arrows_between_modules_point_down() {
    let source = root().join("crates/polycast-core/src");
    let mut wrong = Vec::new();
    for (level, module) in MODULES.iter().enumerate() {
        for path in files_below(&format!("crates/polycast-core/src/{module}"), &["rs"]) {
            for (line, used) in uses(&production_code(&path)) {
                if MODULES.iter().position(|m| *m == used).is_some_and(|used| used > level) {
                    wrong.push(format!("{}:{line}: {module} uses {used}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that point up:\n{}", wrong.join("\n"));

    let mut present: Vec<String> = fs::read_dir(source)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "lib.rs")
        .collect();
    present.sort();
    let mut expected = MODULES.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(present, expected, "a new module needs its place in MODULES");
}

#[test]
fn an_arrow_that_points_up_is_seen() {
    assert_eq!(uses("use crate::executor::Executor;"), [(1, "executor".to_owned())]);
    assert_eq!(
        uses("\n// crate::executor\nlet x = crate::policy::Table::new();"),
        [(3, "policy".to_owned())]
    );
    assert!(uses("use crate::{tree::Tree, model::Model};").contains(&(1, "model".to_owned())));
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for path in PURE.iter().flat_map(|name| files_below(&format!("crates/{name}/src"), &["rs"])) {
        let code = production_code(&path);
        for (index, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            if let Some(word) = IMPURE.iter().find(|word| line.contains(**word)) {
                wrong.push(format!("{}:{}: {word}", path.display(), index + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "impure:\n{}", wrong.join("\n"));
    for name in PURE {
        let lib = fs::read_to_string(root().join(format!("crates/{name}/src/lib.rs"))).unwrap();
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{name}");
    }
}

#[test]
fn arrows_between_crates_point_down() {
    for (name, allowed) in CRATES {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        for (other, _) in CRATES.iter().filter(|(other, _)| *other != name) {
            let depends = normal.lines().any(|line| line.starts_with(other));
            assert!(!depends || allowed.contains(other), "{name} depends on {other}");
        }
    }
    let present = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(present, CRATES.len(), "a new crate needs its place in CRATES");
}

#[test]
fn files_stay_small_and_finished() {
    let mut wrong = Vec::new();
    let mut paths = files_below("crates", &["rs"]);
    paths.extend(files_below("doors", &["c", "h"]));
    paths.extend(files_below("bench", &["c", "h"]));
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if text.lines().count() > LINES_MOST {
            wrong.push(format!("{}: {} lines", path.display(), text.lines().count()));
        }
        // Put together here so that this file does not find itself.
        for word in [["TO", "DO"], ["FIX", "ME"], ["unimplemen", "ted!"], ["to", "do!("]] {
            if text.contains(&word.concat()) {
                wrong.push(format!("{}: {}", path.display(), word.concat()));
            }
        }
        // What only `make test-all` runs says why.
        let ignored = ["#[ig", "nore"].concat();
        let with_reason = format!("{ignored} = \"make test-all: ");
        if text.matches(&ignored).count() != text.matches(&with_reason).count() {
            wrong.push(format!("{}: expected {with_reason}REASON\"]", path.display()));
        }
    }
    assert!(wrong.is_empty(), "untidy:\n{}", wrong.join("\n"));
}

/// A file that no suite names would never be compiled.
#[test]
fn every_file_of_a_suite_is_run() {
    for suite in ["crates/polycast-cli/tests/tool", "crates/polycast-cli/tests/jobs"] {
        let main = fs::read_to_string(root().join(suite).join("main.rs")).unwrap();
        for file in files_below(suite, &["rs"]).iter().filter(|file| file.parent().unwrap().ends_with(suite))
        {
            let name = file.file_stem().unwrap().to_str().unwrap();
            assert!(
                name == "main" || main.contains(&format!("mod {name};")),
                "{suite}/main.rs does not name {name}"
            );
        }
    }
}
