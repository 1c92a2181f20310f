//! Hashes the sources that decide what a rank does, so that ranks recognise another build (`src/identity.rs`). It needs no
//! git and no clock: the same sources give the same number in a clone, in a tarball, and on every machine.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "src/digest.rs"]
mod digest;

use digest::Digest;

/// What is compiled into the runtime and the doors, relative to the workspace. The lock file names the libraries.
const SOURCES: [&str; 25] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/polycast-core/Cargo.toml",
    "crates/polycast-core/src",
    "crates/polycast-madcap/Cargo.toml",
    "crates/polycast-madcap/src",
    "crates/polycast-net/Cargo.toml",
    "crates/polycast-net/src",
    "crates/polycast-protocol/Cargo.toml",
    "crates/polycast-protocol/src",
    "crates/polycast-runtime",
    "crates/polycast-shm/Cargo.toml",
    "crates/polycast-shm/src",
    "crates/polycast-system/Cargo.toml",
    "crates/polycast-system/src",
    "crates/polycast-trace/Cargo.toml",
    "crates/polycast-trace/src",
    "crates/polycast-units/Cargo.toml",
    "crates/polycast-units/src",
    "doors/common",
    "doors/libc",
    "doors/pmpi",
    "doors/verbs",
    "doors/witness",
    "include/polycast.h",
];
/// The table is compiled in, too, but stands in the identity by itself.
const EXTENSIONS: [&str; 7] = ["rs", "toml", "lock", "c", "h", "s", "S"];

fn main() {
    // Asked when it runs: a build script is kept when the checkout moves.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let root = Path::new(&folder).join("../..");
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={}", root.join(source).display());
        find(&root, source, &mut files);
    }
    files.sort();
    let mut sources = Digest::of("polycast sources");
    for file in &files {
        sources = sources.bytes(file.as_bytes()).bytes(&read(&root.join(file)));
    }
    println!("cargo:rustc-env=POLYCAST_SOURCES={}", sources.finish());
    // Doors name it so, whatever links them: by a path of this machine otherwise, where the linker is zig's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libpolycast.so");
    // Cargo sets it for build scripts only.
    println!("cargo:rustc-env=POLYCAST_TARGET={}", std::env::var("TARGET").expect("cargo sets TARGET"));
}

/// The files at or below `path`, with slashes between the names.
fn find(root: &Path, path: &str, files: &mut Vec<String>) {
    let here: PathBuf = root.join(path);
    if here.is_dir() {
        let entries = fs::read_dir(&here).unwrap_or_else(|error| panic!("{}: {error}", here.display()));
        for entry in entries {
            let name = entry.expect("a readable folder").file_name();
            find(root, &format!("{path}/{}", name.to_string_lossy()), files);
        }
    } else if here.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known)) {
        files.push(path.to_owned());
    }
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
