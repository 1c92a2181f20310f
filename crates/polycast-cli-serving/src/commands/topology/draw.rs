//! A topology as a picture of characters.
//!
//! ```text
//! core
//! ├─ leaf0  10gbit
//! │    dev[0-5]  1gbit                  hosts, those with equal links together
//! └─ leaf1  10gbit
//!      dev[6-8,20]  1gbit
//!
//! 3 switches in 2 levels, 10 hosts; links of 1gbit and 10gbit
//! ```

use std::collections::BTreeSet;

use anstyle::Style;
use polycast_core::topology::{Below, Link, Topology, hostlist};

use crate::terminal::{Paint, count, hanging, paragraph};

/// The picture, what was found and the notes.
pub fn draw(topology: &Topology, paint: Paint) -> String {
    let below = topology.below();
    let mut out = String::new();
    // Switches that are still to be drawn, with the lines to the left of them; the topmost has none.
    let mut to_draw: Vec<(usize, String, String)> =
        topology.top().into_iter().map(|top| (top, String::new(), String::new())).collect();
    while let Some((switch, before_name, before_rest)) = to_draw.pop() {
        let rate = link_text(topology.switches[switch].uplink);
        let name = paint.set(Style::new().bold(), &topology.switches[switch].name);
        out += &format!("{before_name}{name}{}\n", paint.set(Style::new().dimmed(), &rate));
        let Below { hosts, switches } = &below[switch];
        let bar = if switches.is_empty() { "     " } else { "│    " };
        for (link, names) in alike(topology, hosts) {
            let rate = paint.set(Style::new().dimmed(), &link_text(link));
            out += &format!("{before_rest}{bar}{}{rate}\n", hostlist(&names));
        }
        for (place, &child) in switches.iter().enumerate().rev() {
            let is_last = place + 1 == switches.len();
            let (branch, gap) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            to_draw.push((child, format!("{before_rest}{branch}"), format!("{before_rest}{gap}")));
        }
    }
    out += &format!("\n{}\n", paragraph(&summary(topology)));
    for note in &topology.notes {
        out += &(hanging("note: ", "    ", note) + "\n");
    }
    out
}

/// Neighbouring hosts with equal links.
fn alike<'a>(topology: &'a Topology, hosts: &[usize]) -> Vec<(Link, Vec<&'a str>)> {
    let link = |host: usize| topology.hosts[host].link;
    let groups = hosts.chunk_by(|&one, &next| link(one) == link(next));
    groups
        .map(|group| (link(group[0]), group.iter().map(|&host| topology.hosts[host].name.as_str()).collect()))
        .collect()
}

/// The rate and latency of a link as far as they are known, each with two spaces before it.
fn link_text(link: Link) -> String {
    let rate = link.rate.map_or(String::new(), |rate| format!("  {rate}"));
    let latency = link.latency.map_or(String::new(), |latency| format!("  {latency}"));
    rate + &latency
}

/// `3 switches in 2 levels, 10 hosts; links of 1gbit and 10gbit`.
pub fn summary(topology: &Topology) -> String {
    let switches = count(topology.switches.len(), "switch", "switches");
    let levels = count(levels(topology), "level", "levels");
    let hosts = count(topology.hosts.len(), "host", "hosts");
    let rates: BTreeSet<_> = topology.links().map(|link| link.rate).collect();
    let rates: Vec<String> = rates
        .into_iter()
        .map(|rate| rate.map_or("unknown rate".to_owned(), |rate| rate.to_string()))
        .collect();
    let rates = match rates.as_slice() {
        [] => String::new(),
        [one] => format!("; links of {one}"),
        [first @ .., last] => format!("; links of {} and {last}", first.join(", ")),
    };
    format!("{switches} in {levels}, {hosts}{rates}")
}

/// Switches on the longest way up.
fn levels(topology: &Topology) -> usize {
    let mut below_this: Vec<usize> = topology.top().into_iter().collect();
    let below = topology.below();
    let mut levels = 0;
    while !below_this.is_empty() {
        levels += 1;
        below_this = below_this.iter().flat_map(|&switch| below[switch].switches.iter().copied()).collect();
    }
    levels
}

#[cfg(test)]
mod tests {
    use polycast_core::topology::Reading;

    use super::*;

    #[test]
    fn a_tree_with_two_kinds_of_links() {
        let text = "SwitchName=core Switches=leaf[0-1] Nodes=login LinkSpeed=10000\nSwitchName=leaf0 Switches=deep \
                    Nodes=a[0-3]\nSwitchName=leaf1 Nodes=b,c LinkSpeed=1000\nSwitchName=deep Nodes=d\n";
        let topology = Topology::parse(text, "t", Reading::default()).unwrap();
        let picture = [
            "core",
            "│    login  10gbit",
            "├─ leaf0  10gbit",
            "│  │    a[0-3]",
            "│  └─ deep",
            "│          d",
            "└─ leaf1  10gbit",
            "        b,c  1gbit",
            "",
            "4 switches in 3 levels, 8 hosts; links of unknown rate, 1gbit and 10gbit",
            "",
        ];
        assert_eq!(draw(&topology, Paint::Plain), picture.join("\n"));
        let styled = draw(&topology, Paint::Styled);
        assert!(styled.starts_with("\u{1b}[1mcore\u{1b}[0m\n"), "{styled}");
        assert!(!styled.contains("\u{1b}[2m\u{1b}[0m"), "nothing is not painted");
    }
}
