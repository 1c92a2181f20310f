//! `polycast doctor` on hosts that have what it is to find. Every host is a host of a lab of this test.

use std::fs;
use std::process::{Command, Output};

use crate::cluster::{self, Labs, TOOL};
use crate::common::job::{LIMIT, wait_until};
use serde_json::Value;

/// `polycast doctor WORDS` with the labs of a test.
fn doctor(labs: &Labs, words: &[&str]) -> Command {
    let mut command = Command::new(TOOL);
    command.arg("doctor").args(words).env("POLYCAST_LAB_DIRECTORY", labs.directory());
    for name in ["POLYCAST", "POLYCAST_BCAST", "POLYCAST_NET", "POLYCAST_MULTICAST", "POLYCAST_MADCAP"] {
        command.env_remove(name);
    }
    command
}

fn run(labs: &Labs, words: &[&str]) -> Output {
    cluster::output_within(&mut doctor(labs, words), LIMIT)
}

/// The exit status, and what `--json` says.
fn examine(labs: &Labs, words: &[&str]) -> (Option<i32>, Value) {
    let output = run(labs, &[words, &["--json", "--datagrams", "40"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

/// The findings of a topic and level, as `hosts: found -> remedy`.
fn findings(report: &Value, topic: &str, level: &str) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let matching = findings.filter(|finding| finding["topic"] == topic && finding["level"] == level);
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    matching
        .map(|finding| {
            let hosts: Vec<String> = finding["hosts"].as_array().unwrap().iter().map(text).collect();
            format!("{}: {} -> {}", hosts.join(","), text(&finding["found"]), text(&finding["remedy"]))
        })
        .collect()
}

fn problems(report: &Value) -> usize {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["level"] == "problem").count()
}

#[test]
fn a_good_network_carries_both_families() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    for family in ["ipv4", "ipv6"] {
        let (code, report) = examine(&labs, &["--lab", "box", "--family", family]);
        assert_eq!((code, problems(&report)), (Some(0), 0), "{report:#}");
        assert_eq!(report["multicast_would_be_used"], true);
        let pairs = report["probe"]["pairs"].as_array().unwrap();
        assert_eq!(pairs.len(), 6);
        assert!(pairs.iter().all(|pair| pair["sent"] == 40 && pair["received"] == 40), "{report:#}");
        assert!(report["hosts"].as_array().unwrap().iter().all(|host| host["interface"]["name"] == "e0"));
    }
}

/// The links of a network that was built at different times.
const MIXED: &str = "\
SwitchName=s0 Nodes=h[0-2] LinkSpeed=20
SwitchName=s1 Nodes=h3 LinkSpeed=4
SwitchName=s2 Nodes=h4 LinkSpeed=1
SwitchName=top Switches=s[0-2] LinkSpeed=20
";

#[test]
fn slow_hosts_are_named_with_their_rates() {
    let (labs, folder) = (Labs::new(), tempfile::tempdir().unwrap());
    let file = folder.path().join("mixed.conf");
    fs::write(&file, MIXED).unwrap();
    if !labs.up(&["box", "--topology", file.to_str().unwrap()]) {
        return;
    }
    // The probe may find more: a queue in front of 1 Mb/s loses some of what all hosts multicast at once.
    let (_, report) = examine(&labs, &["--lab", "box"]);
    let slow = findings(&report, "rate", "warning");
    assert!(slow.iter().any(|said| said.starts_with("h3: sends at ")), "{report:#}");
    let slowest = slow.iter().find(|said| said.starts_with("h4: sends at ")).unwrap();
    assert!(
        slowest.contains("times slower, and holds all others up -> ") && slowest.contains("ethtool e0"),
        "{slowest}"
    );
    // On a busy machine what has waited in a queue comes faster than the link is.
    for (host, megabits) in [(0, 20.0), (1, 20.0), (2, 20.0), (3, 4.0), (4, 1.0)] {
        let host = &report["hosts"][host];
        for key in ["sends_bits_per_second", "receives_bits_per_second"] {
            assert!(host[key].as_f64().unwrap() < megabits * 4e6, "{host:#}");
        }
    }
    let ways = report["rates"].as_array().unwrap();
    assert!(ways.len() >= 10 && ways.iter().all(|way| way["from"] != way["to"]), "{report:#}");
    labs.succeeds(&["down", "box"]);
}

#[test]
fn a_lab_for_one_examination_is_gone_afterwards() {
    let labs = Labs::new();
    if !labs.up(&["probe", "--hosts", "1"]) {
        return;
    }
    labs.succeeds(&["down", "probe"]);
    let output = run(&labs, &["--lab", "hosts=2,rate=1gbit", "--datagrams", "40"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.ends_with("\npolycast would use multicast.\n") && text.contains("FROM \\ TO"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours are for terminals");
    labs.are_gone();
}

#[test]
fn a_host_whose_switch_blocks_multicast_is_named() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "4", "--block-multicast", "h2"]) {
        return;
    }
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!(code, Some(1), "{report:#}");
    let said = findings(&report, "probe", "problem");
    assert!(said.len() == 1 && said[0].starts_with("h2: neither hears the others"), "{said:?}");
}

#[test]
fn a_firewall_is_found_with_the_rule_that_lets_multicast_pass() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    let rules = "table inet f { chain input { type filter hook input priority 0; policy drop; ip protocol icmp accept; }; }";
    labs.exec("box", "h1", &format!("nft '{rules}'"));
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!(code, Some(1));
    let heard = findings(&report, "probe", "problem");
    assert!(heard.len() == 1 && heard[0].starts_with("h1: hears nobody"), "{heard:?}");
    let firewall = findings(&report, "firewall", "warning");
    let (_, remedy) = firewall[0].split_once(" -> ").unwrap();
    assert!(
        firewall.len() == 1 && firewall[0].starts_with("h1: chain inet f input may drop"),
        "{firewall:?}"
    );
    // The remedy is a command that is one.
    labs.exec("box", "h1", remedy);
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!((code, problems(&report)), (Some(0), 0), "{report:#}");
    assert!(findings(&report, "firewall", "warning").is_empty(), "{report:#}");
}

#[test]
fn sizes_that_differ_warn_and_a_size_that_does_not_pass_is_a_problem() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    labs.exec("box", "h1", "ip link set dev e0 mtu 1400");
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!(code, Some(0), "all send what the smallest can take: {report:#}");
    let said = findings(&report, "mtu", "warning");
    assert!(said[0].ends_with(" -> on h1: ip link set dev e0 mtu 1500"), "{said:?}");
    // A switch with smaller frames, as h2 meets it.
    labs.exec(
        "box",
        "h2",
        "nft 'table inet f { chain c { type filter hook input priority 0; ip length > 1000 drop; }; }'",
    );
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!(code, Some(1));
    let said = findings(&report, "mtu", "problem");
    assert!(said[0].contains("small ones do: from h0 to h2, h1 to h2"), "{said:?}");
}

#[test]
fn hosts_without_an_interface_and_strict_filters_get_their_remedies() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    labs.exec("box", "h0", "ip link set dev e0 multicast off");
    // h2 has a second network in which it looks for h1.
    labs.exec(
        "box",
        "h2",
        "echo 1 > /proc/sys/net/ipv4/conf/e0/rp_filter; ip link add d0 type veth peer name d1; ip link set dev d1 up; ip address add 10.99.0.1/24 dev d0; \
         ip link set dev d0 up; ip route add 10.77.0.2/32 dev d0",
    );
    let (code, report) = examine(&labs, &["--lab", "box", "--interface", "=e0"]);
    assert_eq!(code, Some(1));
    let interface = findings(&report, "interface", "problem");
    assert!(
        interface[0].starts_with("h0: ") && interface[0].ends_with("ip link set dev e0 multicast on"),
        "{interface:?}"
    );
    let filter = findings(&report, "reverse-path", "warning");
    assert!(filter[0].starts_with("h2: ") && filter[0].contains("answers to 10.77.0.2"), "{filter:?}");
    let probe = findings(&report, "probe", "problem");
    assert!(probe[0].contains("nothing arrives from h1 to h2"), "{probe:?}");
    labs.exec("box", "h0", "ip link set dev e0 multicast on");
    labs.exec("box", "h2", filter[0].split_once(" -> ").unwrap().1);
    let (code, report) = examine(&labs, &["--lab", "box", "--interface", "=e0"]);
    assert_eq!(code, Some(0), "{report:#}");
}

#[test]
fn loss_is_told_and_does_not_forbid_multicast() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "2", "--loss", "20%"]) {
        return;
    }
    let (code, report) = examine(&labs, &["--lab", "box"]);
    assert_eq!(code, Some(0), "{report:#}");
    let said = findings(&report, "probe", "warning");
    assert!(said.len() == 1 && said[0].contains("of the datagrams are lost"), "{said:?}");
}

#[test]
fn a_member_that_is_forgotten_is_caught_by_watching() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    // The first round brings 120 kB to h1; what comes later is dropped, as by a switch whose table has aged.
    let rules = "table inet f { chain c { type filter hook input priority 0; ip daddr 239.192.0.0/14 quota over 150 kbytes drop; }; }";
    labs.exec("box", "h1", &format!("nft '{rules}'"));
    let (code, report) = examine(&labs, &["--lab", "box", "--watch", "30"]);
    assert_eq!(code, Some(1), "{report:#}");
    let said = findings(&report, "probe", "problem");
    assert!(
        said.len() == 1 && said[0].starts_with("h1: after ") && said[0].contains("snooping querier"),
        "{said:?}"
    );
}

#[test]
fn other_hosts_are_reached_by_an_agent_and_trouble_names_its_cure() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    // The lab's stand-in for ssh exists inside of the lab only.
    let agent = labs.directory().join("box/agent");
    let on_h0 = |words: &str| {
        let script = format!(
            "'{TOOL}' doctor --json --datagrams 40 --launch-agent '{}' {words} || true",
            agent.display()
        );
        serde_json::from_str::<Value>(&labs.exec("box", "h0", &script)).unwrap()
    };
    let report = on_h0("--hosts h0,h1,h2");
    assert_eq!((problems(&report), report["probe"]["pairs"].as_array().unwrap().len()), (0, 6), "{report:#}");

    let report = on_h0("--hosts h0,h1,h9");
    let said = findings(&report, "reach", "problem");
    assert!(said.len() == 1 && said[0].starts_with("h9: ") && said[0].ends_with("h9 true"), "{said:?}");
    assert_eq!(report["probe"]["pairs"].as_array().unwrap().len(), 2, "the others are examined all the same");

    let report = on_h0("--hosts h0,h1 --remote-tool /nowhere/polycast");
    let said = findings(&report, "reach", "problem");
    assert!(said[0].contains("status 127") && said[0].contains("--remote-tool FILE"), "{said:?}");
    let said = findings(&report, "probe", "problem");
    assert!(said[0].contains("no other host is left"), "{said:?}");
}

#[test]
fn one_host_is_examined_by_itself() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "1"]) {
        return;
    }
    let alone = |environment: &str| {
        let script = format!("{environment} '{TOOL}' doctor --json; echo \"code $?\" >&2");
        let output = labs.command(&["exec", "box", "h0", "--", "sh", "-c", &script]).output().unwrap();
        let code = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        (code, serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (code, report) = alone("");
    assert_eq!((code.as_str(), problems(&report)), ("code 0", 0), "{report:#}");
    assert!(findings(&report, "probe", "ok")[0].contains("200 of 200"), "{report:#}");
    for (variable, topic) in [
        ("POLYCAST_MULTICAST=off", "settings"),
        ("POLYCAST_NET==e9", "interface"),
        ("POLYCAST=off", "settings"),
    ] {
        let (code, report) = alone(variable);
        assert_eq!(
            (code.as_str(), findings(&report, topic, "problem").len()),
            ("code 1", 1),
            "{variable}: {report:#}"
        );
    }
}

#[test]
fn nothing_stays_when_the_doctor_is_killed() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "3"]) {
        return;
    }
    let mut command = doctor(&labs, &["--lab", "box", "--watch", "600", "--json"]);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let agents = || descendants(child.id() as i32);
    // Each worker is a process of the lab and one that waits for it.
    wait_until("three workers are there", || agents().len() >= 6);
    let agents = agents();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the workers are gone", || !agents.iter().any(|pid| cluster::is_alive(*pid)));
}

/// What a process has started, and what that has started.
pub fn descendants(ancestor: i32) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| descends_from(*pid, ancestor)).collect()
}

fn descends_from(pid: i32, ancestor: i32) -> bool {
    let parent = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()
    };
    std::iter::successors(parent(pid), |pid| parent(*pid)).any(|found| found == ancestor)
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let labs = Labs::new();
    if !labs.up(&["box", "--hosts", "1"]) {
        return;
    }
    // script(1) lends its command a terminal.
    let on_terminal = |environment: &str| {
        let doctor = format!("{environment} '{TOOL}' doctor --lab box --datagrams 8");
        let mut command = Command::new("script");
        command.args(["-qec", &doctor, "/dev/null"]).env("POLYCAST_LAB_DIRECTORY", labs.directory());
        let output = cluster::output_within(command.env_remove("NO_COLOR").env("TERM", "xterm"), LIMIT);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(on_terminal("").contains("\u{1b}[32mok"));
    assert!(!on_terminal("NO_COLOR=1").contains("\u{1b}[32mok"));
}

#[test]
fn a_wrong_command_line_is_told_from_a_network_without_multicast() {
    let labs = Labs::new();
    for words in [
        &["--hosts", "a", "--lab", "b"][..],
        &["--hosts", "a,,b"],
        &["--hosts", "-oProxyCommand=x"],
        &["--lab", "nolab"],
        &["--lab", "hosts=x"],
        &["--interface", "a b"],
        &["--family", "ipx"],
        &["--datagrams", "0"],
        &["--launch-agent", "rsh"],
        &["--hosts", "a", "--launch-agent", ""],
    ] {
        let output = run(&labs, words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{words:?}");
    }
}
