//! The repository checks itself: arrows point down, the core is pure, files stay small.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "tidy/names.rs"]
mod names;

use polycast_core::algorithm::Registry;

/// The crates that are values in, values out.
const PURE: [&str; 5] =
    ["polycast-units", "polycast-protocol", "polycast-copy", "polycast-core", "polycast-trace"];

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

/// The crates whose modules docs/architecture.md shows.
const MAPPED: [&str; 8] = [
    "polycast-core",
    "polycast-runtime",
    "polycast-sim",
    "polycast-cli-console",
    "polycast-cli-results",
    "polycast-cli-launch",
    "polycast-cli-serving",
    "polycast-cli-measuring",
];

const MAX_LINES: usize = 450;

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
    if path.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("tests") || name == "testing") {
        return String::new();
    }
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap().lines();
    code.map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect::<Vec<_>>()
        .join("\n")
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// What follows `start` in paths: of `crate::a::B` and `crate::{a::B, c}` the names a and c, where `start` is `crate::`.
fn names_after(start: &str, code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with(['_', ':'])) {
        let after = &code[at + start.len()..];
        let mut depth = 0;
        let mut expects_name = true;
        for (position, c) in after.char_indices() {
            if expects_name && c.is_alphabetic() {
                names.insert(identifier(&after[position..]));
                expects_name = false;
            }
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expects_name = true,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// Our crates, by the names that docs/architecture.md has for them, as they stand in its table; and what each uses.
fn graph_of_crates() -> Vec<(String, BTreeSet<String>)> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `crates/polycast-")?.split_once("/`")?;
        let uses = rest.trim_end_matches([' ', '|']).rsplit_once("| ").map_or("", |(_, uses)| uses);
        let uses = uses.split(", ").filter(|used| *used != "nothing of ours").map(str::to_owned);
        Some((name.to_owned(), uses.collect()))
    };
    page.lines().filter_map(row).collect()
}

/// The modules of a crate as docs/architecture.md shows them: a block with a line for each, below the sentence that names the crate.
fn graph_of_modules(name: &str) -> Vec<(String, BTreeSet<String>)> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let sentence = format!("The modules of `{name}`");
    let block = page.split(&sentence).nth(1).and_then(|rest| rest.split("```").nth(1));
    let line = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some((words.next()?, words.filter(|word| word != "◀").collect()))
    };
    let block = block.unwrap_or_else(|| panic!("docs/architecture.md has no block below \"{sentence}\""));
    block.lines().filter_map(line).collect()
}

fn assert_same_graph(shown: &[(String, BTreeSet<String>)], found: &BTreeMap<String, BTreeSet<String>>) {
    let shown_names: BTreeSet<&String> = shown.iter().map(|(name, _)| name).collect();
    assert!(
        shown_names.into_iter().eq(found.keys()),
        "docs/architecture.md shows other names than {found:#?}"
    );
    for (index, (name, uses)) in shown.iter().enumerate() {
        assert_eq!(
            uses, &found[name],
            "docs/architecture.md (left) and the code (right) differ in what {name} uses"
        );
        let later = shown[index..].iter().map(|(name, _)| name).find(|name| uses.contains(*name));
        assert_eq!(
            later, None,
            "{name} uses what stands below it in docs/architecture.md: an arrow that points up"
        );
    }
}

/// Names of a crate's modules, but of its root and of what stands in for an MPI in tests.
fn modules_of(name: &str) -> BTreeMap<String, Vec<PathBuf>> {
    let folder = root().join("crates").join(name).join("src");
    let mut modules = BTreeMap::<String, Vec<PathBuf>>::new();
    for path in files_below(&format!("crates/{name}/src"), &["rs"]) {
        let first = path.strip_prefix(&folder).unwrap().iter().next().unwrap().to_str().unwrap();
        let module = first.trim_end_matches(".rs").to_owned();
        if !["lib", "main", "fake_door"].contains(&module.as_str()) {
            modules.entry(module).or_default().push(path);
        }
    }
    modules
}

#[test]
fn arrows_between_modules_are_those_of_the_page_and_point_down() {
    for name in MAPPED {
        let modules = modules_of(name);
        let mut found = BTreeMap::new();
        for (module, paths) in &modules {
            let mut uses = BTreeSet::new();
            for code in paths.iter().map(|path| production_code(path)) {
                uses.extend(names_after("crate::", &code));
                if name == "polycast-core" {
                    // Other crates' modules are the core's own names: it hands them on.
                    uses.extend(names_after("polycast_", &code));
                }
            }
            uses.retain(|used| used != module && (modules.contains_key(used) || name == "polycast-core"));
            found.insert(module.clone(), uses);
        }
        assert_same_graph(&graph_of_modules(name), &found);
    }
}

#[test]
fn arrows_between_crates_are_those_of_the_page_and_point_down() {
    let crates: Vec<String> = graph_of_crates().into_iter().map(|(name, _)| name).collect();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().file_name().into_string().unwrap();
        let name = folder.strip_prefix("polycast-").unwrap().to_owned();
        let mut uses = BTreeSet::new();
        for path in files_below(&format!("crates/{folder}/src"), &["rs"]) {
            let named = names_after("polycast_", &production_code(&path));
            uses.extend(named.into_iter().map(|name| name.replace('_', "-")));
        }
        // Names of the C interface begin alike.
        uses.retain(|used| crates.contains(used) && *used != name);
        let manifest = fs::read_to_string(root().join("crates").join(&folder).join("Cargo.toml")).unwrap();
        let normal = manifest.split("[dev-dependencies]").next().unwrap().lines();
        let declared =
            normal.filter_map(|line| line.strip_prefix("polycast-")?.strip_suffix(".workspace = true"));
        assert!(
            declared.map(str::to_owned).collect::<BTreeSet<_>>() == uses,
            "{folder}/Cargo.toml: used are {uses:?}"
        );
        found.insert(name, uses);
    }
    assert_same_graph(&graph_of_crates(), &found);
}

#[test]
fn what_a_file_uses_is_seen() {
    let seen = |code: &str| names_after("crate::", code).into_iter().collect::<Vec<_>>();
    assert_eq!(seen("use crate::executor::Executor;"), ["executor"]);
    assert_eq!(
        seen("use my_crate::policy;\nlet x = crate::policy::Table::new(crate::cost::all());"),
        ["cost", "policy"]
    );
    assert_eq!(seen("use crate::{tree::{Tree, Shape}, model::Model};"), ["model", "tree"]);
    assert_eq!(seen("use crate::{\n    tree::Tree,\n    model,\n};"), ["model", "tree"]);
}

#[test]
fn the_core_is_pure() {
    let mut wrong = Vec::new();
    for path in PURE.iter().flat_map(|name| files_below(&format!("crates/{name}/src"), &["rs"])) {
        let code = production_code(&path);
        for (index, line) in code.lines().enumerate() {
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

/// Ranks with other sources of it must not take each other for the same build.
#[test]
fn a_build_is_known_by_all_crates_of_the_runtime() {
    let listed = fs::read_to_string(root().join("crates/polycast-runtime/build.rs")).unwrap();
    let graph: BTreeMap<_, _> = graph_of_crates().into_iter().collect();
    let mut crates = vec!["runtime".to_owned()];
    let mut next = 0;
    while let Some(name) = crates.get(next) {
        assert!(
            listed.contains(&format!("\"crates/polycast-{name}")),
            "build.rs of the runtime has no {name}"
        );
        crates.extend(graph[name].iter().cloned());
        next += 1;
    }
}

#[test]
fn files_stay_small_and_finished() {
    let mut wrong = Vec::new();
    let mut paths = files_below("crates", &["rs"]);
    paths.extend(files_below("doors", &["c", "h"]));
    paths.extend(files_below("bench", &["c", "h"]));
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        if text.lines().count() > MAX_LINES {
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

/// Sources are cited by authors and year, and docs/references.md has each of them.
#[test]
fn sources_are_cited_by_authors_and_year() {
    let references = fs::read_to_string(root().join("docs/references.md")).unwrap();
    let mut wrong = Vec::new();
    for folder in ["crates", "docs", "doors", "bench", "fuzz/bodies"] {
        for path in files_below(folder, &["rs", "c", "h", "md"]) {
            let text = fs::read_to_string(&path).unwrap();
            let small = text.to_lowercase();
            // A number is for the random seed of an option or a range.
            for (at, word) in ["seed ", "seeds "].iter().flat_map(|word| small.match_indices(word)) {
                let after = &small.as_bytes()[at + word.len()..];
                let is_numbered =
                    matches!(after, [b'0'..=b'4', next, ..] if !next.is_ascii_digit() && *next != b'.');
                if is_numbered && !small[..at].ends_with("--") {
                    let line = small[..at].lines().count();
                    wrong.push(format!("{}:{line}: a source without authors and year", path.display()));
                }
            }
            // Put together so that this file does not find itself.
            for (at, _) in text.match_indices(&[" et al", ". 2"].concat()) {
                let name = text[..at].rsplit(|c: char| !c.is_alphabetic()).next().unwrap();
                let year: String = text[at..].chars().take(" et al. ".len() + 4).collect();
                if !references.contains(&format!("{name}{year}")) {
                    wrong.push(format!("{}: {name}{year} is not in docs/references.md", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "citations:\n{}", wrong.join("\n"));
}

#[test]
fn every_decision_has_a_number_in_its_heading_and_a_line_in_the_index() {
    let folder = root().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let (mut pages, mut lines) = (0, 0);
    for page in files_below("docs/decisions", &["md"]) {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let Some((Ok(number), _)) = name.split_once('-').map(|(digits, rest)| (digits.parse::<u32>(), rest))
        else {
            assert_eq!(name, "README.md", "docs/decisions/{name}: expected NNNN-words.md");
            lines = index.lines().filter(|line| line.starts_with("| [")).count();
            continue;
        };
        let text = fs::read_to_string(&page).unwrap();
        let heading = format!("# {number}. ");
        assert!(text.starts_with(&heading), "docs/decisions/{name} does not begin with \"{heading}\"");
        let entry = format!("| [{number}]({name}) | ");
        let line = index.lines().find(|line| line.starts_with(&entry));
        let line = line.unwrap_or_else(|| panic!("docs/decisions/README.md has no line \"{entry}…\""));
        let state = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let is_state = state == "stands" || ["changed by ", "gone: "].iter().any(|s| state.starts_with(s));
        assert!(
            is_state,
            "docs/decisions/README.md: {number} is \"{state}\", expected stands, changed by N or gone: N"
        );
        pages += 1;
    }
    assert_eq!(pages, lines, "docs/decisions/README.md has a line without a page, or one twice");
}

#[test]
fn files_that_a_call_passes_are_where_the_page_says() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let walk =
        page.split_once("\n## Three calls from file to file\n").expect("three calls from file to file").1;
    let walk = walk.split_once("\n## ").expect("a section behind it").0;
    let folders = ["crates/polycast-runtime/src", "crates", "doors/common", "doors/pmpi", "."];
    let is_file = |word: &&str| [".rs", ".c", ".h", "/"].iter().any(|end| word.ends_with(end));
    let named: BTreeSet<&str> = walk.split('`').skip(1).step_by(2).filter(is_file).collect();
    assert!(named.len() > 20, "docs/architecture.md names {named:?} only");
    let is_there = |name: &str| folders.iter().any(|folder| root().join(folder).join(name).exists());
    let missing: Vec<_> = named.into_iter().filter(|name| !is_there(name)).collect();
    assert!(
        missing.is_empty(),
        "docs/architecture.md, three calls: no file {missing:?}; say where a call goes now"
    );
}
