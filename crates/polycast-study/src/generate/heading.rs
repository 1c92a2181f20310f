//! The comment that a routine opens with: what it is, for which hosts, and how it is used.

use std::fmt::Write;

use polycast_core::topology::Topology;

use super::layout::{Layout, PlannedHost};
use super::{MAX_LINE, Request, comment};

/// Switches that are drawn at the most, so that the plan of a large cluster still fits a screen.
const MAX_SWITCHES: usize = 20;

/// The rightmost column at which the hosts of a switch begin; deeper switches push them further.
const MAX_HOSTS_COLUMN: usize = 40;

/// The comment. `trees`: how many are built in.
pub fn heading(request: &Request, layout: &Layout, trees: usize) -> String {
    let Request { function, command, when, .. } = request;
    let blocks = [
        title(request, layout),
        paragraph(ORDER),
        indented(&drawing(layout)),
        paragraph(&reach(layout, trees)),
        paragraph(&format!(
            "Which way is taken from which size on, and in which segments, is what was predicted to be the fastest: {}.",
            request.model.source
        )),
        format!("Made on {when} by polycast {} with\n\n    {command}\n", env!("CARGO_PKG_VERSION")),
        usage(function),
        CONDITIONS.to_owned(),
    ];
    block(&blocks.join("\n"))
}

fn title(request: &Request, layout: &Layout) -> String {
    let Request { function, topology_file, .. } = request;
    let ranks = match (layout.ranks(), layout.hosts.len()) {
        (ranks, hosts) if ranks == hosts => format!("{hosts} hosts"),
        (ranks, hosts) => format!("{ranks} ranks on {hosts} hosts"),
    };
    paragraph(&format!("{function} for {ranks} of {topology_file}: in segments, and free of contention."))
}

const ORDER: &str = "\
These are the switches, and the hosts in the order in which a message goes from one to the next: switch by switch as they are \
numbered, and from the last host on to the first. So no link is used twice in the same direction, whichever rank is the root.";

fn reach(layout: &Layout, trees: usize) -> String {
    let trees = match trees {
        0 => String::new(),
        _ => format!(
            " Messages of medium length go down binary trees, which are free of contention as well, in communicators that have all {} \
             ranks.",
            layout.ranks()
        ),
    };
    format!(
        "Every communicator of these hosts is served, with any number of ranks on each and in any order, because hosts are known by \
         their names (MPI_Get_processor_name).{trees} MPI's own broadcast, PMPI_Bcast, serves other communicators, short messages, and \
         those of 2 GiB and more."
    )
}

fn usage(function: &str) -> String {
    if function == "MPI_Bcast" {
        return "\
            Under a program that you build:       mpicc -O2 program.c bcast.c\n\
            Under one that is there already:      mpicc -O2 -fPIC -shared -o bcast.so bcast.c\n    \
            with Open MPI                     mpiexec -x LD_PRELOAD=$PWD/bcast.so ...\n    \
            with MPICH                        mpiexec -genv LD_PRELOAD $PWD/bcast.so ...\n"
            .to_owned();
    }
    format!(
        "Build it with your program, as in mpicc -O2 program.c bcast.c. It takes and gives what MPI_Bcast does:\n\n    \
         int {function}(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);\n"
    )
}

const CONDITIONS: &str = "\
You may use, change and pass on this file for any purpose, without conditions. There is no warranty.
SPDX-License-Identifier: 0BSD
";

/// Lines that fit a comment.
fn paragraph(text: &str) -> String {
    const WIDTH: usize = MAX_LINE - " * ".len();
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    lines + &line + "\n"
}

/// Switches that lead to hosts of the plan, each with its hosts.
fn drawing(layout: &Layout) -> String {
    let Topology { switches, .. } = &layout.topology;
    let groups: Vec<&[PlannedHost]> = layout.hosts.chunk_by(|one, next| one.switch == next.switch).collect();
    let mut leads_to_hosts = vec![false; switches.len()];
    for group in &groups {
        let mut above = Some(group[0].switch);
        while let Some(switch) = above.filter(|switch| !std::mem::replace(&mut leads_to_hosts[*switch], true))
        {
            above = switches[switch].parent;
        }
    }
    let mut lines: Vec<(String, String)> = Vec::new();
    let top = switches.iter().position(|switch| switch.parent.is_none());
    // Not recursive: switches can form a long line. The next is on top: the switch, what stands before it, before those below.
    let mut pending: Vec<(usize, String, String)> =
        top.into_iter().map(|top| (top, String::new(), String::new())).collect();
    while let Some((switch, before, below)) = pending.pop() {
        let group = groups.iter().position(|group| group[0].switch == switch);
        let hosts =
            group.map_or_else(String::new, |number| format!("{}. {}", number + 1, hosts(groups[number])));
        lines.push((format!("{before}{}", switches[switch].name), hosts));
        let children: Vec<usize> = (0..switches.len())
            .filter(|child| switches[*child].parent == Some(switch) && leads_to_hosts[*child])
            .collect();
        for (index, child) in children.iter().enumerate().rev() {
            let (branch, line) =
                if index + 1 == children.len() { ("`-- ", "    ") } else { ("|-- ", "|   ") };
            pending.push((*child, format!("{below}{branch}"), format!("{below}{line}")));
        }
    }
    columns(&lines)
}

fn columns(lines: &[(String, String)]) -> String {
    let shown = &lines[..lines.len().min(MAX_SWITCHES)];
    let width = shown.iter().map(|(switch, _)| switch.len()).max().unwrap_or(0).min(MAX_HOSTS_COLUMN);
    let mut text = String::new();
    for (switch, hosts) in shown {
        let _ = writeln!(text, "{}", format!("{switch:width$}   {hosts}").trim_end());
    }
    if lines.len() > shown.len() {
        let _ = writeln!(text, "... and {} more switches", lines.len() - shown.len());
    }
    text
}

/// `a -> b -> ... -> f, 2 ranks each`
fn hosts(group: &[PlannedHost]) -> String {
    let names = match group {
        [first, second, _, .., last] if group.len() > 4 => {
            format!("{} -> {} -> ... -> {}", first.name, second.name, last.name)
        }
        _ => group.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" -> "),
    };
    let ranks = || group.iter().map(|host| host.ranks);
    match (ranks().min().unwrap_or(1), ranks().max().unwrap_or(1)) {
        (1, 1) => names,
        (least, most) if least == most && group.len() == 1 => format!("{names}, {most} ranks"),
        (least, most) if least == most => format!("{names}, {most} ranks each"),
        (least, most) => format!("{names}, {least} to {most} ranks each"),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// A block comment around lines of text.
fn block(text: &str) -> String {
    let lines = text.lines().enumerate().map(|(index, line)| {
        let start = if index == 0 { "/* " } else { " * " };
        format!("{start}{}", comment(line)).trim_end().to_owned() + "\n"
    });
    lines.collect::<String>() + " */\n"
}
