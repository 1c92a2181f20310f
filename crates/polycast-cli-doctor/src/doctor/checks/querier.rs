//! The check for a querier: somebody must ask who is a member of which group.
//!
//! ```text
//!   querier ── "who is a member?" every 125 s ──▶ hosts answer ──▶ snooping switches hear it and keep their tables
//!   nobody asks  ──▶  nobody answers  ──▶  260 s after joining, a switch forgets the member and sends it nothing more
//! ```
//!
//! For IPv6 the kernel counts queries. For IPv4 it does not: they must be heard as they come, on a raw socket.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use nix::sys::socket::{setsockopt, sockopt::BindToDevice};
use polycast_net::Family;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, recv, socket_with};

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

/// The default of RFC 3376 (8.2) and RFC 3810 (9.2). Somebody who listens as long and an answer's time has heard one.
const QUERY_INTERVAL_SECONDS: u64 = 125;
const ANSWER_SECONDS: u64 = 10;

/// The advice where no querier is heard, with the name that a switch vendor gives to the cure.
const REMEDY: &str = "ask the network's administrator to enable the IGMP/MLD snooping querier in this VLAN (Cisco: ip igmp snooping \
                      querier), or to disable snooping; on a Linux bridge: ip link set dev BRIDGE type bridge mcast_querier 1";

/// Listens for queries on one interface.
pub struct QuerierWatch {
    interface: String,
    family: Family,
    began: Instant,
    /// The raw socket, where the process may have one.
    ear: Option<OwnedFd>,
    heard: Option<Query>,
}

/// A query for members of IPv4 groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Query {
    from: Ipv4Addr,
    version: u8,
}

impl QuerierWatch {
    /// Begins to listen.
    pub fn begin(interface: &str, family: Family) -> QuerierWatch {
        let ear = Some(family).filter(|family| *family == Family::V4).and_then(|_| open_ear(interface));
        QuerierWatch { interface: interface.to_owned(), family, began: Instant::now(), ear, heard: None }
    }

    /// Becomes readable when there is something for [`QuerierWatch::listen`].
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.ear.as_ref().map(AsFd::as_fd)
    }

    /// Takes what has arrived.
    pub fn listen(&mut self) {
        let mut packet = [0; 2048];
        while let Some(Ok((length, _))) =
            self.ear.as_ref().map(|ear| recv(ear, &mut packet[..], RecvFlags::DONTWAIT))
        {
            self.heard = parse_query(&packet[..length]).or(self.heard);
        }
    }

    /// The findings so far.
    pub fn findings(&self, system: &System) -> Vec<Finding> {
        let seconds = self.began.elapsed().as_secs();
        vec![match self.family {
            Family::V4 => {
                let version =
                    igmp_version(&system.read("/proc/net/igmp").unwrap_or_default(), &self.interface);
                self.igmp(seconds, version.filter(|_| !is_version_forced(system, &self.interface)))
            }
            Family::V6 => {
                let file = format!("/proc/net/dev_snmp6/{}", self.interface);
                mld(&system.read(&file).unwrap_or_default())
            }
        }]
    }

    fn igmp(&self, seconds: u64, version: Option<u8>) -> Finding {
        match (self.heard, version) {
            (Some(query), _) => {
                Finding::ok(Topic::Querier, format!("{} asks for members (IGMPv{})", query.from, query.version))
            }
            // The kernel speaks an old version for some minutes after it was asked in it, else the newest.
            (None, Some(version @ 1..=2)) => Finding::ok(
                Topic::Querier,
                format!("somebody asked for members (IGMPv{version}) within the last minutes"),
            ),
            (None, _) if self.ear.is_none() => Finding::note(
                Topic::Querier,
                "unknown: to hear whether a querier asks for members takes the right to open a raw socket. Without a querier, \
                 switches that snoop forget the members of a group after 260 s",
            )
            .with_remedy("sudo polycast doctor --watch 135; or, without rights, --watch 300: loss that begins after 260 s tells"),
            (None, _) if seconds < QUERY_INTERVAL_SECONDS + ANSWER_SECONDS => Finding::note(
                Topic::Querier,
                "no query for members was heard in the time of the probe; queriers ask every 125 s. Without one, switches that \
                 snoop forget the members of a group after 260 s",
            )
            .with_remedy("polycast doctor --watch 135 listens long enough"),
            (None, _) => Finding::warning(
                Topic::Querier,
                format!(
                    "nobody asked for members in {} s: there is no querier. Switches that snoop forget the members of a group \
                     260 s after they joined, and multicast stops in the middle of a job",
                    QUERY_INTERVAL_SECONDS + ANSWER_SECONDS
                ),
                REMEDY,
            ),
        }
    }
}

/// A raw socket that hears IGMP on the interface; `None` without CAP_NET_RAW.
fn open_ear(interface: &str) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let ear = socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::IGMP)).ok()?;
    setsockopt(&ear, BindToDevice, &interface.into()).ok()?;
    Some(ear)
}

/// Reads an IPv4 packet that holds an IGMP query (RFC 3376, 4.1 and 7.1); `None` for anything else.
fn parse_query(packet: &[u8]) -> Option<Query> {
    const MEMBERSHIP_QUERY: u8 = 0x11;
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let message = packet.get(header_bytes..)?;
    if *message.first()? != MEMBERSHIP_QUERY {
        return None;
    }
    let version = match (message.len(), message.get(1)?) {
        (12.., _) => 3,
        (8.., 0) => 1,
        (8.., _) => 2,
        _ => return None,
    };
    Some(Query { from: from.into(), version })
}

/// The version that the kernel speaks on an interface, in the words of /proc/net/igmp.
fn igmp_version(table: &str, interface: &str) -> Option<u8> {
    table.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let _index = columns.next()?;
        let name = columns.next()?;
        let version = columns.find_map(|column| column.strip_prefix('V'))?;
        if name == interface { version.parse().ok() } else { None }
    })
}

/// Whether the kernel speaks an old version whoever asked.
fn is_version_forced(system: &System, interface: &str) -> bool {
    ["all", interface].into_iter().any(|name| {
        let file = format!("/proc/sys/net/ipv4/conf/{name}/force_igmp_version");
        matches!(system.number(&file), Some(1 | 2))
    })
}

fn mld(counters: &str) -> Finding {
    let count = counters.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        (columns.next() == Some("Icmp6InGroupMembQueries")).then(|| columns.next()?.parse::<u64>().ok())?
    });
    match count {
        Some(0) => Finding::note(
            Topic::Querier,
            "nobody has asked for members of IPv6 groups (MLD) since the interface is there. Switches that snoop forget the \
             members of a group after 260 s without",
        )
        .with_remedy(REMEDY),
        Some(_) => Finding::ok(Topic::Querier, "somebody asks for members (MLD)"),
        None => Finding::note(Topic::Querier, "unknown: the kernel does not count MLD queries for the interface"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Level;

    /// An IPv4 header with the router alert option, as queries have it, and a message.
    fn packet(message: &[u8]) -> Vec<u8> {
        let mut packet =
            vec![0x46, 0xc0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 9, 224, 0, 0, 1, 0x94, 4, 0, 0];
        packet.extend(message);
        packet
    }

    #[test]
    fn queries_of_all_versions_are_read_and_nothing_else() {
        let version = |message: &[u8]| parse_query(&packet(message)).map(|query| query.version);
        assert_eq!(version(&[0x11, 0, 0, 0, 0, 0, 0, 0]), Some(1));
        assert_eq!(version(&[0x11, 100, 0, 0, 0, 0, 0, 0]), Some(2));
        assert_eq!(version(&[0x11, 100, 0, 0, 0, 0, 0, 0, 2, 125, 0, 0]), Some(3));
        assert_eq!(
            parse_query(&packet(&[0x11, 1, 0, 0, 0, 0, 0, 0])).unwrap().from,
            Ipv4Addr::new(10, 0, 0, 9)
        );
        assert_eq!(version(&[0x22, 0, 0, 0, 0, 0, 0, 1]), None);
        let whole = packet(&[0x11, 100, 0, 0, 0, 0, 0, 0]);
        for length in 0..whole.len() {
            assert_eq!(parse_query(&whole[..length]), None, "{length}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_packet_is_a_query_or_not(packet: Vec<u8>) {
            if let Some(query) = parse_query(&packet) {
                assert!((1..=3).contains(&query.version));
            }
        }
    }

    #[test]
    fn an_old_version_proves_a_querier() {
        let table = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                     1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                     4\teth0      :     2      V2\n\t\t\t\t010000E0     1 0:00000000\t\t0\n";
        assert_eq!((igmp_version(table, "eth0"), igmp_version(table, "lo")), (Some(2), Some(3)));
        assert_eq!(igmp_version(table, "eth1"), None);
    }

    #[test]
    fn a_version_that_the_system_is_set_to_proves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let system = System::below(root.path());
        for (name, version) in [("all", "0"), ("eth0", "2")] {
            let folder = root.path().join("proc/sys/net/ipv4/conf").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("force_igmp_version"), version).unwrap();
        }
        assert!(is_version_forced(&system, "eth0") && !is_version_forced(&system, "eth1"));
    }

    #[test]
    fn silence_is_a_warning_only_when_it_lasted() {
        let (ear, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut watch = QuerierWatch::begin("nothing0", Family::V6);
        assert_eq!(watch.igmp(200, Some(3)).level, Level::Note, "without an ear silence says nothing");
        watch.ear = Some(ear.into());
        assert_eq!(watch.igmp(134, Some(3)).level, Level::Note);
        assert_eq!(watch.igmp(135, Some(3)).level, Level::Warning);
        assert_eq!(watch.igmp(135, Some(2)).level, Level::Ok);
        watch.heard = Some(Query { from: Ipv4Addr::LOCALHOST, version: 3 });
        assert_eq!(watch.igmp(1, Some(3)).level, Level::Ok);
    }

    #[test]
    fn the_kernel_counts_queries_for_ipv6() {
        let level =
            |count: &str| mld(&format!("ifIndex 4\nIcmp6InGroupMembQueries         \t{count}\n")).level;
        assert_eq!((level("0"), level("3")), (Level::Note, Level::Ok));
        assert_eq!(mld("").level, Level::Note);
    }
}
