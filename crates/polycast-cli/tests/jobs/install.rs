//! `make install` copies what `make build` has laid out, and what is missing is named as the system names it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{checkout, library_directory};
use tempfile::TempDir;

const MAX_BYTES: u64 = 25_000_000;

/// A folder with executables that take the place of those on PATH.
pub fn in_front_of_path(scripts: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in scripts {
        let file = folder.path().join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

/// Whoever installs has no compiler.
const NO_COMPILERS: [(&str, &str); 4] =
    [("cargo", "exit 1"), ("rustc", "exit 1"), ("cc", "exit 1"), ("mpicc", "exit 1")];

fn make(arguments: &[&str], destination: &Path) -> Output {
    let front = in_front_of_path(&NO_COMPILERS);
    let mut command = Command::new("sh");
    // What a careful administrator has set must not hide the files from users.
    command.args([
        "-c",
        "umask 077 && exec make \"$@\"",
        "make",
        "--no-print-directory",
        "PREFIX=/opt/poly cast",
    ]);
    command.arg(format!("DESTDIR={}", destination.display())).args(arguments).current_dir(checkout());
    command.env("PATH", format!("{}:/usr/bin:/bin", front.path().display()));
    // The test itself may be run by make.
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").output().unwrap()
}

/// What a command said.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Every file below a folder, and every link, which is not followed.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// The targets of a document's links to files.
fn links(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let without_place = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    without_place.filter(|target| !target.is_empty() && !target.contains("://"))
}

fn broken_links(folder: &Path) -> Vec<String> {
    let is_document =
        |file: &PathBuf| [".md", ".md.gz"].iter().any(|end| file.to_string_lossy().ends_with(end));
    files(folder)
        .into_iter()
        .filter(is_document)
        .flat_map(|file| {
            // What is not compressed is as it is.
            let read = Command::new("gzip").arg("-dcf").arg(&file).output().unwrap();
            assert!(read.status.success(), "{}: {}", file.display(), text(&read));
            let (text, around) = (String::from_utf8(read.stdout).unwrap(), file.parent().unwrap().to_owned());
            let broken = links(&text).filter(|target| !around.join(target).exists());
            broken.map(|target| format!("{}: {target}", file.display())).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn install_only_copies_and_uninstall_removes_everything() {
    let destination = tempfile::tempdir().unwrap();
    let installed = destination.path().join("opt/poly cast");
    let done = make(&["install"], destination.path());
    assert!(done.status.success(), "run `make build` first\n{}", text(&done));

    let all: Vec<PathBuf> = files(&installed).into_iter().filter(|file| !file.is_symlink()).collect();
    let bytes: u64 = all.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes are installed, expected {MAX_BYTES} at the most");
    for file in &all {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert!(mode == 0o644 || mode == 0o755, "{}: {mode:o}", file.display());
    }
    for folder in all
        .iter()
        .flat_map(|file| file.ancestors().take_while(|folder| folder.starts_with(&installed)).skip(1))
    {
        let mode = folder.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "{}: {mode:o}", folder.display());
    }
    let documents = installed.join("share/doc/polycast");
    let links_only = documents.join("include");
    assert_eq!(links_only.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert!(links(&fs::read_to_string(documents.join("README.md")).unwrap()).count() > 10);
    assert_eq!(broken_links(&documents), Vec::<String>::new());

    let tool = installed.join("bin/polycast");
    let says = |arguments: &[&str]| {
        let output = Command::new(&tool).args(arguments).env_remove("POLYCAST_LIBDIR").output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let info: serde_json::Value = serde_json::from_str(&says(&["info", "--json"])).unwrap();
    let library = installed.canonicalize().unwrap().join("lib/polycast");
    assert_eq!(info["library_directory"], library.to_str().unwrap());
    // Its indentation is left out.
    let bash: String = says(&["completions", "bash"])
        .lines()
        .map(|line| format!("{}\n", line.trim_start_matches(' ')))
        .collect();
    for (said, place) in [
        (bash, "share/bash-completion/completions/polycast"),
        (says(&["completions", "zsh"]), "share/zsh/site-functions/_polycast"),
        (says(&["completions", "fish"]), "share/fish/vendor_completions.d/polycast.fish"),
    ] {
        assert_eq!(fs::read_to_string(installed.join(place)).unwrap(), said, "{place}");
    }
    assert_eq!(pages(&installed), verbs(&says(&["--help"])));

    let done = make(&["install-debug"], destination.path());
    assert!(done.status.success(), "{}", text(&done));
    assert!(installed.join("lib/polycast/.debug/libpolycast.so.debug").exists());
    let done = make(&["uninstall"], destination.path());
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(files(&installed), Vec::<PathBuf>::new());
}

/// The verbs that have a manual page.
fn pages(installed: &Path) -> BTreeSet<String> {
    let names = files(&installed.join("share/man/man1"));
    let names = names.iter().filter_map(|page| page.file_name()?.to_str()?.strip_suffix(".1.gz"));
    names
        .filter_map(|name| name.strip_prefix("polycast-"))
        .filter_map(|verb| verb.split('-').next())
        .map(str::to_owned)
        .collect()
}

/// The verbs in the tool's help.
fn verbs(help: &str) -> BTreeSet<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_a_build_lacks_is_named_as_the_system_names_it() {
    let front = in_front_of_path(&[("id", "echo 1000")]);
    for (system, expected) in [
        ("ID=debian", "apt-get install -y --no-install-recommends libopenmpi-dev openmpi-bin"),
        ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"", "apt-get install"),
        ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"", "dnf install openmpi-devel"),
        ("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"", "zypper install openmpi4-devel"),
        ("ID=arch", "pacman -S --needed openmpi"),
        ("ID=nixos", "commands that are not on PATH: mpicc"),
    ] {
        let os_release = front.path().join("os-release");
        fs::write(&os_release, system).unwrap();
        let mut setup = Command::new(checkout().join("scripts/setup.sh"));
        setup.arg("build").env("OS_RELEASE", os_release).env("MPICC", "no-such-mpicc");
        let output = setup.env("PATH", format!("{}:/usr/bin:/bin", front.path().display())).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{system}: {}", text(&output));
        assert!(text(&output).contains(expected), "{system}: {}", text(&output));
    }
}

#[test]
fn an_mpi_that_is_named_gets_its_door_whatever_was_built_before() {
    let destination = tempfile::tempdir().unwrap();
    let would = make(&["--dry-run", "install", "MPICC=/opt/mpi/bin/mpicc"], destination.path());
    assert!(
        text(&would).contains("doors/build.sh build/lib/polycast /opt/mpi/bin/mpicc\n"),
        "{}",
        text(&would)
    );
}

#[test]
fn the_checkout_may_have_spaces_in_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("a b");
    fs::create_dir(&copy).unwrap();
    let parts = ["doors", "bench", "include", "Cargo.toml"].map(|part| checkout().join(part));
    assert!(Command::new("cp").arg("-r").args(parts).arg(&copy).status().unwrap().success());
    fs::create_dir(copy.join("library")).unwrap();
    fs::copy(library_directory().join("libpolycast.so"), copy.join("library/libpolycast.so")).unwrap();
    let mut build = Command::new(copy.join("doors/build.sh"));
    let output = build.args(["library", "mpicc.openmpi"]).current_dir(&copy).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(copy.join("library/doors/polycast-door-openmpi.so").exists());
}

/// A plain `mpicc` counts, and a second one of its family would take the place of its door.
#[test]
fn one_door_is_built_for_each_family() {
    let library = tempfile::tempdir().unwrap();
    fs::copy(library_directory().join("libpolycast.so"), library.path().join("libpolycast.so")).unwrap();
    let front = in_front_of_path(&[
        ("mpicc", "exec mpicc.mpich \"$@\""),
        ("mpicc.openmpi", "exec mpicc.mpich \"$@\""),
    ]);
    let mut build = Command::new(checkout().join("doors/build.sh"));
    let path = format!("{}:{}", front.path().display(), std::env::var("PATH").unwrap());
    let output = build.arg(library.path()).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("doors: mpich, built with mpicc\n"), "{}", text(&output));
    assert!(text(&output).contains("mpicc.openmpi left out: it belongs to mpich, too"), "{}", text(&output));
    let doors = files(&library.path().join("doors"));
    assert_eq!(doors, [library.path().join("doors/polycast-door-mpich.so")]);
}
