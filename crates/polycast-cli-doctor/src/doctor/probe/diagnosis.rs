//! The diagnosis: from who heard whom to what is wrong.
//!
//! ```text
//!   a row is empty       nobody hears h1        what h1 sends is dropped: its firewall, its port of the switch
//!   a column is empty    h2 hears nobody        what comes for h2 is dropped: the same, or its membership is not seen
//!   blocks               {h0 h1} / {h2 h3}      a router or a VLAN lies between: it does not carry multicast
//!   everything is empty                         the network carries no multicast at all
//!   empty at full size, full with small ones    an MTU on the way
//! ```

use crate::doctor::finding::{Finding, Topic};

use super::matrix::Matrix;

/// A finding about some of the hosts.
pub type About = (Vec<usize>, Finding);

/// The loss in percent above which losses cost more than some repair.
const LOSS_PERCENT_MUCH: f64 = 5.0;

/// The loss in percent above which a job may find no multicast: its own probe sends nine datagrams,
/// and of one pair in twenty none arrives.
const LOSS_PERCENT_TOO_MUCH: f64 = 72.0;

/// The most pairs that a finding names one by one.
const MAX_PAIRS_NAMED: usize = 10;

/// Explains the round with full-size datagrams, and the one with small ones if there was one.
pub fn diagnose(names: &[String], full: &Matrix, small: Option<&Matrix>) -> Vec<About> {
    let mut silent = full.silent_pairs();
    let mut findings = Vec::new();
    if let Some(small) = small {
        let by_size: Vec<(usize, usize)> = silent
            .iter()
            .copied()
            .filter(|&(from, to)| small.sent(from) > 0 && !small.is_silent(from, to))
            .collect();
        if !by_size.is_empty() {
            findings.push(too_large(names, &by_size));
            silent.retain(|pair| !by_size.contains(pair));
        }
    }
    findings.extend(silence(names, full, &silent));
    findings.extend(quality(names, full));
    findings
}

fn too_large(names: &[String], pairs: &[(usize, usize)]) -> About {
    let found = format!(
        "datagrams of full size do not arrive, small ones do: {}. Something on the way carries smaller packets only",
        name_pairs(names, pairs)
    );
    let remedy = "a smaller MTU on all hosts: ip link set dev INTERFACE mtu 1500; or ask the network's administrator to allow larger frames on \
                  every switch between them";
    (Vec::new(), Finding::problem(Topic::Mtu, found, remedy))
}

const HOST_REMEDY: &str = "look at the firewall of that host (nft list ruleset, run there as root) and at its port of the switch: \
                           are multicast filters, storm control or port isolation set? does the switch list the host as a member \
                           (show ip igmp snooping groups)?";
const NETWORK_REMEDY: &str = "ask the network's administrator to enable the IGMP/MLD snooping querier in this VLAN, or to disable \
                              snooping; virtual networks of clouds carry no multicast at all";
const BORDER_REMEDY: &str = "put the hosts into one VLAN: datagrams have a time to live of 1 and do not pass routers; or run the job \
                             within one part";

/// The findings about the pairs between which nothing arrives: what all of these pairs have in
/// common.
fn silence(names: &[String], full: &Matrix, silent: &[(usize, usize)]) -> Vec<About> {
    let problem = |hosts: Vec<usize>, found: String, remedy: &str| {
        (hosts, Finding::problem(Topic::Probe, found, remedy))
    };
    if silent.is_empty() {
        return Vec::new();
    }
    let hosts = full.hosts();
    if silent.len() == full.pairs().count() {
        let found =
            "no datagram of any host arrives at any other: the network does not carry multicast, or the hosts filter it".to_owned();
        return vec![problem((0..hosts).collect(), found, NETWORK_REMEDY)];
    }
    if hosts == 2 {
        // Which of the two is to blame cannot be told.
        let found = format!("nothing arrives {}, while the other way is open", name_pairs(names, silent));
        return vec![problem((0..hosts).collect(), found, HOST_REMEDY)];
    }
    let is_silent = |from: usize, to: usize| silent.contains(&(from, to));
    let all_pairs: Vec<(usize, usize)> = full.pairs().collect();
    let is_deaf =
        |host: usize| all_pairs.iter().filter(|pair| pair.1 == host).all(|&(from, to)| is_silent(from, to));
    let is_mute = |host: usize| {
        let mut own = all_pairs.iter().filter(|pair| pair.0 == host).peekable();
        own.peek().is_some() && own.all(|&(from, to)| is_silent(from, to))
    };
    if let Some(parts) = parts(hosts, &all_pairs, silent) {
        let lists: Vec<String> = parts
            .iter()
            .map(|part| part.iter().map(|host| names[*host].as_str()).collect::<Vec<_>>().join(", "))
            .collect();
        let found = format!("no datagram passes between {}", lists.join(" | "));
        return vec![problem(Vec::new(), found, BORDER_REMEDY)];
    }
    let mut findings = Vec::new();
    for host in 0..hosts {
        let found = match (is_deaf(host), is_mute(host)) {
            (true, true) => "neither hears the others nor is heard by them",
            (true, false) => "hears nobody, although others are heard",
            (false, true) => "is heard by nobody, although it hears others",
            (false, false) => continue,
        };
        findings.push(problem(vec![host], found.to_owned(), HOST_REMEDY));
    }
    let rest: Vec<(usize, usize)> =
        silent.iter().copied().filter(|&(from, to)| !is_mute(from) && !is_deaf(to)).collect();
    if !rest.is_empty() {
        let found = format!("nothing arrives {}", name_pairs(names, &rest));
        findings.push(problem(Vec::new(), found, NETWORK_REMEDY));
    }
    findings
}

/// The parts of the network, of two hosts or more each, if datagrams pass within all of them and between none.
fn parts(hosts: usize, pairs: &[(usize, usize)], silent: &[(usize, usize)]) -> Option<Vec<Vec<usize>>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for host in 0..hosts {
        let hears =
            |part: &Vec<usize>| !silent.contains(&(part[0], host)) && !silent.contains(&(host, part[0]));
        match parts.iter_mut().find(|part| hears(part)) {
            Some(part) => part.push(host),
            None => parts.push(vec![host]),
        }
    }
    let part_of = |host: usize| parts.iter().position(|part| part.contains(&host));
    let is_border = |&(from, to): &(usize, usize)| part_of(from) != part_of(to);
    let fits = pairs.iter().all(|pair| is_border(pair) == silent.contains(pair));
    (fits && parts.len() > 1 && parts.iter().all(|part| part.len() > 1)).then_some(parts)
}

/// `from a to b, c to d`, shortened.
fn name_pairs(names: &[String], pairs: &[(usize, usize)]) -> String {
    let shown: Vec<String> = pairs
        .iter()
        .take(MAX_PAIRS_NAMED)
        .map(|&(from, to)| format!("{} to {}", names[from], names[to]))
        .collect();
    let more = pairs.len().saturating_sub(MAX_PAIRS_NAMED);
    let more = if more > 0 { format!(" and {more} more pairs") } else { String::new() };
    format!("from {}{more}", shown.join(", "))
}

/// Loss, duplicates and reordering where datagrams do arrive.
fn quality(names: &[String], full: &Matrix) -> Vec<About> {
    let audible: Vec<(usize, usize)> = full.pairs().filter(|&(from, to)| !full.is_silent(from, to)).collect();
    let loss = |&(from, to): &(usize, usize)| full.loss_percent(from, to).unwrap_or(0.0);
    let Some(worst) = audible.iter().copied().max_by(|one, other| loss(one).total_cmp(&loss(other))) else {
        return Vec::new();
    };
    let mean = audible.iter().map(loss).sum::<f64>() / audible.len() as f64;
    let silent = full.pairs().count() - audible.len();
    let among = if silent > 0 { format!("; of {silent} pairs nothing") } else { String::new() };
    let most = format!("{:.1} % from {} to {}", loss(&worst), names[worst.0], names[worst.1]);
    let about = |finding| (Vec::new(), finding);
    let mut findings = vec![about(if loss(&worst) == 0.0 {
        let found = format!(
            "all datagrams arrive between {} of {} pairs{among}",
            audible.len(),
            audible.len() + silent
        );
        Finding::ok(Topic::Probe, found)
    } else if loss(&worst) < LOSS_PERCENT_MUCH {
        Finding::note(
            Topic::Probe,
            format!("{mean:.2} % of the datagrams are lost, most {most}; polycast repairs that{among}"),
        )
    } else {
        let found = format!(
            "{mean:.1} % of the datagrams are lost, most {most}: repairs take longer than the message{among}"
        );
        let remedy = "look for errors and drops: ip -s link show dev INTERFACE, ethtool -S INTERFACE, the counters of the switch \
                      ports (storm control counts multicast)";
        let judge = if loss(&worst) < LOSS_PERCENT_TOO_MUCH { Finding::warning } else { Finding::problem };
        judge(Topic::Probe, found, remedy)
    })];
    let sum = |count: fn(&Matrix, usize, usize) -> u32| -> u32 {
        audible.iter().map(|&(from, to)| count(full, from, to)).sum()
    };
    let duplicates = sum(|matrix, from, to| matrix.heard(from, to).duplicates);
    if duplicates > 0 {
        let found = format!(
            "{duplicates} datagrams arrived twice: there are two ways through the network, or a loop"
        );
        findings.push(about(
            Finding::note(Topic::Probe, found)
                .with_remedy("ask the network's administrator whether spanning tree is on"),
        ));
    }
    let late = sum(|matrix, from, to| matrix.heard(from, to).late);
    if late > 0 {
        let found = format!("{late} datagrams were overtaken by later ones; polycast puts them in order");
        findings.push(about(Finding::note(Topic::Probe, found)));
    }
    findings
}

/// The pairs that were heard in the first round and in neither of the last two: somebody forgot a member.
pub fn forgotten(names: &[String], first: &Matrix, last_two: [&Matrix; 2], seconds: u64) -> Option<About> {
    let lost = |&(from, to): &(usize, usize)| {
        !first.is_silent(from, to) && last_two.iter().all(|round| round.is_silent(from, to))
    };
    let pairs: Vec<(usize, usize)> = first.pairs().filter(lost).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut receivers: Vec<usize> = pairs.iter().map(|&(_, to)| to).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let found = format!(
        "after {seconds} s nothing arrives any more {}: a switch that snoops has forgotten who is a member, because nobody asks \
         (IGMP: 260 s after joining by default)",
        name_pairs(names, &pairs)
    );
    Some((receivers, Finding::problem(Topic::Probe, found, NETWORK_REMEDY)))
}

/// The kernel did not take what was to be sent.
pub fn refused(error: &str, datagram_bytes: usize) -> Finding {
    let found =
        format!("the kernel refuses to send datagrams of {datagram_bytes} bytes to the group: {error}");
    let remedy = "an output rule of the firewall (nft list ruleset, as root), or an MTU that the interface's driver does not keep \
                  (ip link)";
    Finding::problem(Topic::Probe, found, remedy)
}

/// The findings about a host that is alone in the probe; `asked` is the number of hosts that were
/// to be examined.
pub fn alone(round: &Matrix, asked: usize) -> Vec<Finding> {
    let (sent, heard) = (round.sent(0), round.heard(0, 0).datagrams);
    if sent > 0 && heard == 0 {
        let found = "this host does not hear what it sends to a group itself";
        let remedy = "look at its firewall: nft list ruleset, as root";
        return vec![Finding::problem(Topic::Probe, found, remedy)];
    }
    let itself = Finding::ok(Topic::Probe, format!("this host hears itself: {heard} of {sent} datagrams"));
    let network = if asked > 1 {
        Finding::problem(
            Topic::Probe,
            "no other host is left to send to",
            "see the problems of the other hosts",
        )
    } else {
        Finding::note(Topic::Probe, "whether the network carries multicast takes two hosts to tell")
            .with_remedy("polycast doctor --hosts a,b,c with the hosts of a job")
    };
    vec![itself, network]
}
