use polycast_core::policy::tune::Measured;
use polycast_core::policy::{CommunicatorShape, Table};
use proptest::prelude::*;

use super::*;

const CLASSIC: &str = "\
1            # collectives
7            # bcast
1            # communicator sizes
16           # from this size
2            # message rules, the first must be 0
0 6 0 0      # bytes algorithm fan segment
65536 3 0 16384
";

const JSON: &str = r#"{"rule_file_version":3,"module":"tuned","collectives":{"bcast":[{"comm_size_min":8,"comm_size_max":64,
    "comm_rank_distribution":"any","rules":[{"msg_size_min":0,"msg_size_max":65535,"alg":"binomial"},
    {"msg_size_min":65536,"msg_size_max":"inf","alg":"pipeline","seg_size":16384}]}]}}"#;

fn way(algorithm: u32, segment: u64) -> Way {
    Way::new(Collective::Broadcast, algorithm, 0, segment).unwrap()
}

#[test]
fn both_formats_say_the_same() {
    let classic = Rules::parse(CLASSIC, RulesFormat::of(CLASSIC).unwrap()).unwrap();
    let json = Rules::parse(JSON, RulesFormat::of(JSON).unwrap()).unwrap();
    let rules = &classic.collectives[0].communicators[0];
    assert_eq!((rules.ranks, rules.rules[0].way, rules.rules[1].way), (16, way(6, 0), way(3, 16384)));
    assert_eq!(json.collectives[0].communicators[1].rules, rules.rules);
    assert_eq!(
        classic.show(),
        "bcast, 16 ranks and more\n  from        0  binomial\n  from    64KiB  pipeline, segments of 16KiB\n"
    );
    assert_eq!(RulesFormat::of("version = 1\n"), None);
    // Open MPI 6 takes a communicator's "inf" for -1.
    assert!(
        ["inf", "comm_size_max"].iter().all(|end| !written(&classic).contains(end)),
        "{}",
        written(&classic)
    );
}

/// As Open MPI 6 reads it.
fn written(rules: &Rules) -> String {
    rules.write(RulesFormat::OpenmpiJson, &[]).unwrap()
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (from, to, expected) in [
        ("65536 3 0 16384", "65536 3 0", "line 7: expected a segment, found the end"),
        ("65536 3", "65536 33", "line 7: bcast has no algorithm 33"),
        (
            "65536 3",
            "sixty 3",
            "line 7: expected bytes, a number up to 18446744073709551615, found \"sixty\"",
        ),
        ("7   ", "1   ", "line 2: collective 1 is none that is known here"),
        ("0 6 0 0", "1 6 0 0", "expected the first rule to be for 0 bytes"),
        ("65536 3", "0 3", "expected rules by rising bytes"),
        ("16384\n", "16384\n5\n", "line 8: expected the end, found \"5\""),
        (
            "1            # collectives",
            "9999999",
            "line 1: expected how many collectives, a number up to 10000",
        ),
    ] {
        let error = Rules::parse(&CLASSIC.replacen(from, to, 1), RulesFormat::Openmpi).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (from, to, expected) in [
        (":3,", ":1,", "expected rule_file_version 3"),
        (
            "\"any\"",
            "\"one per node\"",
            "comm_rank_distribution: expected one of one-per-node, single-node, any, found \"one per node\"",
        ),
        ("\"inf\"", "\"infinite\"", "msg_size_max: expected a number or \"inf\", found \"infinite\""),
        ("65535", "-1", "msg_size_max: expected a number or \"inf\", found -1"),
        (
            "\"seg_size\":16384",
            "\"reqs\":8",
            "bcast: expected rules without reqs, which nothing here knows of, found 8",
        ),
        // 2^32 and a little: not what the little says.
        (":8,", ":4294967304,", "comm_size_min: expected a number of 32 bits, found 4294967304"),
        ("\"binomial\"", "4294967302", "bcast has no algorithm 4294967302"),
        ("\"binomial\"", "\"binomial\",\"faninout\":4294967298", "faninout: expected a number of 32 bits"),
    ] {
        let error = Rules::parse(&JSON.replacen(from, to, 1), RulesFormat::OpenmpiJson).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let later = format!("rule-file-version-2\n{CLASSIC}");
    let error = Rules::parse(&later, RulesFormat::of(&later).unwrap()).unwrap_err();
    assert!(error.contains("whose rules have four numbers, found version 2"), "{error}");
}

#[test]
fn where_a_file_says_nothing_the_library_decides() {
    let gap = JSON.replace("65535", "1023").replace("\"inf\"", "1048575");
    let rules = Rules::parse(&gap, RulesFormat::OpenmpiJson).unwrap();
    assert_eq!(
        rules.show(),
        "bcast, 0 ranks and more\n  from        0  as the library decides\n\
         bcast, 8 ranks and more\n  from        0  binomial\n  from     1KiB  as the library decides\n  \
         from    64KiB  pipeline, segments of 16KiB\n  from     1MiB  as the library decides\n\
         bcast, 65 ranks and more\n  from        0  as the library decides\n"
    );
    assert_eq!(Rules::parse(&written(&rules), RulesFormat::OpenmpiJson).unwrap(), rules);
}

/// In coll_tuned_dynamic_rules.c of Open MPI 6 the first entry that holds decides, among communicators as among bytes.
#[test]
fn of_ranges_that_overlap_the_first_decides() {
    let text = r#"{"rule_file_version":3,"module":"tuned","collectives":{"bcast":[
        {"comm_size_min":8,"comm_size_max":16,"rules":[{"msg_size_min":4096,"msg_size_max":8191,"alg":"chain"},{"alg":"binomial"}]},
        {"comm_size_min":4,"comm_size_max":64,"rules":[{"alg":"pipeline"},{"msg_size_min":1024,"alg":"knomial"}]}]}}"#;
    let rules = Rules::parse(text, RulesFormat::OpenmpiJson).unwrap();
    assert_eq!(
        rules.show(),
        "bcast, 0 ranks and more\n  from        0  as the library decides\n\
         bcast, 4 ranks and more\n  from        0  pipeline\n\
         bcast, 8 ranks and more\n  from        0  binomial\n  from     4KiB  chain\n  from     8KiB  binomial\n\
         bcast, 17 ranks and more\n  from        0  pipeline\n\
         bcast, 65 ranks and more\n  from        0  as the library decides\n"
    );
    let classic = rules.write(RulesFormat::Openmpi, &[]).unwrap();
    assert_eq!(Rules::parse(&classic, RulesFormat::Openmpi).unwrap(), rules);
}

#[test]
fn rules_may_be_for_ranks_that_are_on_one_node_or_on_a_node_each() {
    let text = r#"{"rule_file_version":3,"module":"tuned","collectives":{"bcast":[
        {"comm_size_max":7,"rules":[{"alg":"basic_linear"}]},
        {"comm_rank_distribution":"single-node","rules":[{"alg":"binomial"}]},
        {"comm_size_min":32,"rules":[{"alg":"chain"}]}]}}"#;
    let rules = Rules::parse(text, RulesFormat::OpenmpiJson).unwrap();
    let linear = |placed| format!("bcast, 0 ranks and more{placed}\n  from        0  basic_linear\n");
    let chain = |placed| {
        format!(
            "bcast, 8 ranks and more{placed}\n  from        0  as the library decides\n\
             bcast, 32 ranks and more{placed}\n  from        0  chain\n"
        )
    };
    let (own, single) = (", each on its own node", ", all on one node");
    let binomial = format!("bcast, 8 ranks and more{single}\n  from        0  binomial\n");
    let expected = [linear(own), chain(own), linear(single), binomial, linear(""), chain("")].concat();
    assert_eq!(rules.show(), expected);
    assert_eq!(Rules::parse(&written(&rules), RulesFormat::OpenmpiJson).unwrap(), rules);
    let error = rules.write(RulesFormat::Openmpi, &[]).unwrap_err();
    assert!(error.starts_with("bcast has rules for ranks that are one-per-node"), "{error}");
    // Where it makes no difference, there is none.
    let same = text.replace("\"binomial\"", "\"chain\"").replace("\"comm_size_min\":32,", "");
    assert!(Rules::parse(&same, RulesFormat::OpenmpiJson).unwrap().write(RulesFormat::Openmpi, &[]).is_ok());
}

/// With a factor below 2 the rounds of Open MPI 5 never end.
#[test]
fn rounds_of_an_allgather_grow() {
    let file = CLASSIC
        .replace("7            # bcast", "0")
        .replace("0 6 0 0", "0 2 0 0")
        .replace("65536 3 0", "65536 2 4");
    let rules = Rules::parse(&file, RulesFormat::Openmpi).unwrap();
    assert!(
        rules.show().contains("bruck, fan-out 2\n") && rules.show().contains("fan-out 4\n"),
        "{}",
        rules.show()
    );
    let json = written(&rules);
    assert_eq!(json.matches("\"alg\": \"bruck-k-fanout\"").count(), 2, "{json}");
    assert_eq!(
        Rules::parse(&json.replace("bruck-k-fanout", "bruck"), RulesFormat::OpenmpiJson),
        Rules::parse(&json, RulesFormat::OpenmpiJson)
    );
    let ways = Library::OpenMpi.ways(Collective::Allgather, 1 << 20, 4);
    assert!(ways.iter().any(|way| (way.name, way.fan) == ("bruck", 2)), "{ways:?}");
}

#[test]
fn the_librarys_own_decision_stays_where_nothing_is_faster() {
    let mut search = Search::new(Library::OpenMpi, Collective::Broadcast, vec![1024, 65536, 1 << 20], 16);
    let time = |us: f64| Measured { median_us: us, low_us: 0.95 * us, high_us: 1.05 * us, samples: 9 };
    for (one, sizes) in search.first_round() {
        for bytes in sizes {
            let us = bytes as f64 / if one == way(3, 8192) { 10.0 } else { 1.0 - one.algorithm as f64 / 1e3 };
            search.took(one, bytes, time(us));
        }
    }
    let second = search.second_round();
    assert_eq!(second.len(), 2, "{second:?}");
    assert_eq!(second[0], (Way::STOCK, vec![65536, 1 << 20]));
    let rules = search.rules();
    let expected = [(1024, Way::STOCK), (8192, way(3, 8192))];
    assert_eq!(rules.iter().map(|rule| (rule.bytes, rule.way)).collect::<Vec<_>>(), expected);
    let rules = Rules::for_ranks(16, vec![(Collective::Broadcast, rules)]);
    let text = rules.write(RulesFormat::Openmpi, &["head".to_owned()]).unwrap();
    // Up to Open MPI 4 smaller communicators have the first rules.
    let begin = "# head\n1 # collectives\n7 # bcast\n3 # sizes of communicators\n0 # ranks and more\n\
        1 # rules: bytes, algorithm, fan-out, segment\n0 0 0 0 # as the library decides\n16 # ranks and more\n2 # rules";
    assert!(text.starts_with(begin), "{text}");
    assert!(
        text.contains("8192 3 0 8192 # pipeline, segments of 8KiB; 64KiB in 6554 us, by itself 65536 us"),
        "{text}"
    );
    assert!(text.ends_with("17 # ranks and more\n1 # rules: bytes, algorithm, fan-out, segment\n0 0 0 0 # as the library decides\n"));
}

#[test]
fn the_largest_communicator_has_none_above_it() {
    let rules = Rules::for_ranks(u32::MAX, vec![(Collective::Broadcast, Vec::new())]);
    assert_eq!(rules.collectives[0].communicators.len(), 2);
}

#[test]
fn our_table_becomes_theirs_as_far_as_they_can() {
    let text = "version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"64KiB..1MiB\"\nuse = \"chain:segment=2KiB\"\n\
        [[rule]]\ncollective = \"bcast\"\nbytes = \"1MiB..\"\nuse = \"double-tree\"\n\
        [[rule]]\ncollective = \"allgather\"\nbytes = \"1KiB..\"\nuse = \"ring\"\n";
    let table = Table::parse(text, "t").unwrap();
    let (rules, lacking) = of_table(&table, Library::OpenMpi, CommunicatorShape::new(16, 16, None).unwrap());
    assert_eq!(lacking, ["bcast from 1MiB: the library has no double-tree, and decides itself"]);
    let shown = rules.show();
    assert!(
        shown.contains("from    64KiB  pipeline, segments of 2KiB\n  from     1MiB  as the library decides"),
        "{shown}"
    );
    assert!(
        shown.contains(
            "allgather, 16 ranks and more\n  from        0  as the library decides\n  from    16KiB  ring\n"
        ),
        "{shown}"
    );
}

/// Of k-nomial trees it has one k, and what it does not cut stays whole.
#[test]
fn what_the_library_would_do_otherwise_is_left_to_it() {
    let way = |collective: &str, name: &str| {
        let rule = format!("version = 1\n[[rule]]\ncollective = \"{collective}\"\nuse = \"{name}\"\n");
        let table = Table::parse(&rule, "t").unwrap();
        let (rules, lacking) =
            of_table(&table, Library::OpenMpi, CommunicatorShape::new(16, 16, None).unwrap());
        let way = rules.of_ranks(16).next().map(|(_, rules)| rules[0].way.to_string());
        way.ok_or_else(|| lacking.concat())
    };
    assert_eq!(way("bcast", "k-nomial:k=4"), Ok("knomial, fan-out 4".to_owned()));
    assert_eq!(way("allreduce", "ring:segment=8KiB"), Ok("segmented_ring, segments of 8KiB".to_owned()));
    assert_eq!(way("allgather", "ring"), Ok("ring".to_owned()));
    assert_eq!(way("allgather", "bruck"), Ok("bruck, fan-out 2".to_owned()));
    for (collective, name) in
        [("bcast", "k-nomial:k=8"), ("bcast", "flat:segment=8KiB"), ("allgather", "ring:segment=8KiB")]
    {
        let expected = format!("{collective} from 0: the library has no {name}, and decides itself");
        assert_eq!(way(collective, name), Err(expected));
    }
}

/// MPICH has few of ours, and some of these for powers of two only.
#[test]
fn mpich_has_its_own_names() {
    let text = "version = 1\n[[rule]]\ncollective = \"bcast\"\nbytes = \"64KiB..\"\nuse = \"scatter-ring\"\n\
        [[rule]]\ncollective = \"allreduce\"\nuse = \"ring:segment=4KiB\"\n";
    let table = Table::parse(text, "t").unwrap();
    let shape = CommunicatorShape::new(6, 6, None).unwrap();
    let (rules, lacking) = of_table(&table, Library::Mpich, shape);
    assert_eq!(lacking, ["allreduce from 0: the library has no ring:segment=4KiB, and decides itself"]);
    let of: Vec<_> = rules.of_ranks(6).collect();
    assert_eq!(of.len(), 1);
    assert_eq!(
        (of[0].0, of[0].1.len(), of[0].1[1].way.name),
        (Collective::Broadcast, 2, "scatter_ring_allgather")
    );
    let count = |ranks| Library::Mpich.ways(Collective::Broadcast, 1 << 20, ranks).len();
    assert_eq!((count(8), count(6)), (4, 3));
    let set = Library::Mpich.variables(of[0].1[1].way, Collective::Broadcast);
    assert_eq!(set, [("MPIR_CVAR_BCAST_INTRA_ALGORITHM".to_owned(), "scatter_ring_allgather".to_owned())]);
}

#[test]
fn variables_force_a_way() {
    let chain = Way::new(Collective::Broadcast, 2, 4, 8192).unwrap();
    let set = chain.variables(Collective::Broadcast);
    let said: Vec<String> = set.iter().map(|(name, value)| format!("{}={value}", &name[20..])).collect();
    assert_eq!(
        said,
        [
            "use_dynamic_rules=1",
            "bcast_algorithm=2",
            "bcast_algorithm_segmentsize=8192",
            "bcast_algorithm_chain_fanout=4"
        ]
    );
    assert!(Way::STOCK.variables(Collective::Broadcast).is_empty());
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let rule = (0u64..1 << 30, 0u32..4, 0u32..9, 0u64..1 << 20);
    let of = prop::collection::vec(rule, 0..6);
    prop::collection::vec((prop::sample::select(&Collective::ALL[..]), of), 0..8).prop_map(|all| {
        let mut of: Vec<(Collective, Vec<Rule>)> = Vec::new();
        for (collective, mut rules) in all {
            rules.sort_unstable();
            rules.dedup_by_key(|rule| rule.0);
            let rule = |(bytes, algorithm, fan, segment)| {
                let way = Way::new(collective, algorithm, fan, segment).unwrap();
                Rule { bytes, way, because: None }
            };
            if of.iter().all(|(known, _)| *known != collective) {
                of.push((collective, rules.into_iter().map(rule).collect()));
            }
        }
        Rules::for_ranks(16, of)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(rules in any_rules()) {
        for format in [RulesFormat::Openmpi, RulesFormat::OpenmpiJson] {
            let text = rules.write(format, &[]).unwrap();
            prop_assert_eq!(Rules::parse(&text, format).map_err(|error| format!("{error}\n{text}")), Ok(rules.clone()));
        }
    }

    #[test]
    fn nothing_panics_whatever_is_read(text in "[-0-9#\\n {}\":a-z_,\\[\\]]{0,200}", at in 0usize..400, byte in any::<u8>()) {
        for format in [RulesFormat::Openmpi, RulesFormat::OpenmpiJson] {
            let _ = Rules::parse(&text, format);
            for known in [CLASSIC, JSON] {
                let mut bytes = known.as_bytes().to_vec();
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
                let _ = Rules::parse(&String::from_utf8_lossy(&bytes), format);
            }
        }
    }
}
