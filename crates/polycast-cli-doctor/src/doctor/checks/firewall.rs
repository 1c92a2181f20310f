//! Packet filters that may drop the datagrams, where this user may read them. Rules are listed, not interpreted: whether
//! datagrams pass, the probe tells.

use polycast_net::Family;

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::{Listing, System};

/// The most rules of a chain that are shown.
const MAX_RULES_SHOWN: usize = 3;

/// The table of all chains of the old iptables.
const IPTABLES: &str = "iptables";

/// The direction of the datagrams that pass a chain.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    In,
    Out,
}

/// A chain of rules; jumps stay within a table.
struct Chain {
    /// `inet filter`, or [`IPTABLES`].
    table: String,
    name: String,
    /// The direction, for a chain that the kernel hooks in where datagrams of the interface pass.
    direction: Option<Direction>,
    /// The rules in the words of the program that lists them; `policy drop` is the last one if the
    /// chain drops what no rule accepts.
    rules: Vec<String>,
}

/// Lists what drops in chains that a datagram passes, coming and going, and how multicast is let pass.
pub fn check(system: &System, interface: &str, family: Family) -> Vec<Finding> {
    let (chains, mut findings) = readable(system, interface, family);
    findings.extend(chains.iter().filter_map(|chain| describe(chain, &chains, interface, family)));
    if findings.is_empty() {
        let found = if chains.iter().all(|chain| chain.rules.is_empty()) {
            "no filter is set"
        } else {
            "no rule stands in the way"
        };
        findings.push(Finding::ok(Topic::Firewall, found));
    }
    findings
}

/// The chains that this user may read, and what is unknown about the others.
fn readable(system: &System, interface: &str, family: Family) -> (Vec<Chain>, Vec<Finding>) {
    let mut chains = Vec::new();
    let mut findings = Vec::new();
    match system.list("nft", &["list", "ruleset"]) {
        Listing::Text(text) => chains.extend(nft_chains(&text, interface, family)),
        // Without nft and without the kernel's part of it there are no such rules.
        Listing::Missing if !system.exists("/proc/sys/net/netfilter") => {}
        Listing::Missing => {
            findings.push(unknown("nft is not installed").with_remedy("apt-get install nftables"))
        }
        Listing::Refused(reason) => findings.push(unknown(&reason)),
    }
    let (names, program) = match family {
        Family::V4 => ("/proc/net/ip_tables_names", "iptables-legacy-save"),
        Family::V6 => ("/proc/net/ip6_tables_names", "ip6tables-legacy-save"),
    };
    // The file exists where the old filter is loaded; rules of iptables-nft are among those of nft.
    if system.read(names).is_some_and(|names| names.lines().any(|name| name == "filter")) {
        match system.list(program, &["-t", "filter"]) {
            Listing::Text(text) => chains.extend(iptables_chains(&text)),
            Listing::Missing => findings.push(unknown(&format!("{program} is not installed"))),
            Listing::Refused(reason) => findings.push(unknown(&reason)),
        }
    }
    (chains, findings)
}

fn unknown(reason: &str) -> Finding {
    Finding::note(Topic::Firewall, format!("unknown, the rules cannot be read: {reason}"))
        .with_remedy("sudo polycast doctor; the probe tells whether datagrams pass")
}

/// Reads what `nft list ruleset` prints.
fn nft_chains(text: &str, interface: &str, family: Family) -> Vec<Chain> {
    let foreign = match family {
        Family::V4 => ["ip6", "arp", "bridge"],
        Family::V6 => ["ip", "arp", "bridge"],
    };
    let mut chains: Vec<Chain> = Vec::new();
    let mut table = None;
    let mut is_in_chain = false;
    for line in text.lines().map(str::trim) {
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            ["table", of, name, ..] => table = (!foreign.contains(&of)).then(|| format!("{of} {name}")),
            ["chain", name, "{"] if table.is_some() => {
                let table = table.clone().unwrap_or_default();
                chains.push(Chain { table, name: name.to_owned(), direction: None, rules: Vec::new() });
                is_in_chain = true;
            }
            ["}"] | [] => is_in_chain = false,
            ["type", _, "hook", hook, ..] if is_in_chain => {
                let Some(chain) = chains.last_mut() else { continue };
                let is_of_others = line.contains(" device") && !words(line).any(|word| word == interface);
                chain.direction = match hook {
                    "ingress" | "prerouting" | "input" if !is_of_others => Some(Direction::In),
                    "egress" | "postrouting" | "output" if !is_of_others => Some(Direction::Out),
                    _ => None,
                };
                chain.rules.extend(line.contains("policy drop").then(|| "policy drop".to_owned()));
            }
            _ if is_in_chain => chains.last_mut().into_iter().for_each(|chain| chain.rules.push(line.into())),
            _ => {}
        }
    }
    chains
}

/// Reads what `iptables-save` prints.
fn iptables_chains(text: &str) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    for line in text.lines() {
        match line.split_ascii_whitespace().collect::<Vec<_>>()[..] {
            [name, policy, ..] if name.starts_with(':') => {
                let name = name[1..].to_owned();
                let direction = match name.as_str() {
                    "INPUT" => Some(Direction::In),
                    "OUTPUT" => Some(Direction::Out),
                    _ => None,
                };
                let rules = (policy == "DROP").then(|| "policy drop".to_owned()).into_iter().collect();
                chains.push(Chain { table: IPTABLES.to_owned(), name, direction, rules });
            }
            ["-A", name, ..] => {
                let chain = chains.iter_mut().find(|chain| chain.name == name);
                chain.into_iter().for_each(|chain| chain.rules.push(line.to_owned()));
            }
            _ => {}
        }
    }
    chains
}

fn words(rule: &str) -> impl Iterator<Item = &str> {
    rule.split(|c: char| !c.is_alphanumeric() && !['-', '_', '.'].contains(&c))
}

/// The rules that drop, here and in the chains that rules of this one lead to.
fn dropping<'a>(chain: &'a Chain, chains: &'a [Chain]) -> Vec<&'a str> {
    let mut reached = vec![chain];
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(chain) = reached.get(next).copied() {
        next += 1;
        for rule in &chain.rules {
            let drops = |word: &str| ["drop", "reject", "DROP", "REJECT"].contains(&word);
            if words(rule).any(drops) {
                found.push(rule.as_str());
            }
            // Of `jump NAME` and `-j NAME`; other words of a rule seldom are names of chains.
            let is_target = |other: &&Chain| {
                other.table == chain.table
                    && other.direction.is_none()
                    && words(rule).any(|word| word == other.name)
            };
            for other in chains.iter().filter(is_target) {
                if !reached.iter().any(|seen| std::ptr::eq(*seen, other)) {
                    reached.push(other);
                }
            }
        }
    }
    found
}

fn describe(chain: &Chain, chains: &[Chain], interface: &str, family: Family) -> Option<Finding> {
    let direction = chain.direction?;
    let (protocol, groups, program) = match family {
        Family::V4 => ("ip", "239.192.0.0/14", "iptables"),
        Family::V6 => ("ip6", "ff12::/16", "ip6tables"),
    };
    let dropping = dropping(chain, chains);
    // As the remedy does it.
    let lets_pass = |rule: &String| rule.contains(groups) && rule.to_lowercase().contains("accept");
    if dropping.is_empty() || chain.rules.iter().any(lets_pass) {
        return None;
    }
    let (what, by, option) = match direction {
        Direction::In => ("arrives", "iifname", "-i"),
        Direction::Out => ("is sent", "oifname", "-o"),
    };
    let Chain { table, name, .. } = chain;
    let (place, remedy) = if table == IPTABLES {
        let remedy = format!("{program} -I {name} {option} {interface} -d {groups} -p udp -j ACCEPT");
        (format!("iptables chain {name}"), remedy)
    } else {
        let rule = format!("{by} {interface} {protocol} daddr {groups} meta l4proto udp accept");
        (format!("chain {table} {name}"), format!("nft insert rule {table} {name} {rule}"))
    };
    let shown = dropping[..dropping.len().min(MAX_RULES_SHOWN)].join("; ");
    let more = match dropping.len().saturating_sub(MAX_RULES_SHOWN) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let found = format!("{place} may drop multicast that {what}: {shown}{more}");
    Some(Finding::note(Topic::Firewall, found).with_remedy(remedy))
}

#[cfg(test)]
mod tests;
