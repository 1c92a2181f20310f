use super::*;

const RULE: &str = "[[rule]]\ncollective = \"bcast\"\nuse = \"stock\"\n";

fn rules(count: usize) -> String {
    format!("version = 1\n{}", RULE.repeat(count))
}

fn error_in(text: &str) -> TableError {
    Table::parse(text, "cluster.toml").unwrap_err()
}

#[test]
fn a_rule_is_read_with_all_that_it_may_have() {
    let text = r#"
version = 1

# a comment
[[rule]]
collective = "bcast"
ranks = "2..64"
nodes = 16
ranks_per_node = "1"
switches = "2.."
bytes = "64KiB.."
use = "chain:segment=8KiB"
because = "measured"
"#;
    let table = Table::parse(text, "cluster.toml").unwrap();
    let [rule] = table.rules() else { panic!("{table:?}") };
    let conditions: Vec<String> = rule.conditions.iter().map(ToString::to_string).collect();
    assert_eq!(conditions, ["ranks 2..64", "nodes 16", "ranks_per_node 1", "switches 2..", "bytes 64KiB.."]);
    assert_eq!(rule.choice.to_string(), "chain:segment=8KiB");
    assert_eq!(rule.because.as_deref(), Some("measured"));
    assert_eq!((rule.line, table.origin()), (5, "cluster.toml"));
}

#[test]
fn a_table_without_rules_leaves_everything_to_stock() {
    assert_eq!(Table::parse("version = 1", "t").unwrap().rules(), []);
}

#[test]
fn problems_are_named_with_their_line_and_column() {
    let head = "version = 1\n[[rule]]\ncollective = \"bcast\"\n";
    for (text, place, problem) in [
        ("version = 2", (1, 11), "expected version = 1, which this polycast reads, found version = 2"),
        ("", (1, 1), "missing field `version`"),
        ("version = \"1\"", (1, 11), "expected i64"),
        ("version = 1\nversion = 1", (2, 1), "duplicate key"),
        (
            "version = 1\nrules = []",
            (2, 1),
            "unknown field `rules`, expected one of `version`, `sums`, `rule`",
        ),
        ("version = 1\n[[rule]]\nuse = \"stock\"", (2, 1), "missing field `collective`"),
        (head, (2, 1), "missing field `use`"),
        (&format!("{head}use = \"chian\""), (4, 7), "use: unknown algorithm \"chian\", expected one of flat"),
        (&format!("{head}use = \"stock\"\nsize = 3"), (5, 1), "unknown field `size`, expected one of"),
        (
            &format!("{head}use = \"stock\"\n bytes = \"8KiB..4KiB\""),
            (5, 10),
            "bytes: expected a range that holds",
        ),
        (&format!("{head}use = \"stock\"\nranks = -1"), (5, 9), "ranks: expected a number such as 16"),
        (&format!("{head}use = \"stock\"\nranks = [1]"), (5, 9), "expected a number, or text with a range"),
        (&format!("{head}use = \"stock\"\nranks = 1.5"), (5, 9), "expected a number, or text with a range"),
        (
            "version = 1\n[[rule]]\ncollective = \"gathr\"\nuse = \"stock\"",
            (3, 14),
            "expected one of bcast, scatter",
        ),
        (
            "version = 1\n[[rule]]\ncollective = \"gather\"\nuse = \"double-tree\"",
            (4, 7),
            "use: double-tree serves bcast, not gather: expected one of flat, chain, binary, binomial, k-nomial, contention-free-chain, contention-free-binary, contention-free-k-ary, two-level, cells, direct, stock",
        ),
        ("version = 1\n[[rule]]\ncollective = \"bcast", (3, 20), "invalid basic string"),
        (
            "version = 1\nsums = \"exact\"",
            (2, 8),
            "sums: expected one of auto, canonical, mpi, found \"exact\"",
        ),
    ] {
        let error = error_in(text);
        assert!(error.problem.contains(problem), "{text}\n{error}");
        assert_eq!((error.line, error.column), place, "{text}\n{error}");
        assert_eq!(error.problem.lines().count(), 1, "{error}");
    }
    assert!(error_in("version = 2").to_string().starts_with("cluster.toml:1:11: expected"));
}

#[test]
fn the_documented_example_and_algorithms_are_read() {
    let document = include_str!("../../../../../docs/table.md");
    let example = document.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(Table::parse(example, "docs/table.md").unwrap().rules().len(), 2);
    let algorithms =
        document.split("### Algorithms").nth(1).and_then(|rest| rest.split("## Errors").next()).unwrap();
    let rows = algorithms.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for name in rows.take_while(|name| !name.starts_with("segment")) {
        assert!(name.parse::<Choice>().is_ok(), "{name}");
    }
}

#[test]
fn rules_end_at_their_limit() {
    assert_eq!(Table::parse(&rules(MAX_RULES), "t").unwrap().rules().len(), MAX_RULES);
    let error = error_in(&rules(MAX_RULES + 1));
    assert!(error.problem.contains("at most 1024 rules, found 1025"), "{error}");
    assert_eq!(error.line, 2 + 3 * MAX_RULES);
}

#[test]
fn epochs_end_at_their_limit() {
    let changing = |collective: &str, number: usize| {
        let head = format!("[[rule]]\ncollective = \"{collective}\"\nuse = \"stock\"\n");
        (1..number).map(|at| format!("{head}earlier_calls = \"{at}..\"\n")).collect::<String>()
    };
    let both = format!("version = 1\n{}{}", changing("bcast", MAX_EPOCHS), changing("gather", MAX_EPOCHS));
    let table = Table::parse(&both, "t").unwrap();
    let shape = crate::policy::CommunicatorShape::new(2, 2, None).unwrap();
    let policy = crate::policy::Policy::new(crate::policy::Rules::new(&[], None, &table, None), shape);
    assert_eq!(policy.epochs(Collective::Gather).count(), MAX_EPOCHS);
    let error = error_in(&format!("version = 1\n{}", changing("bcast", MAX_EPOCHS + 1)));
    assert!(error.problem.contains("rules for bcast that change at most 65 times"), "{error}");
    assert_eq!(error.line, 2 + 4 * (MAX_EPOCHS - 1));
}

#[test]
fn text_ends_at_its_limit() {
    let padded = |length: usize| {
        let text = rules(1);
        format!("{text}#{}", "x".repeat(length - text.len() - 1))
    };
    assert!(Table::parse(&padded(MAX_TEXT_BYTES), "t").is_ok());
    let error = error_in(&padded(MAX_TEXT_BYTES + 1));
    assert!(error.problem.contains("at most 1048576 bytes of text, found 1048577"), "{error}");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_decoder_panic(text in "(version = 1\n|\\[\\[rule\\]\\]\n|[a-z_]{1,6} = \"?[0-9KiMB.é]{0,6}\"?\n|\\PC{0,8}){0,8}") {
        let _ = Table::parse(&text, "t");
    }
}
