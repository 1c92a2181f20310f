//! The tables of a routine, as C.

use std::fmt::Write;

use polycast_core::units::Bytes;

use super::MAX_LINE;
use super::choices::ChoiceRow;
use super::layout::{Layout, RootedTree};

/// The C text of all tables that the routine's code needs from its plan. `routine` is the routine's
/// name, for messages.
pub fn tables(routine: &str, layout: &Layout, trees: &[RootedTree], choices: &[ChoiceRow]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "/* For messages to the user. */\nstatic const char routine[] = {};\n",
        string(routine)
    );
    text += &hosts(layout);
    if trees.is_empty() {
        text += CHAIN_CHOICES;
        rows(&mut text, choices, |row| format!("{}, {}", row.from_bytes, row.chain_segment));
    } else {
        text += TREE_CHOICES;
        rows(&mut text, choices, |row| {
            format!("{}, {}, {}", row.from_bytes, row.tree_segment, row.chain_segment)
        });
        text += "\n";
        text += &self::trees(layout, trees);
    }
    text
}

const HOSTS: &str = "\
/* In depth-first order of the switches. If each host sends to the next one, and the last to the first, no
 * link is used twice in the same direction: a chain in this order is free of contention wherever it begins,
 * and whichever hosts are not there. */
/* clang-format off */
static const char *const hosts[] = {
";

const CHAIN_CHOICES: &str = "\
/* How messages go that have this many bytes or more: along the chain in segments of so many bytes, or for 0
 * by MPI's own broadcast. */
struct choice {
    int from_bytes, chain_segment;
};
static const struct choice choices[] = {
";

const TREE_CHOICES: &str = "\
/* How messages go that have this many bytes or more: down a tree in segments of so many bytes, else (0, or
 * the communicator has no tree) along the chain in segments of so many bytes, else by MPI's own broadcast. */
struct choice {
    int from_bytes, tree_segment, chain_segment;
};
static const struct choice choices[] = {
";

const TREES: &str = "\
/* A binary tree for broadcasts from any of `hosts` hosts of one switch with `per_host` ranks each, which
 * stand from place `first` on. It begins there; for another root, they are turned until it is there. */
struct tree {
    int first, hosts, per_host;
    int at[RANKS][3]; /* parent and children of each place */
};
";

/// The rows of `choices`, each with what it means, and their number.
fn rows(text: &mut String, choices: &[ChoiceRow], row: impl Fn(&ChoiceRow) -> String) {
    let rows: Vec<String> = choices.iter().map(|choice| format!("{{{}}},", row(choice))).collect();
    let width = rows.iter().map(String::len).max().unwrap_or(0);
    for (row, choice) in rows.iter().zip(choices) {
        let _ = writeln!(text, "    {row:width$} /* {} */", meaning(choice));
    }
    *text += "};\nenum { CHOICES = sizeof choices / sizeof *choices };\n";
}

fn meaning(choice: &ChoiceRow) -> String {
    let way = match choice {
        ChoiceRow { tree_segment: 1.., .. } => "tree",
        ChoiceRow { chain_segment: 1.., .. } => "chain",
        _ => "MPI's own",
    };
    match choice.from_bytes {
        0 => way.to_owned(),
        bytes => format!("from {}: {way}", Bytes(bytes)),
    }
}

fn hosts(layout: &Layout) -> String {
    let mut text = HOSTS.to_owned();
    for group in layout.hosts.chunk_by(|one, next| one.switch == next.switch) {
        let _ =
            writeln!(text, "    /* {} */", super::comment(&layout.topology.switches[group[0].switch].name));
        text += &wrapped("    ", group.iter().map(|host| string(&host.name)));
    }
    text + "};\n/* clang-format on */\nenum { HOSTS = sizeof hosts / sizeof *hosts };\n\n"
}

fn trees(layout: &Layout, trees: &[RootedTree]) -> String {
    let mut text = String::from(
        "/* The trees are for communicators with as many ranks on each host as here. A place is a rank's position when\n \
         * ranks are counted host by host. */\n/* clang-format off */\nstatic const int ranks_on[HOSTS] = {\n",
    );
    text += &wrapped("    ", layout.hosts.iter().map(|host| host.ranks.to_string()));
    let _ = writeln!(text, "}};\n/* clang-format on */\nenum {{ RANKS = {}, NONE = -1 }};\n", layout.ranks());
    text += TREES;
    let _ = writeln!(
        text,
        "#define TREES {}\n/* clang-format off */\nstatic const struct tree trees[TREES] = {{",
        trees.len()
    );
    for tree in trees {
        let roots = &tree.roots;
        let _ = writeln!(text, "    {{{}, {}, {}, {{", roots.first, roots.hosts, roots.ranks_per_host);
        text += &wrapped("        ", tree.at.iter().map(|at| format!("{{{}}}", at.map(place).join(", "))));
        text += "    }},\n";
    }
    text + "};\n/* clang-format on */\n"
}

fn place(place: Option<usize>) -> String {
    place.map_or_else(|| "NONE".to_owned(), |place| place.to_string())
}

/// Items with commas, as many in a line as fit.
fn wrapped(indent: &str, items: impl Iterator<Item = String>) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for item in items {
        if !line.is_empty() && indent.len() + line.len() + item.len() + 2 > MAX_LINE {
            let _ = writeln!(text, "{indent}{line}");
            line.clear();
        }
        let _ = write!(line, "{}{item},", if line.is_empty() { "" } else { " " });
    }
    text + indent + &line + "\n"
}

/// A string of C. What is no plain letter is written by its number, in three digits so that no digit that follows belongs to
/// it; trigraphs cannot arise either.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_c() {
        assert_eq!(string("a \"b\" \\ ü\n?"), r#""a \"b\" \\ \303\274\012\?""#);
    }

    #[test]
    fn lists_are_wrapped() {
        let numbers = wrapped("  ", (1000..1040).map(|number| number.to_string()));
        assert!(numbers.lines().all(|line| line.len() <= MAX_LINE && line.ends_with(',')));
        assert_eq!(numbers.lines().count(), 3);
        assert!(numbers.starts_with("  1000, 1001,"));
    }
}
