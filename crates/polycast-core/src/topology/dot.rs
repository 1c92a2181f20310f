//! Graphviz's DOT: switches as boxes, hosts as ellipses, rates beside the links.

use super::{Link, Topology, Written};

/// Writes an undirected graph that `dot` and `neato` draw.
pub(super) fn write(topology: &Topology) -> Written {
    let mut text = "graph topology {\n  graph [ranksep=1];\n  node [shape=box];\n".to_owned();
    for (index, switch) in topology.switches.iter().enumerate() {
        text.push_str(&format!("  switch{index} [label={}];\n", quoted(&switch.name)));
        if let Some(parent) = switch.parent {
            text.push_str(&format!("  switch{parent} -- switch{index}{};\n", label(switch.uplink)));
        }
    }
    text.push_str("  node [shape=ellipse];\n");
    for (index, host) in topology.hosts.iter().enumerate() {
        text.push_str(&format!("  host{index} [label={}];\n", quoted(&host.name)));
        text.push_str(&format!("  switch{} -- host{index}{};\n", host.switch, label(host.link)));
    }
    text.push_str("}\n");
    Written { text, lost: Vec::new() }
}

fn label(link: Link) -> String {
    let rate = link.rate.map(|rate| rate.to_string());
    let latency = link.latency.map(|latency| latency.to_string());
    let known: Vec<String> = [rate, latency].into_iter().flatten().collect();
    if known.is_empty() { String::new() } else { format!(" [label={}]", quoted(&known.join(" "))) }
}

/// Puts a text in double quotes. DOT knows two escapes there: of the quote and, in labels, of the
/// backslash.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::super::{Reading, Switch};
    use super::*;
    use crate::units::Nanos;

    #[test]
    fn a_small_graph() {
        let text = "SwitchName=top Switches=leaf LinkSpeed=10000\nSwitchName=leaf Nodes=a\n";
        let mut topology = Topology::parse(text, "t", Reading::default()).unwrap();
        topology.hosts[0].link.latency = Some(Nanos(1_500));
        let expected = "graph topology {
  graph [ranksep=1];
  node [shape=box];
  switch0 [label=\"top\"];
  switch1 [label=\"leaf\"];
  switch0 -- switch1 [label=\"10gbit\"];
  node [shape=ellipse];
  host0 [label=\"a\"];
  switch1 -- host0 [label=\"1.500us\"];
}
";
        assert_eq!(write(&topology).text, expected);
    }

    #[test]
    fn names_are_quoted() {
        let mut topology = Topology::flat(["strict".to_owned()]);
        topology.switches = vec![Switch { name: "a\"b\\".to_owned(), parent: None, uplink: Link::default() }];
        assert!(write(&topology).text.contains(r#"switch0 [label="a\"b\\"];"#));
    }
}
