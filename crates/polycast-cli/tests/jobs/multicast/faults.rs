//! Networks that lose datagrams, ranks that come late, jobs beside each other.

use std::thread;

use crate::cluster::Labs;
use crate::common::job::alone;
use crate::common::mpi::Mpi;
use crate::job::{FORMS, LAB, LabJob, expect_multicast, lab};

/// Drops this share of the datagrams with fragments that reach a host; TCP stays whole, as do the probes before the first
/// broadcast, so that what is lost is known to be multicast's data. The second byte behind the UDP header is the kind.
/// A row of datagrams that came as one is dropped as one: losses come in bursts.
fn lose_data(labs: &Labs, hosts: usize, percent: u32) {
    let rule = format!("meta l4proto udp @th,72,8 1-3 numgen random mod 100 < {percent} drop");
    let script = format!("nft 'table ip t {{ chain c {{ type filter hook input priority 0; {rule}; }}; }}'");
    for host in 0..hosts {
        labs.exec(LAB, &format!("h{host}"), &script);
    }
}

/// All packets, those of TCP and of probes among them.
#[test]
fn lost_datagrams_are_repaired() {
    let Some(labs) = lab(4, &["--loss", "1%"]) else { return };
    for form in FORMS {
        let job = LabJob::stock(&labs, Mpi::OpenMpi, 4, "bcast_stress").arguments(&["200"]);
        let output = job.forced(form).expect_ok();
        let report = expect_multicast(&output, form);
        if report.multicast("repaired") == 0 {
            output.fail(&format!("nothing was repaired: {report:?}"));
        }
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn bursts_of_lost_datagrams_are_repaired() {
    let Some(labs) = lab(4, &[]) else { return };
    lose_data(&labs, 4, 5);
    for (form, mpi, ranks_per_host) in [
        (FORMS[0], Mpi::OpenMpi, 1),
        (FORMS[1], Mpi::OpenMpi, 2),
        (FORMS[0], Mpi::Mpich, 1),
        (FORMS[1], Mpi::Mpich, 1),
    ] {
        let job =
            LabJob::stock(&labs, mpi, 4 * ranks_per_host, "bcast_stress").ranks_per_host(ranks_per_host);
        let output = job.arguments(&["250"]).forced(form).expect_ok();
        let report = expect_multicast(&output, form);
        if report.multicast("repaired") == 0 {
            output.fail(&format!("nothing was repaired: {report:?}"));
        }
    }
    labs.succeeds(&["down", "--all"]);
}

/// A row of ranks that come late; the first is the root of the broadcast, the second its successor. Only who owes a late rank
/// something waits for it: nobody if fragments were pushed, its predecessor if it asks for what it misses; and everybody for the
/// root. If another one did, the job would not end (see `bcast_late.c`).
fn late_ranks(mpi: Mpi) {
    let Some(labs) = lab(4, &[]) else { return };
    let job = |form, arguments: &[&str]| {
        LabJob::stock(&labs, mpi, 4, "bcast_late").arguments(arguments).forced(form).expect_ok()
    };
    for form in FORMS {
        let owes = form.strip_prefix("multicast-").expect("the name of a form");
        expect_multicast(&job(form, &["0.3", "4000", owes]), form);
    }
    lose_data(&labs, 4, 20);
    for (form, bytes) in FORMS.into_iter().zip(["4000", "300000"]) {
        let output = job(form, &["1", bytes]);
        let report = expect_multicast(&output, form);
        if report.multicast("repaired") == 0 {
            output.fail(&format!("nothing was repaired: {report:?}"));
        }
    }
    labs.succeeds(&["down", "--all"]);
}

#[test]
fn late_ranks_are_served_openmpi() {
    late_ranks(Mpi::OpenMpi);
}

#[test]
fn late_ranks_are_served_mpich() {
    late_ranks(Mpi::Mpich);
}

/// Two jobs with different data on the same hosts.
#[test]
fn jobs_do_not_hear_each_other() {
    let Some(labs) = lab(4, &[]) else { return };
    let _nothing_else = alone();
    let labs_ref = &labs;
    thread::scope(|scope| {
        let jobs = ["1", "2"].map(|seed| {
            scope.spawn(move || {
                let job = LabJob::stock(labs_ref, Mpi::OpenMpi, 4, "bcast_stress").arguments(&["250", seed]);
                job.forced(FORMS[0]).run_beside_others().expect_ok("bcast_stress")
            })
        });
        for job in jobs {
            let output = job.join().unwrap();
            let report = expect_multicast(&output, FORMS[0]);
            assert_eq!((report.multicast("foreign"), report.multicast("forged")), (0, 0), "{report:?}");
        }
    });
    labs.succeeds(&["down", "--all"]);
}
