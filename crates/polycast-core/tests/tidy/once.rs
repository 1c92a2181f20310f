//! What stands in one place: names of algorithms, and the library for system calls (docs/decisions/0071).

use std::collections::BTreeSet;

use polycast_core::algorithm::Registry;

use super::{files_below, production_code, root};

/// Files where a name of an algorithm may stand as a string, by their last folders and name, and why.
const ALGORITHMS_NAMED: [(&str, &str); 8] = [
    ("native/of_table.rs", "a table: which of other MPIs' algorithms is one of ours"),
    ("native/names.rs", "a table of other MPIs' names"),
    ("picture/colour.rs", "a table of colours"),
    ("generate/tables.rs", "chain: a way of the programs that are generated"),
    ("copy/outcome.rs", "chain: how files were copied"),
    ("checks/firewall.rs", "chain: a word of nft"),
    ("topology/slurm_yaml.rs", "flat and ring: words of Slurm"),
    ("view/mod.rs", "a sample for tests"),
];

/// What a string of Rust says, for each string of the code.
fn strings(code: &str) -> impl Iterator<Item = &str> {
    code.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// What others want to know of an algorithm is a field of its entry, not its name.
#[test]
fn algorithms_are_named_in_the_registry_alone() {
    let names: BTreeSet<&str> = Registry::BUILT_IN.entries().map(|entry| entry.name).collect();
    let is_name = |text: &&str| names.contains(text.split(':').next().unwrap_or(text));
    let (mut wrong, mut unused) = (Vec::new(), ALGORITHMS_NAMED.to_vec());
    for path in files_below("crates", &["rs"]) {
        let is_source = path.iter().any(|part| part == "src") && !path.iter().any(|part| part == "fake_door");
        if !is_source || path.strip_prefix(root().join("crates/polycast-core/src/algorithm")).is_ok() {
            continue;
        }
        let code = production_code(&path);
        let named: Vec<&str> = strings(&code).filter(is_name).collect();
        if !named.is_empty() && !ALGORITHMS_NAMED.iter().any(|(file, _)| path.ends_with(file)) {
            wrong.push(format!("{}: {named:?}", path.display()));
        }
        unused.retain(|(file, _)| named.is_empty() || !path.ends_with(file));
    }
    let advice = "expected a field of the algorithm's entry, or a constant of its file";
    assert!(
        wrong.is_empty(),
        "algorithms named outside crates/polycast-core/src/algorithm: {advice}\n{wrong:#?}"
    );
    assert!(unused.is_empty(), "no algorithm is named in {unused:?}");
}

#[test]
fn names_in_code_are_seen() {
    let code = "let x = \"chain:segment=8KiB\"; call(a, \"flat\", \"b\");";
    assert_eq!(strings(code).collect::<Vec<_>>(), ["chain:segment=8KiB", "flat", "b"]);
}

/// Crates that keep to nix, as what they are made of is not in rustix: forks, signals, batches of datagrams.
const OF_NIX: [&str; 3] = ["polycast-lab", "polycast-madcap", "polycast-net"];

/// The other files that use nix, and for what rustix has not.
const CALLS_OF_NIX: [(&str, &str); 3] = [
    ("polycast-shm/src/address.rs", "memory of other processes"),
    ("copy/address.rs", "lists of interfaces"),
    ("checks/querier.rs", "sockets that are bound to an interface"),
];

#[test]
fn system_calls_go_by_rustix_where_it_has_them() {
    let (mut wrong, mut unused) = (Vec::new(), CALLS_OF_NIX.to_vec());
    for path in files_below("crates", &["rs"]) {
        let is_source = path.iter().any(|part| part == "src");
        if !is_source || OF_NIX.iter().any(|name| path.iter().any(|part| part == *name)) {
            continue;
        }
        let code = production_code(&path);
        let uses = code.match_indices("nix::").any(|(at, _)| !code[..at].ends_with('u'));
        unused.retain(|(file, _)| !uses || !path.ends_with(file));
        if uses && !CALLS_OF_NIX.iter().any(|(file, _)| path.ends_with(file)) {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "nix where rustix may have the call (docs/decisions/0071): {wrong:?}");
    assert!(unused.is_empty(), "nix is not used in {unused:?}");
}

/// The statics in the code of a file that is no test's.
fn statics(code: &str) -> impl Iterator<Item = String> {
    let mut before = "";
    let of_product =
        code.lines().filter(move |line| std::mem::replace(&mut before, line.trim()) != "#[cfg(test)]");
    of_product.filter_map(|line| {
        let (front, rest) = line.split_once("static ")?;
        let name: String = rest.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
        let is_declared = !name.is_empty() && rest[name.len()..].starts_with(": ") && !front.contains("//");
        is_declared.then_some(name)
    })
}

/// State of the process has one owner, and docs/architecture.md says of what else is static why.
#[test]
fn what_is_static_in_the_runtime_stands_on_the_page() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let section = page.split("### State of the process").nth(1).and_then(|rest| rest.split("\n## ").next());
    let quoted =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        Some((quoted(&format!("`{}", cells.next()?)), quoted(cells.next()?)))
    };
    // A row is for each of its names in some of its files.
    let mut shown = BTreeSet::new();
    let mut found = BTreeSet::new();
    let runtime = root().join("crates/polycast-runtime/src");
    for path in files_below("crates/polycast-runtime/src", &["rs"]) {
        let file = path.strip_prefix(&runtime).unwrap().to_str().unwrap().to_owned();
        let is_for_tests =
            file.starts_with("fake_door/") || ["machine/test.rs", "fault.rs"].contains(&&file[..]);
        if !is_for_tests && !file.starts_with("of_process") {
            found.extend(statics(&production_code(&path)).map(|name| (file.clone(), name)));
        }
    }
    for (files, names) in section.expect("a section on the state of the process").lines().filter_map(row) {
        let is_of_row = |(file, name): &&(String, String)| files.contains(file) && names.contains(name);
        let of_row: BTreeSet<_> = found.iter().filter(is_of_row).cloned().collect();
        let all: BTreeSet<&String> = of_row.iter().flat_map(|(file, name)| [file, name]).collect();
        let missing: Vec<&String> = files.iter().chain(&names).filter(|word| !all.contains(word)).collect();
        assert!(missing.is_empty(), "docs/architecture.md shows statics that are not there: {missing:?}");
        shown.extend(of_row);
    }
    let unshown: Vec<_> = found.difference(&shown).collect();
    assert!(
        unshown.is_empty(),
        "statics of the runtime that docs/architecture.md does not show: hand the state down from \
         communicator/process.rs, or say in its table why it is static: {unshown:?}"
    );
}

#[test]
fn statics_are_seen() {
    let code = "pub static A: X = 1;\n    of_process! { static B_C: Y = 2; }\n#[cfg(test)]\nstatic T: X = 1;\nfn f<T: 'static + X>(x: &'static Key) {} // static D: E";
    assert_eq!(statics(code).collect::<Vec<_>>(), ["A", "B_C"]);
}
