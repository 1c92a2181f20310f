//! A tree as lines of text.
//!
//! ```text
//! 0 n0
//! ├→ 1 n1 → 2 n2          ranks with one child only stand on one line
//! │  ├→ 3 n3
//! │  └⇒ 8 n8              ⇒ goes to another switch
//! └⇒ 16 n16 !             ! shares a link with the message of another sender
//! ```

use std::collections::VecDeque;

use polycast_core::units::Rank;

use super::Planned;

/// The width at which a line is broken, in characters.
const LINE_WIDTH: usize = 100;

/// Draws the whole tree, children in the order in which they are sent to.
pub fn draw(planned: &Planned) -> String {
    let root = planned.tree.root();
    let mut drawing = String::new();
    // An explicit stack: a tree may be as deep as it has ranks.
    let mut pending = vec![Branch { rank: root, lead: String::new(), indent: String::new() }];
    while let Some(branch) = pending.pop() {
        let last = write_run(planned, &branch, &mut drawing);
        let children = planned.tree.children(last);
        for (index, &child) in children.iter().enumerate().rev() {
            let (fork, below) = if index + 1 == children.len() { ('└', ' ') } else { ('├', '│') };
            pending.push(Branch {
                rank: child,
                lead: format!("{}{fork}{} ", branch.indent, arrow(planned, last, child)),
                indent: format!("{}{below}  ", branch.indent),
            });
        }
    }
    drawing
}

/// A subtree that is still to be drawn.
struct Branch {
    rank: Rank,
    /// The text before the rank on its line.
    lead: String,
    /// The text before all that is below the rank.
    indent: String,
}

/// Writes the line of a branch, and on it all ranks down to the first that has several children or none. Gives that one.
fn write_run(planned: &Planned, branch: &Branch, drawing: &mut String) -> Rank {
    let mut rank = branch.rank;
    let mut words = VecDeque::from([format!("{}{}", branch.lead, label(planned, rank))]);
    while let &[child] = planned.tree.children(rank) {
        words.push_back(format!("{} {}", arrow(planned, rank, child), label(planned, child)));
        rank = child;
    }
    let mut line = words.pop_front().unwrap_or_default();
    for word in words {
        if line.chars().count() + 1 + word.chars().count() > LINE_WIDTH {
            drawing.push_str(&line);
            drawing.push('\n');
            line = format!("{}  {word}", branch.indent);
        } else {
            line = format!("{line} {word}");
        }
    }
    drawing.push_str(&line);
    drawing.push('\n');
    rank
}

fn arrow(planned: &Planned, from: Rank, to: Rank) -> char {
    let placed = &planned.scene.placed;
    let switch = |rank: Rank| placed.topology.hosts[placed.host_of[rank.index()]].switch;
    if switch(from) == switch(to) { '→' } else { '⇒' }
}

fn label(planned: &Planned, rank: Rank) -> String {
    let placed = &planned.scene.placed;
    let host = &placed.topology.hosts[placed.host_of[rank.index()]].name;
    let mark = if planned.is_disturbed(rank) { " !" } else { "" };
    format!("{rank} {host}{mark}")
}
