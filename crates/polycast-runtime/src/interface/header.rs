//! `include/polycast.h` and what stands for it in Rust say the same: the C compiler is given the header with a list of
//! assertions that the Rust compiler's types, offsets and constants make.

use std::any::type_name;
use std::collections::BTreeSet;
use std::io::Write;
use std::mem::{align_of, offset_of, size_of};
use std::process::{Command, Stdio};

use super::*;
use crate::abi::{ANY_PEER, CAN_PACK, Completion, GIVES_WAY, MESSAGE_MOST_BYTES, Passing, Reduction};
use crate::report::{LEFT, UNSERVED};

const HEADER: &str = include_str!("../../../../include/polycast.h");

/// The C type of a Rust type that crosses, by its name.
fn c_type(rust: &str) -> String {
    if let Some(pointee) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(pointee));
    }
    if let Some(pointee) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(pointee));
    }
    if rust.contains("fn(") {
        return c_function(rust);
    }
    let name = rust.rsplit("::").next().expect("a name");
    match name {
        "c_void" | "()" => "void",
        "i8" | "u8" => "char",
        "i32" => "int",
        "u32" => "uint32_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "Completion" => "polycast_completion",
        "DoorTable" => "polycast_door",
        "CollectiveCall" => "polycast_call",
        "Operation" => "polycast_operation",
        "Reduction" => "polycast_reduction",
        "Plan" => "struct polycast_plan",
        "Passing" => "polycast_passing",
        "Communicator" => "polycast_communicator",
        _ => panic!("no C type: {rust}"),
    }
    .to_owned()
}

/// The C type of a pointer to a function, from `unsafe extern "C" fn(*mut c_void) -> i32`.
fn c_function(rust: &str) -> String {
    let signature = rust.strip_prefix("unsafe ").unwrap_or(rust);
    let signature = signature.strip_prefix("extern \"C\" fn(").unwrap_or_else(|| panic!("no C type: {rust}"));
    let (parameters, result) = signature.split_once(')').expect("the end of the parameters");
    let result = c_type(result.strip_prefix(" -> ").unwrap_or("()"));
    let parameters: Vec<String> =
        parameters.split(", ").filter(|parameter| !parameter.is_empty()).map(c_type).collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    format!("{result} (*)({parameters})")
}

fn type_behind<S, F>(_: fn(&S) -> &F) -> &'static str {
    type_name::<F>()
}

/// Assertions about the header for the C compiler.
#[derive(Default)]
struct Assertions {
    text: String,
    constants: BTreeSet<&'static str>,
    functions: BTreeSet<&'static str>,
}

impl Assertions {
    fn equal(&mut self, expression: &str, value: i64) {
        self.text +=
            &format!("_Static_assert({expression} == {value}, \"{expression} is {value} in Rust\");\n");
    }

    fn constant(&mut self, name: &'static str, value: i64) {
        self.constants.insert(name);
        self.equal(name, value);
    }

    fn has_type(&mut self, expression: &str, rust: &str) {
        let wanted = c_type(rust);
        self.text += &format!(
            "_Static_assert(_Generic(({expression}), {wanted}: 1, default: 0), \"{expression} is {wanted} in Rust\");\n"
        );
    }

    fn structure<S>(&mut self, name: &str) {
        self.equal(&format!("sizeof({name})"), size_of::<S>() as i64);
        self.equal(&format!("_Alignof({name})"), align_of::<S>() as i64);
    }

    fn field(&mut self, structure: &str, field: &str, offset: usize, rust: &str) {
        self.equal(&format!("offsetof({structure}, {field})"), offset as i64);
        self.has_type(&format!("(({structure} *)0)->{field}"), rust);
    }

    fn function(&mut self, name: &'static str, rust: &str) {
        self.functions.insert(name);
        self.has_type(&format!("&{name}"), rust);
    }
}

macro_rules! structure {
    ($assertions:ident, $rust:ident as $c:literal: $($field:ident),+) => {
        $assertions.structure::<$rust>($c);
        $($assertions.field($c, stringify!($field), offset_of!($rust, $field), type_behind(|s: &$rust| &s.$field));)+
    };
}

macro_rules! functions {
    ($assertions:ident, $($name:ident($($parameter:tt)*)),+) => {
        $({
            fn name_of<F>(_: F) -> &'static str { type_name::<F>() }
            $assertions.function(stringify!($name), name_of($name as unsafe extern "C" fn($($parameter)*) -> _));
        })+
    };
}

fn assertions() -> Assertions {
    let mut c = Assertions::default();
    structure!(c, Completion as "polycast_completion": slot, error, bytes);
    structure!(c, DoorTable as "polycast_door": interface_version, capabilities, allgather, broadcast, sum, intersect,
        stock, world_ranks, isend, irecv, poll, cancel, close, sum_over_world, take_leave);
    structure!(c, CollectiveCall as "polycast_call": collective, root, bytes, reduction);
    structure!(c, Passing as "polycast_passing": below, above, first, last, until);
    c.equal("offsetof(polycast_communicator, passing)", offset_of!(Communicator, passing) as i64);
    c.equal(
        "sizeof(((polycast_communicator *)0)->passing)",
        size_of::<[Passing; Collective::ALL.len()]>() as i64,
    );
    // `c_and_rust_let_the_same_calls_pass` compares what it does.
    c.functions.insert("polycast_passes");
    structure!(c, Operation as "polycast_operation": communicator, key);
    structure!(c, Reduction as "polycast_reduction": element_bytes, is_commutative, is_exact, is_own, combine);
    functions!(
        c,
        polycast_version(),
        polycast_interface_version(),
        polycast_build_identity(),
        polycast_is_enabled(),
        polycast_set(_, _),
        polycast_begin(_, _, _, _, _, _),
        polycast_first_passing(_),
        polycast_attach(_, _, _, _, _, _, _),
        polycast_detach(_, _),
        polycast_plan(_, _, _),
        polycast_plan_ahead(_, _, _, _),
        polycast_start(_, _, _, _),
        polycast_test(_, _),
        polycast_wait(_),
        polycast_run(_, _, _),
        polycast_plan_free(_),
        polycast_end_of_stock(_),
        polycast_window_made(),
        polycast_count_left(_, _, _),
        polycast_name_choice(_, _, _, _, _),
        polycast_count_unserved(_, _, _),
        polycast_finalize(_, _),
        polycast_aborting(_)
    );
    c.constant("POLYCAST_INTERFACE_VERSION", INTERFACE_VERSION.into());
    c.constant("POLYCAST_ERROR_INTERNAL", ERROR_INTERNAL.into());
    c.constant("POLYCAST_ERROR_SIZE", ERROR_SIZE.into());
    c.constant("POLYCAST_MESSAGE_MOST_BYTES", MESSAGE_MOST_BYTES as i64);
    c.constant("POLYCAST_ANY_PEER", (ANY_PEER as i32).into());
    c.constant("POLYCAST_CAN_PACK", CAN_PACK.into());
    c.constant("POLYCAST_GIVES_WAY", GIVES_WAY.into());
    let names = ["BROADCAST", "SCATTER", "GATHER", "ALLGATHER", "ALLTOALL", "BARRIER", "REDUCE", "ALLREDUCE"];
    for (name, collective) in names.into_iter().zip(Collective::ALL) {
        c.constant(format!("POLYCAST_{name}").leak(), collective as i64);
    }
    let allgatherv = UNSERVED.kind("MPI_Iallgatherv") as i64 / i64::from(FORMS);
    c.constant("POLYCAST_ALLGATHERV", allgatherv);
    c.constant("POLYCAST_NONBLOCKING", UNSERVED.kind("MPI_Ibcast") as i64);
    c.constant("POLYCAST_PERSISTENT", UNSERVED.kind("MPI_Bcast_init") as i64);
    c.constant("POLYCAST_LEFT", LEFT_TO_STOCK.into());
    c.constant("POLYCAST_SERVED", SERVED.into());
    c.constant("POLYCAST_LEFT_AND_TIMED", LEFT_AND_TIMED.into());
    let left = |says: &str| LEFT[0].kind(says) as i64;
    c.constant("POLYCAST_BECAUSE_INTERCOMMUNICATOR", left("intercommunicator"));
    c.constant("POLYCAST_BECAUSE_ONE_RANK", left("one rank"));
    c.constant("POLYCAST_BECAUSE_NOT_ATTACHED", left("cannot all be served alike"));
    c.constant("POLYCAST_BECAUSE_OUTSIDE", left("outside MPI_COMM_WORLD"));
    c.constant("POLYCAST_BECAUSE_EMPTY", left("no data"));
    c.constant("POLYCAST_BECAUSE_OPERATION", left("does not combine"));
    c.constant("POLYCAST_BECAUSE_UNEVEN", left("differ too much"));
    // No number; `fake_door::traced` compares the names.
    c.constants.insert("POLYCAST_COLLECTIVE_NAMES");
    c
}

fn without_comments(header: &str) -> String {
    let mut code = String::new();
    for (index, part) in header.split("/*").enumerate() {
        code += if index == 0 { part } else { part.split_once("*/").expect("the end of a comment").1 };
    }
    code
}

/// The names that the header defines with a value, and the functions that it declares.
fn names(header: &str) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let defines = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(' '));
    let constants = defines.map(|(name, _)| name).collect();
    let calls = header.split('(').filter_map(|before| before.rsplit(|c: char| !is_of_name(c)).next());
    let functions = calls.filter(|name| name.starts_with("polycast_")).collect();
    (constants, functions)
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// Compares the header with Rust; the error tells the difference.
fn compare(header: &str) -> Result<(), String> {
    let expected = assertions();
    let code = without_comments(header);
    let (constants, functions) = names(&code);
    for (found, expected) in [(&constants, &expected.constants), (&functions, &expected.functions)] {
        if found != expected {
            return Err(format!("the header has {found:?}, Rust {expected:?}"));
        }
    }
    let mut compiler = Command::new("cc")
        .args(["-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    let program = format!("{header}\n{}", expected.text);
    compiler.stdin.take().expect("a pipe").write_all(program.as_bytes()).expect("a compiler that reads");
    let output = compiler.wait_with_output().expect("a compiler that ends");
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

#[test]
fn the_header_says_what_rust_does() {
    if let Err(difference) = compare(HEADER) {
        panic!("{difference}");
    }
}

#[test]
fn every_difference_is_found() {
    for (from, to) in [
        ("POLYCAST_INTERFACE_VERSION 19u", "POLYCAST_INTERFACE_VERSION 8u"),
        ("BECAUSE_ONE_RANK 1u", "BECAUSE_ONE_RANK 2u"),
        ("#define POLYCAST_SERVED 1", "#define POLYCAST_SERVED 1\n#define POLYCAST_MORE 3"),
        ("uint32_t capabilities;", "uint64_t capabilities;"),
        ("uint32_t interface_version;", "uint32_t more, interface_version;"),
        ("(*isend)(void *communicator, const void", "(*isend)(void *communicator, void"),
        (
            "(*irecv)(void *communicator, void *buffer, size_t",
            "(*irecv)(void *communicator, void *buffer, int",
        ),
        ("void (*take_leave)(void);", "void (*take_leave)(void);\n    void (*more)(void);"),
        ("void (*cancel)(void *communicator, const uint32_t *slots, uint32_t count);", ""),
        ("size_t bytes;\n    const polycast_reduction", "uint32_t bytes;\n    const polycast_reduction"),
        ("uint32_t is_commutative;", "uint64_t is_commutative;"),
        ("uint32_t below, above;", "uint32_t above, below;"),
        ("polycast_passing passing[8];", "polycast_passing passing[9];"),
        ("polycast_passing passing[8];", "uint32_t more;\n    polycast_passing passing[8];"),
        ("uint32_t until;", "uint64_t until;"),
        ("int is_over);", "int is_over, int more);"),
        ("const char *polycast_version(void);", "char *polycast_version(void);"),
        ("const char *polycast_version(void);", "const char *polycast_versions(void);"),
        ("uint64_t polycast_build_identity", "uint32_t polycast_build_identity"),
    ] {
        assert!(HEADER.contains(from), "{from} is not in the header");
        assert!(compare(&HEADER.replace(from, to)).is_err(), "{to} is not found");
    }
}

/// Tables whose bounds are 0, two neighbours and the largest number.
#[test]
fn c_and_rust_let_the_same_calls_pass() {
    const PROGRAM: &str = r#"
#include <stdio.h>
int main(void) {
    polycast_passing all[8] = {{0, 0, 0, 0, 0}};
    uint32_t counts[8] = {0};
    polycast_passing *of = all + 3;
    size_t bytes;
    while (scanf("%u %u %u %u %u %u %zu", &of->below, &of->above, &of->first, &of->last, &of->until,
                 counts + 3, &bytes) == 7) {
        const int without_counts = polycast_passes(all, NULL, 3, bytes);
        const int passes = polycast_passes(all, counts, 3, bytes);
        printf("%d %d %u\n", without_counts, passes, counts[3]);
    }
    return 0;
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let [source, program] = ["passes.c", "passes"].map(|name| folder.path().join(name));
    std::fs::write(&source, format!("{HEADER}{PROGRAM}")).unwrap();
    let compiled = Command::new("cc").args(["-std=c17", "-O2", "-o"]).args([&program, &source]).status();
    assert!(compiled.expect("a C compiler").success());
    let (mut input, mut expected) = (String::new(), String::new());
    for case in 0..4u32.pow(7) {
        let digit = |place: u32| (case >> (2 * place)) as usize & 3;
        let size = |place| [0, 7, 8, u32::MAX][digit(place)];
        let (count, bytes) = (size(5), [0, 7, 8, u32::MAX as usize + 1][digit(6)]);
        let passing =
            Passing { below: size(0), above: size(1), first: size(2), last: size(3), until: size(4) };
        let mut counted = count;
        let without_counts = passing.passes(bytes, &mut { u32::MAX });
        let passes = passing.passes(bytes, &mut counted);
        let Passing { below, above, first, last, until } = passing;
        input += &format!("{below} {above} {first} {last} {until} {count} {bytes}\n");
        expected += &format!("{} {} {counted}\n", u8::from(without_counts), u8::from(passes));
    }
    std::fs::write(folder.path().join("cases"), input).unwrap();
    let cases = std::fs::File::open(folder.path().join("cases")).unwrap();
    let output = Command::new(&program).stdin(cases).output().expect("the program");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}
