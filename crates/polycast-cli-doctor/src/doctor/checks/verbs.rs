//! InfiniBand and RoCE: can jobs multicast over them, and if not, why not?

use nix::sys::resource::{Resource, getrlimit};
use polycast_core::variables::MULTICAST;
use polycast_net::verbs::{self, Verbs, VerbsError, VerbsPort};
use polycast_net::{Group, Interface, Range};

use crate::doctor::finding::{Finding, Topic};
use crate::install::Installation;

/// The size of the ring of datagrams that a member of a group asks for.
const RING_BYTES: usize = 4 << 20;
/// The ring of as many datagrams, with what stands before each.
const LOCKED_BYTES: u64 = 5 << 20;

/// The findings about the host's InfiniBand and RoCE devices. Empty if there is no device and
/// `wanted`, the value of a setting, does not ask for one.
pub fn check(interfaces: &[Interface], wanted: Option<&str>) -> Vec<Finding> {
    let devices = verbs::devices();
    let is_wanted = wanted.is_some_and(|value| value.eq_ignore_ascii_case("verbs"));
    if devices.is_empty() && !is_wanted {
        return vec![];
    }
    let object = Installation::find().map_err(|error| VerbsError::Object(error.to_string()));
    let ports = object.and_then(|found| Verbs::open(found.library_directory())).map(|verbs| {
        let of = |interface: &Interface| (interface.name.clone(), try_port(verbs, interface));
        interfaces.iter().filter(|interface| !interface.is_loopback || is_wanted).map(of).collect()
    });
    let locked = getrlimit(Resource::RLIMIT_MEMLOCK).map_or(u64::MAX, |(soft, _)| soft);
    findings(&devices, ports, locked)
}

type Tried = (String, Result<VerbsPort, VerbsError>);

/// Asks for the port of an interface, and joins a group through it for a moment.
fn try_port(verbs: Verbs, interface: &Interface) -> Result<VerbsPort, VerbsError> {
    let port = verbs.port(interface)?;
    if let Some(family) = port.family(interface).filter(|_| port.is_active) {
        let range = match family {
            polycast_net::Family::V6 => Range::InfiniBand,
            polycast_net::Family::V4 => Range::OrganisationV4,
        };
        let mut next = || getrandom::u64().unwrap_or(1);
        verbs.join(interface, Group::random_in(range, &mut next), RING_BYTES)?;
    }
    Ok(port)
}

fn findings(devices: &[String], ports: Result<Vec<Tried>, VerbsError>, locked: u64) -> Vec<Finding> {
    let without = "jobs use IP multicast instead";
    let ports = match ports {
        Ok(ports) => ports,
        Err(error) => return vec![warning(&error, &format!("{}; {without}", listed(devices)))],
    };
    let mut findings = Vec::new();
    for (interface, tried) in &ports {
        match tried {
            Err(error) if error.is_no_device() => {}
            Err(error) => findings.push(warning(error, &format!("{interface}: {without}"))),
            Ok(port) => findings.push(of_port(interface, port)),
        }
    }
    if findings.is_empty() {
        let found =
            format!("{}: no interface has an address that belongs to one; {without}", listed(devices));
        let remedy =
            "give the port an address: IPoIB over InfiniBand, or that of the RoCE card; see `rdma link`";
        findings.push(Finding::warning(Topic::Verbs, found, remedy));
    }
    if locked < LOCKED_BYTES {
        let found = format!("a process may lock {} KiB of memory, a group takes 5 MiB", locked >> 10);
        findings.push(Finding::warning(
            Topic::Verbs,
            found,
            "ulimit -l unlimited (memlock in /etc/security/limits.conf, LimitMEMLOCK= of slurmd); rings are smaller until then",
        ));
    }
    findings
}

fn listed(devices: &[String]) -> String {
    if devices.is_empty() { "no device".to_owned() } else { format!("device {}", devices.join(", ")) }
}

fn warning(error: &VerbsError, about: &str) -> Finding {
    let finding = Finding::of_error(Topic::Verbs, error);
    let remedy = finding.remedy.unwrap_or_default();
    Finding::warning(Topic::Verbs, format!("{about}: {}", finding.found), remedy)
}

fn of_port(interface: &str, port: &VerbsPort) -> Finding {
    let VerbsPort { device, port: number, most_datagram_bytes, bits_per_second, .. } = port;
    let kind = if port.is_ethernet { "RoCE" } else { "InfiniBand" };
    let rate =
        bits_per_second.map_or("unknown rate".to_owned(), |rate| format!("{} Gb/s", rate / 1_000_000_000));
    let what = format!(
        "{interface}: {kind}, {device} port {number}, {rate}, datagrams of {most_datagram_bytes} bytes"
    );
    if !port.is_active {
        let remedy = "see `ibv_devinfo`: PORT_ACTIVE needs a link, and over InfiniBand a subnet manager";
        return Finding::warning(Topic::Verbs, format!("{what}: the port is not active"), remedy);
    }
    if port.is_limited() {
        let found = format!(
            "{what}: a limited member of its partition ({:#06x}), which hears full members only",
            port.partition
        );
        return Finding::warning(Topic::Verbs, found, "let the subnet manager make all nodes full members");
    }
    let found = format!("{what}: joined a group. Nobody has reported a run on such hardware yet");
    Finding::note(Topic::Verbs, found)
        .with_remedy(format!("tell how it went (docs/verbs.md), or {MULTICAST}=ipv4 to do without"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    fn port() -> VerbsPort {
        VerbsPort {
            device: "mlx5_0".to_owned(),
            port: 1,
            most_datagram_bytes: 4096,
            bits_per_second: Some(100_000_000_000),
            is_ethernet: false,
            is_active: true,
            partition: 0xffff,
        }
    }

    fn said(tried: Vec<Tried>, locked: u64) -> Vec<Finding> {
        findings(&["mlx5_0".to_owned()], Ok(tried), locked)
    }

    fn failed(errno: i32) -> Result<VerbsPort, VerbsError> {
        Err(VerbsError::Call { step: "rdma_bind_addr".to_owned(), errno })
    }

    #[test]
    fn a_port_that_can_be_used_is_told_with_what_nobody_knows_yet() {
        let found = said(vec![("eth0".to_owned(), failed(19)), ("ib0".to_owned(), Ok(port()))], u64::MAX);
        assert_eq!((found.len(), found[0].level), (1, Level::Note));
        assert!(found[0].found.contains("ib0: InfiniBand, mlx5_0 port 1, 100 Gb/s"), "{found:?}");
        assert!(found[0].found.contains("Nobody has reported"), "{found:?}");
    }

    #[test]
    fn what_hinders_is_named_with_its_remedy() {
        let down = VerbsPort { is_active: false, ..port() };
        let limited = VerbsPort { partition: 0x7fff, ..port() };
        for (tried, locked, found, remedy) in [
            (Ok(down), u64::MAX, "not active", "subnet manager"),
            (Ok(limited), u64::MAX, "0x7fff", "full members"),
            (failed(13), u64::MAX, "rdma_bind_addr", "/dev/infiniband/rdma_cm"),
            (failed(12), u64::MAX, "rdma_bind_addr", "memlock"),
            (failed(19), u64::MAX, "no interface has an address", "rdma link"),
            (failed(19), 65536, "lock 64 KiB", "ulimit -l"),
        ] {
            let all = said(vec![("ib0".to_owned(), tried)], locked);
            let last = all.last().unwrap();
            assert_eq!(last.level, Level::Warning, "{all:?}");
            assert!(last.found.contains(found), "{all:?}");
            assert!(last.remedy.as_ref().unwrap().contains(remedy), "{all:?}");
        }
        let error = VerbsError::Object("libibverbs.so.1: cannot open".to_owned());
        let all = findings(&["mlx5_0".to_owned()], Err(error), u64::MAX);
        assert!(
            all[0].found.contains("libibverbs.so.1") && all[0].remedy.as_ref().unwrap().contains("rdma-core")
        );
    }
}
