//! Rulesets as people have them.

use proptest::prelude::*;

use super::*;

/// What is said of the chains of a ruleset as `nft list ruleset` prints it, on the interface e0.
fn said(ruleset: &str) -> Vec<String> {
    said_of(&nft_chains(ruleset, "e0", Family::V4))
}

fn said_of(chains: &[Chain]) -> Vec<String> {
    let describe = |chain| describe(chain, chains, "e0", Family::V4);
    let sentence = |finding: Finding| format!("{} -> {}", finding.found, finding.remedy.unwrap());
    chains.iter().filter_map(describe).map(sentence).collect()
}

/// A table with a chain that is hooked in and one that can be jumped to.
fn table(of: &str, hook: &str, rules: &str, helper: &str) -> String {
    format!(
        "table {of} filter {{\n\tset s {{\n\t\telements = {{ 1.1.1.1,\n\t\t\t1.1.1.2 }}\n\t}}\n\n\tchain c {{\n\t\ttype filter hook {hook}\n\
         \t\t{rules}\n\t}}\n\n\tchain helper {{\n\t\t{helper}\n\t}}\n}}\n"
    )
}

#[test]
fn a_policy_that_drops_is_named_with_the_rule_that_lets_multicast_pass() {
    let policy = "input priority filter; policy drop;";
    let usual = "ct state established,related accept\n\t\ttcp dport 22 accept";
    assert_eq!(
        said(&table("inet", policy, usual, "")),
        ["chain inet filter c may drop multicast that arrives: policy drop -> \
          nft insert rule inet filter c iifname e0 ip daddr 239.192.0.0/14 meta l4proto udp accept"]
    );
    let remedied = format!("iifname \"e0\" ip daddr 239.192.0.0/14 meta l4proto udp accept\n\t\t{usual}");
    assert!(said(&table("inet", policy, &remedied, "")).is_empty());
    assert!(said(&table("inet", "input priority filter; policy accept;", usual, "")).is_empty());
}

#[test]
fn rules_that_drop_are_shown_from_whatever_chain_they_are_reached() {
    let hook = "output priority 0; policy accept;";
    let drops = "ip daddr 224.0.0.0/4 counter packets 0 bytes 0 drop";
    for (rules, helper) in [
        (drops, ""),
        ("jump helper", drops),
        ("meta l4proto vmap { udp : goto helper, tcp : accept }", drops),
        // The kernel refuses a circle; the doctor must not hang on one.
        ("jump helper", &format!("jump helper\n\t\t{drops}")),
    ] {
        let said = said(&table("ip", hook, rules, helper));
        let expected = format!("chain ip filter c may drop multicast that is sent: {drops} -> ");
        assert!(said.len() == 1 && said[0].starts_with(&expected), "{said:?}");
    }
    assert!(said(&table("ip", hook, "accept", drops)).is_empty(), "no rule leads to it");
    let many = "ip saddr 10.0.0.1 reject\n\t\tip saddr 10.0.0.2 drop\n\t\tudp dport 1 drop\n\t\tudp dport 2 drop\n\t\tudp dport 3 drop";
    let said = said(&table("ip", hook, many, ""));
    assert!(said[0].contains("10.0.0.1 reject; ") && said[0].contains("; and 2 more -> "), "{said:?}");
}

#[test]
fn only_the_way_of_the_datagram_counts() {
    for (of, hook) in [
        ("ip6", "input priority 0; policy drop;"),
        ("arp", "input priority 0; policy drop;"),
        ("inet", "forward priority 0; policy drop;"),
        ("netdev", "ingress device \"e1\" priority 0; policy drop;"),
    ] {
        assert!(said(&table(of, hook, "drop", "drop")).is_empty(), "{of} {hook}");
    }
    for device in ["device \"e0\"", "devices = { \"e0\", \"e1\" }"] {
        let hook = format!("ingress {device} priority 0; policy accept;");
        assert_eq!(said(&table("netdev", &hook, "drop", "")).len(), 1, "{hook}");
    }
}

#[test]
fn the_old_iptables_is_read_too() {
    let said = |rules: &str| {
        let text = format!("*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [1:2]\n:ufw - [0:0]\n{rules}COMMIT\n");
        said_of(&iptables_chains(&text))
    };
    let input = said("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n");
    assert_eq!(
        input,
        ["iptables chain INPUT may drop multicast that arrives: policy drop -> \
          iptables -I INPUT -i e0 -d 239.192.0.0/14 -p udp -j ACCEPT"]
    );
    assert!(said("-A INPUT -i e0 -d 239.192.0.0/14 -p udp -j ACCEPT\n").is_empty());
    let both =
        said("-A OUTPUT -j ufw\n-A ufw -d 224.0.0.0/4 -j REJECT --reject-with icmp-port-unreachable\n");
    assert!(both.len() == 2 && both[1].contains("is sent: -A ufw -d 224.0.0.0/4 -j REJECT"), "{both:?}");
}

proptest! {
    /// Rules nobody wrote must not stop the doctor.
    #[test]
    fn any_words_are_read(
        words in proptest::collection::vec(
            proptest::sample::select(vec![
                "table", "ip", "x", "chain", "{", "}", "\n", "type", "filter", "hook", "input", "policy", "drop", ":INPUT", "DROP",
                "-A", "INPUT", "jump", "é", ":",
            ]),
            0..60,
        ),
        noise: String,
    ) {
        for text in [words.join(" "), noise] {
            said(&text);
            said_of(&iptables_chains(&text));
        }
    }
}
