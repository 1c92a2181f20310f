//! Rulesets as people have them.

use polycast_net::Family;

use super::packet::{Direction, Packet};
use super::ruleset::{Fate, Ruleset};
use super::{describe, iptables, nft};

const IN: Packet<'_> = Packet { interface: "e0", family: Family::V4, direction: Direction::In };
const OUT: Packet<'_> = Packet { direction: Direction::Out, ..IN };

/// A table `inet filter` with a chain `input` and one that can be jumped to, as `nft -j` prints it.
fn input_chain(policy: &str, rules: &[&str]) -> Ruleset {
    let chain = |name: &str, hook: &str| {
        format!(r#"{{"chain":{{"family":"inet","table":"filter","name":"{name}","handle":1{hook}}}}}"#)
    };
    let hook = format!(r#","type":"filter","hook":"input","prio":0,"policy":"{policy}""#);
    let mut items = vec![chain("input", &hook), chain("helper", "")];
    items.extend(rules.iter().enumerate().map(|(index, rule)| {
        let (place, rule) = rule.split_once(": ").unwrap_or(("input", rule));
        format!(
            r#"{{"rule":{{"family":"inet","table":"filter","chain":"{place}","handle":{},"expr":[{rule}]}}}}"#,
            index + 10
        )
    }));
    nft::parse(&format!(r#"{{"nftables":[{{"metainfo":{{}}}},{}]}}"#, items.join(","))).unwrap()
}

const DROP: &str = r#"{"drop":null}"#;
const ACCEPT: &str = r#"{"accept":null}"#;

fn matches(left: &str, right: &str) -> String {
    format!(r#"{{"match":{{"op":"==","left":{left},"right":{right}}}}}"#)
}

fn daddr(right: &str) -> String {
    matches(r#"{"payload":{"protocol":"ip","field":"daddr"}}"#, right)
}

fn fate(ruleset: &Ruleset) -> &'static str {
    match &ruleset.fates(&IN)[..] {
        [Fate::Passes] => "passes",
        [Fate::Dropped(_)] => "dropped",
        [Fate::MayBeDropped(_)] => "may be dropped",
        other => panic!("expected one chain, found {}", other.len()),
    }
}

#[test]
fn a_policy_drops_what_nothing_accepts() {
    let established =
        r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},"right":["established","related"]}}"#;
    let ssh = matches(r#"{"payload":{"protocol":"tcp","field":"dport"}}"#, "22");
    let usual = [format!("{established},{ACCEPT}"), format!("{ssh},{ACCEPT}")];
    let rules: Vec<&str> = usual.iter().map(String::as_str).collect();
    assert_eq!(fate(&input_chain("accept", &rules)), "passes");
    let ruleset = input_chain("drop", &rules);
    assert_eq!(fate(&ruleset), "dropped");
    let finding = describe(&ruleset.fates(&IN)[0], &IN).unwrap();
    assert!(
        finding.found.starts_with("chain inet filter input drops multicast that arrives: its policy"),
        "{finding:?}"
    );
    assert_eq!(
        finding.remedy.unwrap(),
        "nft insert rule inet filter input iifname e0 ip daddr 239.192.0.0/14 meta l4proto udp accept"
    );
}

#[test]
fn an_accept_for_multicast_saves_it() {
    let groups = daddr(r#"{"prefix":{"addr":"224.0.0.0","len":4}}"#);
    let some_groups = daddr(r#"{"prefix":{"addr":"239.193.0.0","len":16}}"#);
    let kind = matches(r#"{"meta":{"key":"pkttype"}}"#, r#"{"set":["broadcast","multicast"]}"#);
    let other_interface = matches(r#"{"meta":{"key":"iifname"}}"#, r#""lo""#);
    for (condition, expected) in [
        (&groups, "passes"),
        (&kind, "passes"),
        (&some_groups, "may be dropped"),
        (&other_interface, "dropped"),
    ] {
        assert_eq!(fate(&input_chain("drop", &[&format!("{condition},{ACCEPT}")])), expected, "{condition}");
    }
}

#[test]
fn rules_that_drop() {
    let groups = daddr(r#"{"prefix":{"addr":"224.0.0.0","len":4}}"#);
    let udp = matches(r#"{"meta":{"key":"l4proto"}}"#, r#""udp""#);
    let random =
        r#"{"match":{"op":"<","left":{"numgen":{"mode":"random","mod":1000000,"offset":0}},"right":10000}}"#;
    let not_local = r#"{"match":{"op":"!=","left":{"meta":{"key":"iifname"}},"right":"lo"}}"#;
    for (conditions, expected) in [
        (format!("{groups},{udp}"), "dropped"),
        (not_local.to_owned(), "dropped"),
        (format!(r#"{random},{{"counter":{{"packets":0,"bytes":0}}}}"#), "may be dropped"),
        (r#"{"limit":{"rate":100,"per":"second"}}"#.to_owned(), "may be dropped"),
        (matches(r#"{"payload":{"protocol":"igmp","field":"type"}}"#, "17"), "passes"),
        (daddr(r#""224.0.0.251""#), "passes"),
    ] {
        assert_eq!(
            fate(&input_chain("accept", &[&format!("{conditions},{DROP}")])),
            expected,
            "{conditions}"
        );
    }
}

#[test]
fn jumps_return_and_gotos_do_not() {
    let jump = r#"{"jump":{"target":"helper"}}"#;
    let goto = r#"{"goto":{"target":"helper"}}"#;
    let tcp = matches(r#"{"meta":{"key":"l4proto"}}"#, "6");
    let drop_tcp = format!("helper: {tcp},{DROP}");
    let drop_all = format!("helper: {DROP}");
    assert_eq!(fate(&input_chain("accept", &[jump, &drop_all])), "dropped");
    assert_eq!(fate(&input_chain("accept", &[jump, &drop_tcp])), "passes");
    assert_eq!(fate(&input_chain("drop", &[jump, ACCEPT, &drop_tcp])), "passes");
    assert_eq!(fate(&input_chain("drop", &[goto, ACCEPT, &drop_tcp])), "dropped");
    // The kernel refuses a circle; a parser must not hang on one.
    assert_eq!(fate(&input_chain("accept", &[jump, &format!("helper: {jump}")])), "passes");
}

#[test]
fn only_the_way_of_the_datagram_counts() {
    let ruleset = input_chain("drop", &[]);
    assert!(ruleset.fates(&OUT).is_empty());
    let table = |chain: &str| nft::parse(&format!(r#"{{"nftables":[{{"chain":{chain}}}]}}"#)).unwrap();
    let other_family = table(r#"{"family":"ip6","table":"t","name":"c","hook":"input","policy":"drop"}"#);
    assert!(other_family.fates(&IN).is_empty());
    let other_device =
        table(r#"{"family":"netdev","table":"t","name":"c","hook":"ingress","dev":"e1","policy":"drop"}"#);
    assert!(other_device.fates(&IN).is_empty());
    assert!(nft::parse("{}").is_err() && nft::parse("").is_err());
    assert!(nft::parse(r#"{"nftables":[{"metainfo":{}}]}"#).unwrap().is_empty());
}

#[test]
fn the_old_iptables_is_read_too() {
    let ruleset = |rules: &str| {
        iptables::parse(&format!(
            "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [1:2]\n:ufw - [0:0]\n{rules}COMMIT\n"
        ))
    };
    assert_eq!(fate(&ruleset("-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\n")), "dropped");
    assert_eq!(fate(&ruleset("-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n")), "dropped");
    assert_eq!(fate(&ruleset("-A INPUT -m pkttype --pkt-type multicast -j ACCEPT\n")), "passes");
    assert_eq!(fate(&ruleset("-A INPUT -d 224.0.0.0/4 -i e0 -j ufw\n-A ufw -j ACCEPT\n")), "passes");
    assert_eq!(
        fate(&ruleset("-A INPUT ! -i lo -p udp -m udp --dport 5000:6000 -j ACCEPT\n")),
        "may be dropped"
    );
    let rejecting = ruleset("-A OUTPUT -d 224.0.0.0/4 -j REJECT --reject-with icmp-port-unreachable\n");
    let fate = &rejecting.fates(&OUT)[0];
    let finding = describe(fate, &OUT).unwrap();
    assert_eq!(finding.remedy.unwrap(), "iptables -I OUTPUT -o e0 -d 239.192.0.0/14 -p udp -j ACCEPT");
    assert!(finding.found.contains("-j REJECT"), "{}", finding.found);
}

/// Words of both tools in any order: rules nobody wrote must not stop the doctor.
fn any_rules() -> impl proptest::strategy::Strategy<Value = String> {
    let words = proptest::sample::select(vec![
        ":INPUT",
        "DROP",
        "-A",
        "INPUT",
        "!",
        "-d",
        "224.0.0.0/4",
        "-j",
        "ACCEPT",
        "-p",
        "udp",
        "\n",
        "1/99",
        "-m",
        "ufw",
        "-g",
        "é",
    ]);
    use proptest::strategy::Strategy;
    proptest::collection::vec(words, 0..40).prop_map(|words| words.join(" "))
}

/// A document of the shape that `nft -j` prints, with any values at its leaves.
fn any_ruleset() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::strategy::{Just, Strategy};
    let leaf = proptest::prop_oneof![
        Just("null".to_owned()),
        Just("17".to_owned()),
        proptest::sample::select(vec!["udp", "e0", "input", "224.0.0.0", "multicast", "::", "x"])
            .prop_map(|word| format!("\"{word}\"")),
    ];
    let names = proptest::sample::select(vec![
        "left", "right", "meta", "key", "payload", "protocol", "field", "set", "prefix", "addr", "len",
        "jump", "target", "op", "match", "drop",
    ]);
    let value = leaf.prop_recursive(4, 32, 4, move |inner| {
        proptest::prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            (names.clone(), inner.clone(), names.clone(), inner).prop_map(
                |(one, first, other, second)| format!("{{\"{one}\":{first},\"{other}\":{second}}}")
            ),
        ]
    });
    let chain = r#"{"chain":{"family":"inet","table":"t","name":"c","hook":"input","policy":"accept"}}"#;
    proptest::collection::vec(value, 0..6).prop_map(move |expressions| {
        let rule = format!(
            r#"{{"rule":{{"family":"inet","table":"t","chain":"c","expr":[{}]}}}}"#,
            expressions.join(",")
        );
        format!(r#"{{"nftables":[{chain},{rule}]}}"#)
    })
}

proptest::proptest! {
    #[test]
    fn any_ruleset_has_a_fate_for_every_datagram(text in any_ruleset()) {
        let ruleset = nft::parse(&text).unwrap();
        assert_eq!(ruleset.fates(&IN).len(), 1);
        assert!(ruleset.fates(&OUT).is_empty());
    }

    #[test]
    fn any_words_are_read(text in any_rules(), noise: String) {
        for text in [text, noise.clone()] {
            let ruleset = iptables::parse(&text);
            let fates = [ruleset.fates(&IN), ruleset.fates(&OUT)];
            assert!(fates.iter().all(|fates| fates.len() <= 1));
        }
        let _ = nft::parse(&noise);
    }
}
