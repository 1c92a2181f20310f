//! What our objects export is a reviewed list (doors/symbols.txt, and doors/pmpi/entries.h for MPI functions), and the preloaded one needs nothing but libc and does
//! nothing in programs that have more rights than their user.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::cannot_run;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn library(object: &str) -> PathBuf {
    let path = root().join("build/lib/polycast").join(object);
    assert!(path.exists(), "{} is missing: run `make build` first", path.display());
    path
}

/// The names of MPI functions that come from the lines of the table.
fn entry_points() -> impl Iterator<Item = String> {
    let table = std::fs::read_to_string(root().join("doors/pmpi/entries.h")).unwrap();
    let forms = |line: &str| -> Vec<String> {
        let words: Vec<&str> = line.trim().split(['(', ',']).map(str::trim).collect();
        match words[..] {
            ["BEGINNING" | "ABORT", name, ..] => vec![name.to_owned()],
            ["FORMS", "ENTRY", name, nonblocking, ..] => {
                let forms = [name.to_owned(), nonblocking.to_owned(), format!("{name}_init")];
                let with_count = forms.clone().into_iter().filter(|_| name != "Barrier");
                forms.into_iter().chain(with_count.map(|form| format!("{form}_c"))).collect()
            }
            _ => vec![],
        }
    };
    let names: Vec<String> = table.lines().flat_map(forms).collect();
    names.into_iter().flat_map(|name| [format!("MPI_{name}"), format!("PMPI_{name}")])
}

/// Windows and endings, in both forms.
fn others() -> impl Iterator<Item = String> {
    let table = include_str!("../../../../doors/pmpi/entries.h");
    let names = |kind: &'static str| {
        let words = table.lines().filter_map(move |line| line.trim().strip_prefix(kind));
        words.filter_map(|words| words.split([',', ')']).next()).filter(|name| name.contains('_'))
    };
    let all = names("WINDOW(").chain(names("ENDING("));
    all.flat_map(|name| [format!("MPI_{name}"), format!("PMPI_{name}")])
}

/// Object → names, from the list and the table.
fn reviewed() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("doors/symbols.txt")).unwrap();
    let mut objects = BTreeMap::<String, BTreeSet<String>>::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.ends_with(".so") {
            current = line.to_owned();
        } else {
            objects.entry(current.clone()).or_default().insert(line.to_owned());
        }
    }
    objects.get_mut("libpolycast-mpi.so").unwrap().extend(entry_points().chain(others()));
    objects
}

fn output(program: &str, arguments: &[&str], object: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(object).output().unwrap();
    assert!(output.status.success(), "{program} {}", object.display());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn objects_export_the_reviewed_names_and_no_others() {
    for (object, names) in reviewed() {
        let listing = output("nm", &["-D", "--defined-only", "--format=posix"], &library(&object));
        let exported: BTreeSet<String> =
            listing.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        assert_eq!(exported, names, "{object}: left what it exports, right what is reviewed");
    }
}

#[test]
fn objects_need_no_mpi_library() {
    // Open MPI opens its components, so the one is there.
    for object in reviewed().keys().filter(|object| !object.starts_with("openmpi/")) {
        let dynamic = output("readelf", &["-d"], &library(object));
        for needed in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
            let mut allowed = vec!["libc.so.6", "libgcc_s.so.1", "ld-linux", "libpolycast.so"];
            if object == "polycast-verbs.so" {
                allowed.extend(["libibverbs.so.1", "librdmacm.so.1"]);
            }
            assert!(allowed.iter().any(|name| needed.contains(name)), "{object}: {needed}");
            assert!(object != "libpolycast-mpi.so" || needed.contains("libc.so.6"), "{object}: {needed}");
        }
    }
}

/// What the dynamic linker may find anywhere: of libc what no program has for its own, as doors/libc/names.s says, and whose prefix says whose it is.
fn is_found_anywhere(name: &str) -> bool {
    const OF_LIBC: [&str; 16] = [
        "malloc",
        "calloc",
        "realloc",
        "free",
        "posix_memalign",
        "memcpy",
        "memmove",
        "memset",
        "memcmp",
        "bcmp",
        "strlen",
        "dlopen",
        "dlsym",
        "dlerror",
        "environ",
        "stderr",
    ];
    const PREFIXES: [&str; 12] = [
        "_",
        "pthread_",
        "polycast_",
        "MPI_",
        "MPIX_",
        "PMPI_",
        "ompi_",
        "OMPI_",
        "opal_",
        "mca_",
        "ibv_",
        "rdma_",
    ];
    OF_LIBC.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// A program that exports a function of its own by such a name would be called instead of libc.
#[test]
fn objects_import_no_name_that_a_program_may_have_for_its_own() {
    for object in reviewed().keys() {
        let listing = output("nm", &["-D", "--undefined-only", "--format=posix"], &library(object));
        let names = listing.lines().filter_map(|line| line.split([' ', '@']).next());
        let others: Vec<&str> = names.filter(|name| !is_found_anywhere(name)).collect();
        assert!(others.is_empty(), "{object} imports {others:?}: add them to doors/libc/names.s");
    }
}

/// In an environment of its own the x87 would need to be looked after, too: see crates/polycast-runtime/src/floating_point/x86_64.rs.
#[cfg(target_arch = "x86_64")]
#[test]
fn objects_have_no_instructions_of_the_x87() {
    for object in reviewed().keys() {
        let listing = output("objdump", &["-d", "--no-show-raw-insn"], &library(object));
        let instructions =
            listing.lines().filter_map(|line| line.split_once(":\t")?.1.split_whitespace().next());
        let is_of_x87 = |name: &&str| name.starts_with('f') && !["fence", "fs"].contains(name);
        let found: BTreeSet<&str> = instructions.filter(is_of_x87).collect();
        assert!(found.is_empty(), "{object}: {found:?}");
    }
}

/// Looks for an MPI and says that there is none, unless it has been told to look for nothing.
const PROGRAM: &str = "int polycast_configure(const char *, const char *);\n\
                       int main(void) { return polycast_configure(\"x\", \"y\") != -1; }\n";

/// `LD_PRELOAD` does not reach such programs, so this one is linked with the object.
#[test]
fn a_setgid_program_opens_nothing() {
    if !rustix::process::geteuid().is_root() {
        return cannot_run("only root can make a setgid program of any group");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    std::fs::write(program.with_extension("c"), PROGRAM).unwrap();
    let object = library("libpolycast-mpi.so");
    let path = format!("-Wl,-rpath,{}", object.parent().unwrap().canonicalize().unwrap().display());
    let mut compiler = Command::new("cc");
    compiler.arg(program.with_extension("c")).arg(&object).arg(path).arg("-o").arg(&program);
    assert!(compiler.status().unwrap().success());
    let says = || {
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(says().contains("no MPI library that polycast knows is loaded"), "{}", says());
    const NOBODY: u32 = 65534;
    chown(&program, None, Some(NOBODY)).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o2755)).unwrap();
    assert_eq!(says(), "");
}
