//! The version stands wherever people read it, and is the same everywhere.

use std::fs;

use crate::common::checkout;

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn the_version_is_the_same_everywhere() {
    let text = |path: &str| fs::read_to_string(checkout().join(path)).unwrap();
    let changelog = text("CHANGELOG.md");
    let of_changelog =
        changelog.lines().filter_map(|line| line.strip_prefix("## ")).find(|line| *line != "Unreleased");
    let newest = of_changelog.expect("a version");
    assert!(
        newest.starts_with(&format!("{VERSION} (")),
        "CHANGELOG.md's newest version is {newest}, expected {VERSION}"
    );
    for (path, expected) in [
        ("packaging/spack/package.py", format!("version(\"{VERSION}\")")),
        ("packaging/spack/package.py", format!("polycast@{VERSION}")),
        ("docs/agreement.md", format!("as `{VERSION}`")),
        ("docs/generate.md", format!("by polycast {VERSION}")),
        ("include/polycast.h", format!("as in \"{VERSION}\"")),
        ("fuzz/Cargo.lock", format!("name = \"polycast-core\"\nversion = \"{VERSION}\"")),
    ] {
        assert!(text(path).contains(&expected), "{path}: expected {expected}");
    }
}
