//! Diagnoses of networks as they fail.

use super::diagnosis::{alone, diagnose, forgotten};
use super::matrix::{Matrix, all_but};
use super::tally::Heard;
use crate::doctor::finding::{Level, Topic};

fn names(hosts: usize) -> Vec<String> {
    (0..hosts).map(|host| format!("h{host}")).collect()
}

/// Level, hosts and words of every finding.
fn said(full: &Matrix, small: Option<&Matrix>) -> Vec<(Level, Vec<usize>, String)> {
    let findings = diagnose(&names(full.hosts()), full, small);
    findings.into_iter().map(|(hosts, finding)| (finding.level, hosts, finding.found)).collect()
}

#[test]
fn a_good_network() {
    let said = said(&all_but(3, &[]), None);
    assert_eq!(said, [(Level::Ok, vec![], "all datagrams arrive between 6 of 6 pairs".to_owned())]);
}

#[test]
fn a_host_that_hears_nobody_or_that_nobody_hears() {
    let deaf = said(&all_but(3, &[(0, 2), (1, 2)]), None);
    assert_eq!((deaf[0].0, &deaf[0].1), (Level::Problem, &vec![2]));
    assert!(deaf[0].2.starts_with("hears nobody"), "{deaf:?}");
    assert_eq!(deaf[1].2, "all datagrams arrive between 4 of 6 pairs; of 2 pairs nothing");
    let mute = said(&all_but(3, &[(1, 0), (1, 2)]), None);
    assert!(mute[0].1 == [1] && mute[0].2.starts_with("is heard by nobody"), "{mute:?}");
    let cut_off = said(&all_but(3, &[(1, 0), (1, 2), (0, 1), (2, 1)]), None);
    assert!(cut_off[0].1 == [1] && cut_off[0].2.starts_with("neither"), "{cut_off:?}");
    assert_eq!(cut_off.iter().filter(|finding| finding.0 == Level::Problem).count(), 1);
}

#[test]
fn a_network_without_multicast() {
    let all: Vec<(usize, usize)> = all_but(3, &[]).pairs().collect();
    let said = said(&all_but(3, &all), None);
    assert_eq!((said.len(), said[0].0, &said[0].1), (1, Level::Problem, &vec![0, 1, 2]));
    assert!(said[0].2.contains("does not carry multicast"));
}

#[test]
fn a_router_between_two_parts() {
    let border: Vec<(usize, usize)> =
        all_but(5, &[]).pairs().filter(|&(from, to)| (from < 2) != (to < 2)).collect();
    let said = said(&all_but(5, &border), None);
    assert_eq!(said[0].2, "no datagram passes between h0, h1 | h2, h3, h4");
}

#[test]
fn single_pairs_are_named() {
    let said = said(&all_but(4, &[(0, 3)]), None);
    assert_eq!((said[0].0, said[0].2.as_str()), (Level::Problem, "nothing arrives from h0 to h3"));
}

#[test]
fn small_datagrams_that_pass_point_to_the_mtu() {
    let full = all_but(3, &[(0, 1), (0, 2)]);
    let findings = diagnose(&names(3), &full, Some(&all_but(3, &[])));
    assert_eq!((findings[0].1.topic, findings[0].1.level), (Topic::Mtu, Level::Problem));
    assert!(findings[0].1.found.contains("h0 to h1, h0 to h2"));
    assert!(findings.iter().all(|(_, finding)| finding.topic != Topic::Probe || finding.level == Level::Ok));
    let findings = diagnose(&names(3), &full, Some(&full));
    assert_eq!((findings[0].1.topic, findings[0].0.as_slice()), (Topic::Probe, &[0][..]));
}

#[test]
fn loss_is_judged_by_the_worst_pair() {
    let with_heard = |datagrams, duplicates, late| {
        let mut matrix = all_but(2, &[]);
        matrix.set_heard(1, &[Heard { sender: 0, datagrams, duplicates, late }]);
        said(&matrix, None)
    };
    assert_eq!(with_heard(99, 0, 0)[0].0, Level::Note);
    assert_eq!(with_heard(95, 0, 0)[0].0, Level::Warning);
    assert_eq!(with_heard(29, 0, 0)[0].0, Level::Warning);
    assert_eq!(with_heard(28, 0, 0)[0].0, Level::Problem);
    let untidy = with_heard(100, 2, 3);
    assert!(
        untidy[1].2.contains("2 datagrams arrived twice")
            && untidy[2].2.contains("3 datagrams were overtaken")
    );
}

#[test]
fn a_member_that_was_forgotten() {
    let (good, bad) = (all_but(3, &[]), all_but(3, &[(0, 2), (1, 2)]));
    assert!(forgotten(&names(3), &good, [&good, &bad], 10).is_none(), "one silent round may be loss");
    let (hosts, finding) = forgotten(&names(3), &good, [&bad, &bad], 262).unwrap();
    assert_eq!((hosts.as_slice(), finding.level), (&[2][..], Level::Problem));
    assert!(finding.found.contains("after 262 s"));
    assert!(forgotten(&names(3), &bad, [&bad, &bad], 10).is_none(), "it was silent from the start");
}

#[test]
fn a_host_that_could_not_send_is_not_taken_for_one_that_is_not_heard() {
    let mut matrix = all_but(3, &[(1, 0), (1, 2)]);
    matrix.set_sent(1, 0);
    assert!(said(&matrix, None).iter().all(|finding| finding.0 == Level::Ok));
}

#[test]
fn of_two_hosts_nobody_can_say_who_is_to_blame() {
    let said = said(&all_but(2, &[(0, 1)]), None);
    assert_eq!((said[0].0, &said[0].1), (Level::Problem, &vec![0, 1]));
    assert_eq!(said[0].2, "nothing arrives from h0 to h1, while the other way is open");
}

#[test]
fn a_host_alone_hears_itself_or_has_a_problem() {
    let levels = |datagrams, asked| -> Vec<Level> {
        let mut round = Matrix::new(1);
        round.set_sent(0, 10);
        round.set_heard(0, &[Heard { sender: 0, datagrams, ..Heard::default() }]);
        alone(&round, asked).iter().map(|finding| finding.level).collect()
    };
    assert_eq!(levels(10, 1), [Level::Ok, Level::Note]);
    assert_eq!(levels(10, 2), [Level::Ok, Level::Problem]);
    assert_eq!(levels(0, 1), [Level::Problem]);
}
