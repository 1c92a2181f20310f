//! Hosts with more than one network, as they are with Docker and libvirt, clouds and VPNs: multicast goes where the MPI goes, or is given up with one line that
//! says why. After open-mpi/ompi#6377, #12508, #1585 and conda-forge/openmpi-feedstock#165.

use crate::cluster::Labs;
use crate::common::job::Output;
use crate::common::mpi::Mpi;
use crate::job::{LAB, LabJob, expect_multicast, expect_trees, lab, warnings};

const HOSTS: usize = 4;
const FORM: &str = "multicast-pull";

fn on_all(labs: &Labs, script: &str) {
    (0..HOSTS).for_each(|host| drop(labs.exec(LAB, &format!("h{host}"), script)));
}

fn under(mpi: Mpi, labs: &Labs) -> Output {
    LabJob::stock(labs, mpi, HOSTS, "bcast_roots").forced(FORM).expect_ok()
}

fn expect_multicast_beside(labs: &Labs, mpis: &[Mpi], what: &str) {
    for mpi in mpis.iter().copied() {
        let output = under(mpi, labs);
        if !warnings(&output).is_empty() {
            output.fail(&format!("{what}: nothing is to be warned of"));
        }
        expect_multicast(&output, FORM);
    }
}

/// One after the other in one lab: bridges of the same name and address on all hosts, which the routes of multicast and at last all routes lead to.
#[test]
fn multicast_goes_where_the_mpi_goes() {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    let bridge = |name: &str, address: &str| {
        format!(
            "ip link add {name} type bridge; ip link add p{name} type veth peer name q{name}; \
             ip link set p{name} master {name} up; ip link set q{name} up; ip addr add {address} dev {name}; \
             ip link set {name} up"
        )
    };
    let bridges = [bridge("docker0", "172.17.0.1/16"), bridge("virbr0", "192.168.122.1/24")].join("; ");
    for (what, script) in [
        ("the same bridges everywhere", &*bridges),
        ("the route of multicast leads into one of them", "ip route replace 224.0.0.0/4 dev docker0"),
        ("all routes do", "ip route del 224.0.0.0/4; ip route replace default dev docker0"),
    ] {
        on_all(&labs, script);
        expect_multicast_beside(&labs, &[Mpi::OpenMpi, Mpi::Mpich], what);
    }
    // Two addresses on one interface: Open MPI 4 takes each other's connections for a stranger's then, and hangs by itself.
    let two =
        "ip link del docker0; ip link del virbr0; ip addr add 10.99.0.1$(hostname | tr -dc 0-9)/24 dev e0";
    on_all(&labs, two);
    expect_multicast_beside(&labs, &[Mpi::Mpich], "two addresses");
    labs.succeeds(&["down", "--all"]);
}

/// What TCP gets through by itself: smaller packets on one host, and a firewall that drops all datagrams, as clouds have it.
#[test]
fn what_multicast_cannot_pass_is_gone_around() {
    let Some(labs) = lab(HOSTS, &[]) else { return };
    labs.exec(LAB, "h2", "ip link set e0 mtu 1400");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let output = under(mpi, &labs);
        if warnings(&output).len() > 1 {
            output.fail("expected one warning at most");
        }
    }
    labs.exec(LAB, "h2", "ip link set e0 mtu 1500");
    on_all(
        &labs,
        "nft 'table inet f { chain i { type filter hook input priority 0; udp dport 1024-65535 drop; }; }'",
    );
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let output = under(mpi, &labs);
        expect_trees(&output);
        if warnings(&output).len() != 1 {
            output.fail("expected a line that says why");
        }
    }
    labs.succeeds(&["down", "--all"]);
}
