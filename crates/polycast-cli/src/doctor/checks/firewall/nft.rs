//! The rules of nftables, as `nft -j list ruleset` prints them (libnftables-json(5)).

use std::net::IpAddr;

use polycast_net::Family;
use serde_json::Value;

use super::packet::{Direction, Holds, Packet};
use super::ruleset::{Chain, Hook, Rule, Ruleset, Verdict};

/// Reads a ruleset. Conditions that are not understood may hold or not.
pub fn parse(text: &str) -> Result<Ruleset, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let items = document["nftables"].as_array().ok_or("expected a list \"nftables\"")?;
    let mut ruleset = Ruleset::default();
    for chain in items.iter().filter_map(|item| item.get("chain")) {
        if text_of(chain, "family") != "arp" && text_of(chain, "family") != "bridge" {
            ruleset.chains.insert(key(chain, text_of(chain, "name")), parse_chain(chain));
        }
    }
    for rule in items.iter().filter_map(|item| item.get("rule")) {
        if let Some(chain) = ruleset.chains.get_mut(&key(rule, text_of(rule, "chain"))) {
            chain.rules.push(parse_rule(rule));
        }
    }
    Ok(ruleset)
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Chains are told apart by family, table and name; jumps stay within a table.
fn key(item: &Value, chain: &str) -> String {
    format!("{} {} {chain}", text_of(item, "family"), text_of(item, "table"))
}

fn parse_chain(chain: &Value) -> Chain {
    let direction = match text_of(chain, "hook") {
        "ingress" | "prerouting" | "input" => Some(Direction::In),
        "output" | "postrouting" | "egress" => Some(Direction::Out),
        _ => None,
    };
    let hook = direction.map(|direction| Hook {
        direction,
        device: chain["dev"].as_str().map(str::to_owned),
        drops_at_end: text_of(chain, "policy") == "drop",
    });
    let family = match text_of(chain, "family") {
        "ip" => Some(Family::V4),
        "ip6" => Some(Family::V6),
        _ => None,
    };
    Chain {
        title: format!("chain {}", key(chain, text_of(chain, "name"))),
        hook,
        family,
        rules: Vec::new(),
        remedy,
    }
}

fn remedy(title: &str, packet: &Packet<'_>) -> String {
    let place = title.trim_start_matches("chain ");
    let (groups, bits) = packet.groups();
    let (protocol, by) = match (packet.family, packet.direction) {
        (Family::V4, Direction::In) => ("ip", "iifname"),
        (Family::V4, Direction::Out) => ("ip", "oifname"),
        (Family::V6, Direction::In) => ("ip6", "iifname"),
        (Family::V6, Direction::Out) => ("ip6", "oifname"),
    };
    format!(
        "nft insert rule {place} {by} {} {protocol} daddr {groups}/{bits} meta l4proto udp accept",
        packet.interface
    )
}

fn parse_rule(rule: &Value) -> Rule {
    let key_of_target = |target: &Value| key(rule, text_of(target, "target"));
    let mut verdict = Verdict::Continue;
    let mut conditions = Vec::new();
    for expression in rule["expr"].as_array().into_iter().flatten() {
        let Some((kind, body)) = expression.as_object().and_then(|object| object.iter().next()) else {
            continue;
        };
        match kind.as_str() {
            "match" => conditions.push(body.clone()),
            "accept" => verdict = Verdict::Accept,
            "drop" | "reject" => verdict = Verdict::Drop,
            "return" => verdict = Verdict::Return,
            "jump" => verdict = Verdict::Jump(key_of_target(body)),
            "goto" => verdict = Verdict::Goto(key_of_target(body)),
            "counter" | "log" | "mangle" | "notrack" => {}
            // A limit, a set, a verdict map, a module of iptables: it depends.
            _ => conditions.push(Value::Null),
        }
    }
    let text = format!("rule with handle {} there ({})", rule["handle"], summary(rule));
    let holds = move |packet: &Packet<'_>| {
        conditions.iter().map(|condition| evaluate(condition, packet)).min().unwrap_or(Holds::Yes)
    };
    Rule { text, conditions: Box::new(holds), verdict }
}

/// The kinds of its expressions and its comment: `match, numgen, drop`.
fn summary(rule: &Value) -> String {
    let kinds = rule["expr"].as_array().into_iter().flatten().filter_map(|expression| {
        let (kind, body) = expression.as_object()?.iter().next()?;
        match (kind.as_str(), body["left"].as_object().and_then(|left| left.iter().next())) {
            ("match", Some((left, details))) => {
                Some(details["key"].as_str().or(details["field"].as_str()).unwrap_or(left).to_owned())
            }
            ("counter", _) => None,
            _ => Some(kind.clone()),
        }
    });
    let kinds: Vec<String> = kinds.chain(rule["comment"].as_str().map(str::to_owned)).collect();
    kinds.join(", ")
}

fn evaluate(condition: &Value, packet: &Packet<'_>) -> Holds {
    let (left, right) = (&condition["left"], &condition["right"]);
    let holds = any_of(right, &|value| compare(left, value, packet));
    match text_of(condition, "op") {
        "==" | "in" => holds,
        "!=" => holds.not(),
        _ => Holds::Maybe,
    }
}

/// A set holds if one of its members does.
fn any_of(right: &Value, holds: &dyn Fn(&Value) -> Holds) -> Holds {
    let members = right.get("set").unwrap_or(right).as_array();
    match members {
        Some(members) => members.iter().map(holds).max().unwrap_or(Holds::No),
        None => holds(right),
    }
}

fn compare(left: &Value, right: &Value, packet: &Packet<'_>) -> Holds {
    let word = right.as_str();
    if let Some(key) = left["meta"]["key"].as_str() {
        return match (key, word) {
            ("iif" | "iifname", Some(name)) => packet.is_by(name, Direction::In),
            ("oif" | "oifname", Some(name)) => packet.is_by(name, Direction::Out),
            ("l4proto", _) => is_udp(right),
            ("pkttype", Some(kind)) if packet.direction == Direction::In => Holds::of(kind == "multicast"),
            ("nfproto" | "protocol", Some(name)) => match packet.family {
                Family::V4 => Holds::of(["ipv4", "ip"].contains(&name)),
                Family::V6 => Holds::of(["ipv6", "ip6"].contains(&name)),
            },
            _ => Holds::Maybe,
        };
    }
    if let (Some(protocol), Some(field)) =
        (left["payload"]["protocol"].as_str(), left["payload"]["field"].as_str())
    {
        return payload(protocol, field, right, packet);
    }
    match (left["ct"]["key"].as_str(), left["fib"]["result"].as_str(), word) {
        // Nobody answers to a group, so its datagrams never become part of a connection.
        (Some("state"), _, Some("new")) => Holds::Yes,
        (Some("state"), _, Some("established" | "related" | "invalid" | "untracked")) => Holds::No,
        (_, Some("type"), Some(kind)) if left["fib"]["flags"] == serde_json::json!(["daddr"]) => {
            Holds::of(kind == "multicast")
        }
        _ => Holds::Maybe,
    }
}

fn payload(protocol: &str, field: &str, right: &Value, packet: &Packet<'_>) -> Holds {
    match (protocol, field, packet.family) {
        ("ip", _, Family::V6) | ("ip6", _, Family::V4) => Holds::No,
        ("ip" | "ip6", "daddr", _) => destination(right, packet),
        ("ip", "protocol", _) | ("ip6", "nexthdr", _) => is_udp(right),
        // A condition on another protocol's field asks for that protocol first.
        ("tcp" | "icmp" | "icmpv6" | "igmp" | "sctp" | "dccp" | "esp" | "ah", ..) => Holds::No,
        _ => Holds::Maybe,
    }
}

fn destination(right: &Value, packet: &Packet<'_>) -> Holds {
    let (address, bits) = match (right.as_str(), right["prefix"]["addr"].as_str()) {
        (Some(address), _) => (address, None),
        (None, Some(address)) => {
            (address, right["prefix"]["len"].as_u64().and_then(|bits| u8::try_from(bits).ok()))
        }
        (None, None) => return Holds::Maybe,
    };
    match address.parse::<IpAddr>() {
        Ok(address) => packet.is_to(address, bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 })),
        Err(_) => Holds::Maybe,
    }
}

/// Protocols have names and numbers.
fn is_udp(protocol: &Value) -> Holds {
    const UDP: u64 = 17;
    match (protocol.as_str(), protocol.as_u64()) {
        (Some(name), _) => Holds::of(name == "udp"),
        (None, Some(number)) => Holds::of(number == UDP),
        (None, None) => Holds::Maybe,
    }
}
