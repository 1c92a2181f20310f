use std::io::Write;

use super::*;

const TWO_SWITCHES: &str = "SwitchName=l0 Nodes=a,b\nSwitchName=l1 Nodes=c\nSwitchName=top Switches=l0,l1\n";
const PARAMETERS_TEXT: &str = r#"{"format":"polycast-parameters","version":1,"measured":{"when":"","where":"","how":""},
"classes":{"same-switch":{"latency":[{"bytes":1,"ns":5,"low":5,"high":5,"samples":1}],
"gap":[{"bytes":1,"ns":5,"low":5,"high":5,"samples":1}]}}}"#;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn read(names: [Option<&str>; 5]) -> Current {
    let [broadcast, table, topology, parameters, trials] = names.map(|name| name.map(str::to_owned));
    let mut forced = [const { None }; FORCED.len()];
    forced[0] = broadcast;
    let [sums, tune] = [const { None }; 2];
    Settings::read(Names { forced, table, topology, parameters, sums, trials, tune })
}

#[test]
fn what_rank_0_sends_is_what_the_others_get() {
    let (table, topology, parameters) = (file("version = 1\n"), file(TWO_SWITCHES), file(PARAMETERS_TEXT));
    let [table, topology, parameters] = [&table, &topology, &parameters].map(|file| file.path().to_str());
    for names in [
        [None; 5],
        [None, table, topology, parameters, Some("on")],
        [Some("stock"), None, Some("off"), None, None],
        [Some("chain:segment=8KiB"), table, None, parameters, None],
    ] {
        let current = read(names);
        assert_eq!(current.problem, None);
        let bytes = current.settings.to_bytes();
        assert_eq!(Settings::from_bytes(&bytes).as_ref(), Some(&*current.settings));
        for cut in 0..bytes.len().min(200) {
            assert_eq!(Settings::from_bytes(&bytes[..cut]), None, "cut at {cut}");
        }
    }
}

#[test]
fn each_collective_has_a_variable() {
    let forced = [
        "stock",
        "binomial",
        "binomial",
        "bruck",
        "pairwise",
        "dissemination",
        "stock",
        "recursive-doubling",
    ];
    let current =
        Settings::read(Names { forced: forced.map(|text| Some(text.to_owned())), ..Names::default() });
    assert_eq!(current.problem, None);
    let read = current.settings.rules.forced.iter().map(|(of, choice)| (*of, choice.to_string()));
    assert!(read.eq(Collective::ALL.into_iter().zip(forced.map(str::to_owned))));
    assert_eq!(Settings::from_bytes(&current.settings.to_bytes()).as_ref(), Some(&*current.settings));

    let mut forced = [const { None }; FORCED.len()];
    forced[7] = Some("bruck".to_owned());
    let problem = Settings::read(Names { forced, ..Names::default() }).problem.unwrap();
    assert!(
        problem.contains("POLYCAST_ALLREDUCE=bruck: ") && problem.contains("recursive-doubling"),
        "{problem}"
    );
}

#[test]
fn what_is_said_of_sums_counts_before_the_table() {
    let table = file("version = 1\nsums = \"mpi\"\n");
    let table = table.path().to_str().map(str::to_owned);
    let read = |sums: Option<&str>, table: &Option<String>| {
        let (sums, table) = (sums.map(str::to_owned), table.clone());
        Settings::read(Names { sums, table, ..Names::default() })
    };
    for (said, table, expected) in [
        (None, &None, ServedSums::Auto),
        (Some("Canonical"), &None, ServedSums::Canonical),
        (None, &table, ServedSums::Mpi),
        (Some("auto"), &table, ServedSums::Auto),
        (Some("of course"), &table, ServedSums::Mpi),
    ] {
        let Current { settings, problem, .. } = read(said, table);
        assert_eq!((settings.rules(None).sums(), problem), (expected, None), "{said:?}");
        assert_eq!(Settings::from_bytes(&settings.to_bytes()).as_ref(), Some(&*settings));
    }
    assert_ne!(read(Some("auto"), &table).digest, read(None, &table).digest);
}

#[test]
fn settings_that_differ_have_other_digests() {
    let (one, other) = (file(TWO_SWITCHES), file(&TWO_SWITCHES.replace("a,b", "b,a")));
    let topologies = [None, Some("off"), one.path().to_str(), other.path().to_str()];
    let mut digests = topologies.map(|topology| read([None, None, topology, None, None]).digest).to_vec();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), topologies.len());
}

#[test]
fn what_is_wrong_is_said_in_one_line_and_the_default_counts() {
    let (broken, cut) = (file("SwitchName=l0 Nodes=a[\nSwitchName=\n"), file("{"));
    let current = read([Some("chian"), None, broken.path().to_str(), cut.path().to_str(), None]);
    assert_eq!(
        *current.settings,
        Settings { network: NetworkSetting::Flat, trials: true, ..Settings::default() }
    );
    let problem = current.problem.unwrap();
    for words in [
        "POLYCAST_BCAST=chian",
        "the table chooses",
        "POLYCAST_TOPOLOGY: ",
        ":1: ",
        "1 more",
        "taken for one switch",
        "POLYCAST_PARAMS: ",
        "tables choose",
    ] {
        assert!(problem.contains(words), "{words}: {problem}");
    }
    assert!(!problem.contains('\n'));

    let missing =
        read([None, Some("/no/t.toml"), Some("/no/t.conf"), Some("/no/p.json"), None]).problem.unwrap();
    for words in ["POLYCAST_TABLE=/no/t.toml", "POLYCAST_TOPOLOGY=/no/t.conf", "POLYCAST_PARAMS=/no/p.json"] {
        assert!(missing.contains(words), "{words}: {missing}");
    }
}

#[test]
fn a_graph_that_is_no_tree_is_made_one() {
    let irregular = file(&format!("{TWO_SWITCHES}SwitchName=spine Switches=l0,l1\n"));
    let current = read([None, None, irregular.path().to_str(), None, None]);
    assert_eq!(current.problem, None);
    let NetworkSetting::Known(known) = &current.settings.network else { panic!("{current:?}") };
    assert_eq!(known.content.hosts.len(), 3);
}
