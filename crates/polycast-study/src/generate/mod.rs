//! A broadcast routine in C for given hosts: the text of `polycast generate`.
//!
//! ```text
//!   hosts on a topology ─▶ layout ─┬─▶ choices ─▶ tables ─┐
//!                                  └─▶ trees ───▶         ├─▶ heading + tables + code
//!                     routine/*.c ──────────────▶ text ───┘
//! ```

mod choices;
mod heading;
mod layout;
mod prediction;
mod tables;
mod text;

use polycast_core::topology::Placed;

pub use prediction::Model;
pub use text::{is_of_name, is_taken};

use choices::choose;
use layout::{Layout, RootedTree};
use prediction::Prediction;

/// The longest line of the text where it can be broken, as in `.clang-format`.
const MAX_LINE: usize = 110;

/// Rows of all trees together, at the most: beyond, the file would be more table than routine.
const MAX_TREE_ROWS: usize = 32_768;

/// The input of a routine.
pub struct Request {
    /// The name of the C function.
    pub function: String,
    /// The file that describes the switches, as the user named it.
    pub topology_file: String,
    /// Ranks on hosts, at least one.
    pub placed: Placed,
    /// The only root that gets a tree; otherwise all do.
    pub root: Option<usize>,
    /// The costs of messages, by which ways and segments are chosen.
    pub model: Model,
    /// The command line, for the heading.
    pub command: String,
    /// The time, for the heading.
    pub when: String,
}

/// A routine.
pub struct Routine {
    /// The file.
    pub text: String,
    /// Notes to the person who generates the routine, as sentences.
    pub notes: Vec<String>,
}

/// Makes the routine.
pub fn routine(request: Request) -> Routine {
    let layout = Layout::new(request.placed.clone());
    let prediction = Prediction::new(&request.placed, &layout.site, &request.model);
    let mut notes = Vec::new();
    let roots = roots(&layout, request.root, &mut notes);
    let choices = choose(!roots.is_empty(), |way, bytes, segment| prediction.time_ns(way, bytes, segment));
    let is_tree_chosen = choices.iter().any(|choice| choice.tree_segment > 0);
    let trees: Vec<RootedTree> =
        roots.into_iter().filter(|_| is_tree_chosen).map(|roots| layout.tree(roots)).collect();
    let name = format!("{} for {}", request.function, request.topology_file);
    let parts = [
        heading::heading(&request, &layout, trees.len()),
        INCLUDES.to_owned(),
        tables::tables(&name, &layout, &trees, &choices),
        text::code(!trees.is_empty(), &request.function),
    ];
    Routine { text: parts.join("\n"), notes }
}

const INCLUDES: &str = "\
#include <limits.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
";

/// The groups of roots that get a tree.
fn roots(layout: &Layout, root: Option<usize>, notes: &mut Vec<String>) -> Vec<layout::Alike> {
    let mut groups = layout.alike();
    if let Some(root) = root {
        groups.retain(|group| group.holds(layout.place_of(root)));
    }
    let rows = groups.len() * layout.ranks();
    if rows > MAX_TREE_ROWS {
        notes.push(format!(
            "only the chain is built in: trees from {} switches over {} ranks would take {rows} rows, more than {MAX_TREE_ROWS}; \
             --root RANK builds in the one from there",
            groups.len(),
            layout.ranks()
        ));
        groups.clear();
    }
    groups
}

/// Text that can stand in a comment of C: nothing in it ends the comment, and nothing but plain characters.
fn comment(text: &str) -> String {
    let plain = text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '_' }).collect::<String>();
    plain.replace("*/", "* /").replace("/*", "/ *")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_comment_from_inside() {
        assert_eq!(comment("a*/b/*c*\\ü"), "a* /b/ *c*\\_");
        assert!(!comment("*/*/").contains("*/"));
    }
}
