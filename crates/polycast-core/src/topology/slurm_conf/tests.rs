use proptest::prelude::*;

use super::super::testing::{any_topology, as_slurm_can_say};
use super::super::{MAX_HOSTS, MAX_NAME, ProblemKind};
use super::*;

const STRICT: Reading = Reading { spanning_tree: false };
const TREE: Reading = Reading { spanning_tree: true };

fn parse(text: &str) -> Result<Topology, TopologyError> {
    read(text, "t", STRICT)
}

fn problems(text: &str) -> Vec<(usize, String)> {
    let problems = parse(text).unwrap_err().problems;
    problems.into_iter().map(|problem| (problem.line, problem.text)).collect()
}

#[test]
fn the_example_of_the_slurm_manual() {
    let text = "# fat tree\nSwitchName=s0 Nodes=dev[0-5]\n\nswitchname=s1 NODES=dev[6-8,20] linkspeed=10000 # fast\n\
                SwitchName=s2 \\\n  Switches=s[0-1] LinkSpeed=40000\n";
    let topology = parse(text).unwrap();
    let parents: Vec<_> = topology.switches.iter().map(|switch| switch.parent).collect();
    assert_eq!(parents, [Some(2), Some(2), None]);
    assert_eq!(topology.hosts.len(), 10);
    assert_eq!((topology.hosts[9].name.as_str(), topology.hosts[9].switch), ("dev20", 1));
    assert_eq!(topology.hosts[9].link.rate.unwrap().to_string(), "10gbit");
    assert_eq!(topology.hosts[0].link.rate, None);
    assert_eq!(topology.switches[0].uplink.rate.unwrap().to_string(), "40gbit", "the link is below s2");
    assert_eq!(topology.switches[2].uplink.rate, None);
}

#[test]
fn lines_that_go_on_keep_the_space_between_words() {
    for text in
        ["SwitchName=s0\\\n  Nodes=a,b", "SwitchName=s0 Nodes=a,\\\n  b", "SwitchName=s0 Nodes=a,\\\nb"]
    {
        assert_eq!(parse(text).unwrap().hosts.len(), 2, "{text}");
    }
}

/// As an editor of another system leaves it.
#[test]
fn capitals_in_keys_and_ends_of_lines_say_nothing() {
    let text = "SWITCHNAME=leaf0 NODES=H[0-1] LinkSpeed=1000 # Capital\r\n\r\nswitchname=leaf1 \\\r\n nodes=h[2-3]\r\n\
                SwitchName=top SWITCHES=leaf[0-1]\r\n";
    let topology = parse(text).unwrap();
    let placed = topology.place(&["h0", "H1", "h2", "H3"]);
    assert_eq!((placed.host_of, placed.unplaced_hosts.len()), (vec![0, 1, 2, 3], 0));
}

#[test]
fn every_mistake_is_named_with_its_line() {
    for (text, line, words) in [
        ("", 0, "at least one line"),
        ("# nothing\n", 0, "at least one line"),
        ("Nodes=a", 1, "SwitchName"),
        ("SwitchName=s", 1, "neither nodes"),
        ("SwitchName=s Nodes=", 1, "with a value"),
        ("SwitchName=s Nodes=a Nodes=b", 1, "once"),
        ("SwitchName=s Nodes=a\nSwitchName=t Color=red", 2, "\"Color\""),
        ("SwitchName=s Level=0 LinkSpeed=1 Nodes=a", 1, "scontrol show topology"),
        ("SwitchName=s Nodes = a", 1, "without spaces"),
        ("SwitchName=s Nodes=a LinkSpeed=fast", 1, "Mb/s"),
        ("SwitchName=s Nodes=a LinkSpeed=0", 1, "Mb/s"),
        ("SwitchName=s Nodes=a LinkSpeed=1000001", 1, "Mb/s"),
        ("SwitchName=s[0-1] Nodes=a", 1, "letters"),
        ("SwitchName=s Nodes=a/b", 1, "letters"),
        ("SwitchName=s Nodes=a[0-", 1, "brackets"),
        ("SwitchName=s Nodes=a[0-99999999]", 1, "more names"),
        ("SwitchName=s Nodes=a\nSwitchName=s Nodes=b", 2, "already, in line 1"),
        ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b,a Switches=s", 2, "already, in line 1"),
        ("SwitchName=s Switches=t", 1, "no entry describes t"),
        ("SwitchName=s Nodes=a\nSwitchName=t Switches=s\nSwitchName=u Switches=s,t", 3, "one above it"),
        ("SwitchName=s Nodes=a\nSwitchName=t Nodes=b", 2, "nothing joins t with s"),
        ("SwitchName=s Nodes=a Switches=s", 1, "cycle"),
        ("SwitchName=s Nodes=a Switches=t\nSwitchName=t Switches=s", 1, "cycle"),
        ("SwitchName=s Switches=t\nSwitchName=t \\\n Speed=7 \\\n", 2, "\"Speed\""),
        ("BlockName=b Switches=a", 1, "BlockName=b0 Nodes"),
        ("BlockName=b", 1, "no nodes"),
        ("SwitchName=s Nodes=a\nBlockName=b Nodes=b", 2, "found both"),
        ("BlockName=b BlockSizes=4", 1, "BlockName=b0 Nodes"),
        ("BlockSizes=4", 0, "at least one host"),
    ] {
        let found = problems(text);
        assert!(found.iter().any(|(l, t)| *l == line && t.contains(words)), "{text:?}: {found:?}");
    }
}

#[test]
fn all_mistakes_are_found_at_once() {
    let text =
        "SwitchName=s Nodes=a/b\nColor=red\nSwitchName=t LinkSpeed=x\nSwitchName=u Switches=v Nodes=a[\n";
    let lines: Vec<_> = problems(text).into_iter().map(|(line, _)| line).collect();
    // That v is not described may come of lines 2 or 3.
    assert_eq!(lines, [1, 2, 3, 4]);
    let lines: Vec<_> =
        problems("SwitchName=u Switches=v Nodes=a/b\n").into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 1]);
}

#[test]
fn blocks_are_leaf_switches() {
    let topology =
        parse("BlockName=b1 Nodes=n[0-3]\nBlockName=b2 Nodes=n[4-7] # far\nBlockSizes=4,8\n").unwrap();
    let names: Vec<_> =
        topology.switches.iter().map(|switch| (switch.name.as_str(), switch.parent)).collect();
    assert_eq!(names, [("b1", Some(2)), ("b2", Some(2)), ("top", None)]);
    assert_eq!(topology.hosts[7].switch, 1);
    assert!(topology.notes.iter().any(|note| note.contains("joins b1, b2")), "{:?}", topology.notes);
}

#[test]
fn limits() {
    let (longest, longer) = ("n".repeat(MAX_NAME), "n".repeat(MAX_NAME + 1));
    assert!(parse(&format!("SwitchName={longest} Nodes=x")).is_ok());
    assert!(parse(&format!("SwitchName={longer} Nodes=x")).is_err());
    assert!(parse(&format!("SwitchName=x Nodes={longer}")).is_err());

    let most = format!("SwitchName=s Nodes=n[1-{MAX_HOSTS}]");
    assert_eq!(parse(&most).unwrap().hosts.len(), MAX_HOSTS);
    assert!(problems(&format!("{most},x"))[0].1.contains("more names"));
    let two_lines = format!("{most} Switches=t\nSwitchName=t Nodes=x\n");
    assert_eq!(problems(&two_lines)[0].0, 2, "the limit is for the file, not for a list");
}

#[test]
fn two_spines_become_one() {
    let text = "SwitchName=spine0 Switches=leaf0,leaf1 LinkSpeed=40000\nSwitchName=spine1 Switches=leaf[0-1]\n\
                SwitchName=leaf0 Nodes=a\nSwitchName=leaf1 Nodes=b\n";
    let error = parse(text).unwrap_err();
    assert!(error.is_irregular_only());
    assert_eq!(
        error.problems.iter().map(|p| (p.line, p.kind)).collect::<Vec<_>>(),
        [(2, ProblemKind::Irregular); 2]
    );

    let topology = read(text, "t", TREE).unwrap();
    let names: Vec<_> =
        topology.switches.iter().map(|switch| (switch.name.as_str(), switch.parent)).collect();
    assert_eq!(names, [("spine0", None), ("leaf0", Some(0)), ("leaf1", Some(0))]);
    assert_eq!(topology.switches[1].uplink.rate.unwrap().to_string(), "40gbit");
    let notes = topology.notes.join("\n");
    let expected = "switch spine1 leads to no host in the tree and is left out with its links to leaf0 (line 2), leaf1 (line 2)";
    assert_eq!(notes, expected);
}

#[test]
fn a_switch_between_two_roots_joins_them() {
    let text = "SwitchName=r Switches=a,b,c\nSwitchName=q Switches=c,d\nSwitchName=a Nodes=a\nSwitchName=b Nodes=b\n\
                SwitchName=c Nodes=c\nSwitchName=d Nodes=d\n";
    let topology = read(text, "t", TREE).unwrap();
    let parent = |name: &str| {
        let of = topology.switches.iter().find(|switch| switch.name == name).unwrap();
        of.parent.map(|parent| topology.switches[parent].name.as_str())
    };
    assert_eq!([parent("r"), parent("c"), parent("q"), parent("d")], [None, Some("r"), Some("c"), Some("q")]);
}

#[test]
fn cycles_several_roots_and_hosts_on_two_switches_are_read_as_a_tree() {
    let text = "SwitchName=s Nodes=a Switches=t\nSwitchName=t Nodes=b,a Switches=s\nSwitchName=top Nodes=c\n";
    let topology = read(text, "t", TREE).unwrap();
    let names: Vec<_> =
        topology.switches.iter().map(|switch| (switch.name.as_str(), switch.parent)).collect();
    assert_eq!(names, [("s", Some(3)), ("t", Some(0)), ("top", Some(3)), ("top0", None)]);
    let notes = topology.notes.join("\n");
    for words in
        ["host a is on switch s already, in line 1", "joins s, top", "links of switch s to t (line 2)"]
    {
        assert!(notes.contains(words), "{notes}");
    }
}

#[test]
fn what_the_format_cannot_say_is_told() {
    let text = "SwitchName=s Nodes=a,b LinkSpeed=1000\n";
    let mut topology = parse(text).unwrap();
    assert_eq!(write(&topology).text, text);
    topology.hosts[0].link.rate = "2.5mbit".parse().ok();
    assert!(write(&topology).lost[0].contains("differ"));
    topology.hosts[1].link.rate = topology.hosts[0].link.rate;
    assert!(write(&topology).lost[0].contains("whole number"));
    topology.hosts[0].link.latency = Some(crate::units::Nanos(7));
    assert!(write(&topology).lost.iter().any(|lost| lost.contains("latencies")));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(topology in any_topology().prop_map(as_slurm_can_say)) {
        let written = write(&topology);
        prop_assert_eq!(written.lost, Vec::<String>::new());
        prop_assert_eq!(parse(&written.text), Ok(topology));
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "(SwitchName=|BlockName=|Nodes=|Switches=|LinkSpeed=|[a-c\\[\\]0-3,# \n\\\\-]){0,40}",
    ) {
        let _ = read(&text, "t", STRICT);
        let _ = read(&text, "t", TREE);
    }

    /// Any graph of switches, each with a host, becomes one tree that has all hosts.
    #[test]
    fn any_graph_has_a_spanning_tree(links in prop::collection::vec((0..7usize, 0..7usize), 0..25)) {
        let mut text = String::new();
        for switch in 0..7 {
            let below: Vec<_> =
                links.iter().filter(|link| link.0 == switch && link.1 != switch).map(|link| format!("s{}", link.1)).collect();
            let below = if below.is_empty() { String::new() } else { format!(" Switches={}", below.join(",")) };
            text += &format!("SwitchName=s{switch} Nodes=n{switch}{below}\n");
        }
        let topology = read(&text, "t", TREE).unwrap();
        prop_assert_eq!(topology.hosts.len(), 7);
        prop_assert_eq!(topology.switches.iter().filter(|switch| switch.parent.is_none()).count(), 1);
        for mut switch in 0..topology.switches.len() {
            for _ in 0..topology.switches.len() {
                switch = topology.switches[switch].parent.unwrap_or(switch);
            }
            prop_assert_eq!(Some(switch), topology.top());
        }
        // Nothing is left out without a word.
        let uplinks = topology.switches.iter().filter(|switch| switch.parent.is_some()).count();
        let described: usize = links.iter().filter(|link| link.0 != link.1).count();
        prop_assert!(described <= uplinks || !topology.notes.is_empty());
        if let Ok(strict) = parse(&text) {
            prop_assert_eq!(strict, topology);
        }
    }
}
