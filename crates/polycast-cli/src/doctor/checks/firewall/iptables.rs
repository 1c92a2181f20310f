//! The rules of the old iptables, as `iptables-save` prints them.

use std::net::IpAddr;

use super::packet::{Direction, Holds, Packet};
use super::ruleset::{Chain, Hook, Rule, Ruleset, Verdict};

/// Reads the filter table. Conditions that are not understood may hold or not.
pub fn parse(text: &str) -> Ruleset {
    let mut ruleset = Ruleset::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [chain, policy, ..] if chain.starts_with(':') => {
                let name = &chain[1..];
                ruleset.chains.insert(name.to_owned(), parse_chain(name, policy));
            }
            ["-A", name, ref rest @ ..] => {
                if let Some(chain) = ruleset.chains.get_mut(name) {
                    chain.rules.push(parse_rule(line, rest));
                }
            }
            _ => {}
        }
    }
    ruleset
}

fn parse_chain(name: &str, policy: &str) -> Chain {
    let direction = match name {
        "INPUT" => Some(Direction::In),
        "OUTPUT" => Some(Direction::Out),
        _ => None,
    };
    let hook = direction.map(|direction| Hook { direction, device: None, drops_at_end: policy == "DROP" });
    Chain { title: format!("iptables chain {name}"), hook, family: None, rules: Vec::new(), remedy }
}

fn remedy(title: &str, packet: &Packet<'_>) -> String {
    let (groups, bits) = packet.groups();
    let program = if groups.is_ipv4() { "iptables" } else { "ip6tables" };
    let by = if packet.direction == Direction::In { "-i" } else { "-o" };
    let chain = title.trim_start_matches("iptables chain ");
    format!("{program} -I {chain} {by} {} -d {groups}/{bits} -p udp -j ACCEPT", packet.interface)
}

/// An option with its value, and whether a `!` stands before it.
#[derive(Clone)]
struct Condition {
    option: String,
    value: String,
    is_negated: bool,
}

fn parse_rule(line: &str, words: &[&str]) -> Rule {
    let mut conditions = Vec::new();
    let mut verdict = Verdict::Continue;
    let mut is_negated = false;
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let value = words.peek().copied().copied().filter(|next| !next.starts_with('-') && *next != "!");
        match (*word, value) {
            ("!", _) => is_negated = true,
            ("-j", Some(target)) => verdict = target_verdict(target),
            ("-g", Some(target)) => verdict = Verdict::Goto(target.to_owned()),
            // Names the module that the next options are of.
            ("-m", _) => {}
            (option, value) if option.starts_with('-') => {
                let value = value.unwrap_or_default().to_owned();
                conditions.push(Condition { option: option.to_owned(), value, is_negated });
                is_negated = false;
            }
            _ => {}
        }
        // What stands behind a target describes it: how to reject, what to log.
        if *word == "-j" || *word == "-g" {
            break;
        }
    }
    let holds = move |packet: &Packet<'_>| {
        conditions.iter().map(|condition| evaluate(condition, packet)).min().unwrap_or(Holds::Yes)
    };
    Rule { text: line.to_owned(), conditions: Box::new(holds), verdict }
}

fn target_verdict(target: &str) -> Verdict {
    match target {
        "ACCEPT" => Verdict::Accept,
        "DROP" | "REJECT" => Verdict::Drop,
        "RETURN" => Verdict::Return,
        "LOG" | "NFLOG" | "MARK" | "CONNMARK" | "AUDIT" => Verdict::Continue,
        chain => Verdict::Jump(chain.to_owned()),
    }
}

fn evaluate(condition: &Condition, packet: &Packet<'_>) -> Holds {
    let value = condition.value.as_str();
    let holds = match condition.option.as_str() {
        "-i" => packet.is_by(value, Direction::In),
        "-o" => packet.is_by(value, Direction::Out),
        "-p" => Holds::of(["udp", "17", "all"].contains(&value)),
        "-d" => destination(value, packet),
        "--pkt-type" if packet.direction == Direction::In => Holds::of(value == "multicast"),
        "--dst-type" => Holds::of(value == "MULTICAST"),
        // Nobody answers to a group, so its datagrams never become part of a connection.
        "--ctstate" | "--state" => Holds::of(value.split(',').any(|state| state == "NEW")),
        "--comment" => return Holds::Yes,
        _ => Holds::Maybe,
    };
    if condition.is_negated { holds.not() } else { holds }
}

fn destination(value: &str, packet: &Packet<'_>) -> Holds {
    let (address, bits) = value.split_once('/').unwrap_or((value, ""));
    let Ok(address) = address.parse::<IpAddr>() else { return Holds::Maybe };
    match (bits.parse(), bits.is_empty()) {
        (Ok(bits), _) => packet.is_to(address, bits),
        (Err(_), true) => packet.is_to(address, if address.is_ipv4() { 32 } else { 128 }),
        // A mask that is no prefix.
        (Err(_), false) => Holds::Maybe,
    }
}
