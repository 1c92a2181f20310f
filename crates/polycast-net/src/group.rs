use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;
use std::str::FromStr;

use crate::Family;

/// A range of UDP and TCP ports, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Default for Ports {
    /// Above those of well-known services, below those that the kernel hands out by itself (32768 on).
    fn default() -> Ports {
        Ports { first: 5_000, last: 32_767 }
    }
}

impl Ports {
    /// All ports of the range.
    pub fn all(self) -> std::ops::RangeInclusive<u16> {
        self.first..=self.last
    }

    /// A port of the range. `next` yields uniform random words.
    pub fn random(self, next: &mut impl FnMut() -> u64) -> u16 {
        self.first + (next() % self.all().len() as u64) as u16
    }
}

/// Reads `20000-20099`, or one port.
impl FromStr for Ports {
    type Err = String;

    fn from_str(text: &str) -> Result<Ports, String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port >= 1024);
        let ports = port(first).zip(port(last)).filter(|(first, last)| first <= last);
        let expected = || "expected ports from 1024 to 65535, such as 20000-20099".to_owned();
        ports.map(|(first, last)| Ports { first, last }).ok_or_else(expected)
    }
}

/// Time to live (IPv4) or hop limit (IPv6) of multicast datagrams: 1 stays on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hops(NonZeroU8);

impl Default for Hops {
    fn default() -> Hops {
        Hops(NonZeroU8::MIN)
    }
}

impl Hops {
    /// The number, as datagrams have it.
    pub fn get(self) -> u8 {
        self.0.get()
    }
}

/// Reads a number from 1 to 255.
impl FromStr for Hops {
    type Err = String;

    fn from_str(text: &str) -> Result<Hops, String> {
        text.parse().map(Hops).map_err(|_| "expected a number from 1 to 255".to_owned())
    }
}

/// A block of multicast addresses: those that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupBlock {
    /// The first and the last address as numbers; IPv4 has the low 32 bits.
    ends: (u128, u128),
    family: Family,
}

impl GroupBlock {
    /// The version of the Internet Protocol that the addresses are of.
    pub fn family(self) -> Family {
        self.family
    }
}

/// Reads `239.192.7.0/24` or `ff15:7::/112`.
impl FromStr for GroupBlock {
    type Err = String;

    fn from_str(text: &str) -> Result<GroupBlock, String> {
        let expected = || "expected a block of multicast addresses, such as 239.192.7.0/24".to_owned();
        let (address, bits) = text.split_once('/').ok_or_else(expected)?;
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let (number, width, family) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32, Family::V4),
            IpAddr::V6(address) => (u128::from(address), 128, Family::V6),
        };
        // Eight bits fewer and the block would reach beyond multicast.
        let least = if family == Family::V4 { 4 } else { 8 };
        let bits: u32 =
            bits.parse().ok().filter(|bits| (least..=width).contains(bits)).ok_or_else(expected)?;
        let rest = (1_u128 << (width - bits)) - 1;
        let ends = (number & !rest, number | rest);
        let is_flooded_whole = family == Family::V4
            && (ends.0..=ends.1).take(512).all(|number| is_flooded((number as u32).into()));
        if !address.is_multicast() || is_flooded_whole {
            return Err(expected());
        }
        Ok(GroupBlock { ends, family })
    }
}

/// A multicast group: where datagrams go to and are received from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// A multicast address.
    pub address: IpAddr,
    /// The UDP port, of senders and receivers alike.
    pub port: u16,
}

/// A range of addresses that a random group is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 239.192.0.0/14, the organisation's own (RFC 2365): routers at its border keep it inside.
    OrganisationV4,
    /// 225.0.1.0–231.255.255.255 and 234.0.1.0–238.255.255.255: what the two-stage papers used; for sites whose switches treat
    /// 239/8 apart.
    GlobalV4,
    /// ff12::/16, transient and of the link's scope, with a group identifier of the dynamic kind (RFC 3307: the high bit set).
    LinkV6,
    /// ff12::/16 with 14 random bytes, for InfiniBand: librdmacm keeps the last ten, beside its signature and the partition's key.
    InfiniBand,
    /// A block that the user or the site names.
    Block(GroupBlock),
}

impl Range {
    /// The range that a family starts with.
    pub fn of(family: Family) -> Range {
        match family {
            Family::V4 => Range::OrganisationV4,
            Family::V6 => Range::LinkV6,
        }
    }

    /// Returns the first and last addresses of the range's parts; none for IPv6.
    fn v4(self) -> Vec<(u32, u32)> {
        match self {
            Range::OrganisationV4 => vec![(0xEFC0_0000, 0xEFC3_FFFF)],
            Range::GlobalV4 => vec![(0xE100_0100, 0xE7FF_FFFF), (0xEA00_0100, 0xEEFF_FFFF)],
            Range::Block(GroupBlock { ends: (first, last), family: Family::V4 }) => {
                vec![(first as u32, last as u32)]
            }
            Range::LinkV6 | Range::InfiniBand | Range::Block(_) => Vec::new(),
        }
    }

    /// Returns how many groups can be drawn: addresses times ports.
    pub fn groups(self) -> u64 {
        let is_drawn = |block: &u32| !is_flooded(Ipv4Addr::from(*block));
        let v4 = self.v4().into_iter().flat_map(|(first, last)| (first..=last).step_by(256).filter(is_drawn));
        let addresses = match self {
            Range::LinkV6 => 1 << 31,
            // More than can be counted here: 80 bits.
            Range::InfiniBand => return u64::MAX,
            Range::Block(GroupBlock { ends: (first, last), .. }) if last - first < 256 => {
                (last - first) as u64 + 1
            }
            Range::Block(GroupBlock { ends: (first, last), family: Family::V6 }) => {
                u64::try_from(last - first).unwrap_or(u64::MAX).saturating_add(1)
            }
            Range::OrganisationV4 | Range::GlobalV4 | Range::Block(_) => 256 * v4.count() as u64,
        };
        addresses.saturating_mul(Ports::default().all().len() as u64)
    }
}

impl Group {
    /// A group from the range that a family starts with. `next` yields uniform random words: whoever asks owns the entropy.
    pub fn random(family: Family, next: &mut impl FnMut() -> u64) -> Group {
        Group::random_in(Range::of(family), next)
    }

    /// A group from this range.
    pub fn random_in(range: Range, next: &mut impl FnMut() -> u64) -> Group {
        Group::random_of(range, Ports::default(), next)
    }

    /// A group of this range's addresses and these ports.
    pub fn random_of(range: Range, ports: Ports, next: &mut impl FnMut() -> u64) -> Group {
        let address = match range {
            Range::Block(GroupBlock { ends: (first, last), family: Family::V6 }) => {
                let random = u128::from(next()) << 64 | u128::from(next());
                Ipv6Addr::from(first | random & (first ^ last)).into()
            }
            Range::OrganisationV4 | Range::GlobalV4 | Range::Block(_) => random_v4(&range.v4(), next).into(),
            Range::LinkV6 => {
                let id = 0x8000_0000 | next() as u32;
                Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, (id >> 16) as u16, id as u16).into()
            }
            Range::InfiniBand => {
                let random = u128::from(next()) << 64 | u128::from(next());
                let address = 0xff12 << 112 | random >> 16;
                // 0xa01b marks names that only a subnet manager gives.
                let is_marked = address >> 96 & 0xffff == 0xa01b;
                Ipv6Addr::from(address ^ u128::from(is_marked) << 96).into()
            }
        };
        Group { address, port: ports.random(next) }
    }

    /// The version of the Internet Protocol that the group is of.
    pub fn family(&self) -> Family {
        match self.address {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }
}

/// Draws an address uniformly from the ranges (inclusive), without those that share a MAC address
/// with 224.0.0.z.
fn random_v4(ranges: &[(u32, u32)], next: &mut impl FnMut() -> u64) -> Ipv4Addr {
    let size: u64 = ranges.iter().map(|(first, last)| u64::from(last - first) + 1).sum();
    loop {
        let mut offset = next() % size;
        for (first, last) in ranges {
            let length = u64::from(last - first) + 1;
            if offset < length {
                let address = Ipv4Addr::from(first + offset as u32);
                if !is_flooded(address) {
                    return address;
                }
                break;
            }
            offset -= length;
        }
    }
}

/// True if switches flood the address to every port: Ethernet sees the low 23 bits only, so x.0.0.z
/// and x.128.0.z look like 224.0.0.z.
fn is_flooded(address: Ipv4Addr) -> bool {
    u32::from(address) & 0x007f_ff00 == 0
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn random_groups_stay_in_their_range(mut state: u64) {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.rotate_left(29)
            };
            for range in [Range::OrganisationV4, Range::GlobalV4, Range::LinkV6] {
                let group = Group::random_in(range, &mut next);
                prop_assert!((5_000..=32_767).contains(&group.port));
                prop_assert!(group.address.is_multicast());
                match group.address {
                    IpAddr::V4(address) => {
                        let [a, b, c, _] = address.octets();
                        prop_assert!(b & 0x7f != 0 || c != 0, "{address} is flooded");
                        match range {
                            Range::OrganisationV4 => prop_assert!(a == 239 && (192..=195).contains(&b)),
                            _ => prop_assert!((225..=231).contains(&a) || (234..=238).contains(&a)),
                        }
                    }
                    IpAddr::V6(address) => {
                        let parts = address.segments();
                        prop_assert_eq!(&parts[..6], &[0xff12, 0, 0, 0, 0, 0]);
                        prop_assert!(parts[6] & 0x8000 != 0);
                    }
                }
            }
        }
    }

    #[test]
    fn names_over_infiniband_are_random_and_not_the_subnet_managers() {
        let drawn = |first, second| {
            let mut words = [first, second, 0].into_iter();
            Group::random_in(Range::InfiniBand, &mut || words.next().unwrap()).address.to_string()
        };
        assert_eq!(
            drawn(0x1234_5678_9abc_def0, 0x1122_3344_5566_7788),
            "ff12:1234:5678:9abc:def0:1122:3344:5566"
        );
        assert_eq!(drawn(0xa01b_0000_0000_0001, 0xffff << 16), "ff12:a01a::1:0:0:ffff");
    }

    #[test]
    fn a_site_names_its_ports_and_groups() {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.rotate_left(29)
        };
        let ports: Ports = "20000-20003".parse().unwrap();
        let block = |text: &str| Range::Block(text.parse().unwrap());
        let mut drawn = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let group = Group::random_of(block("239.192.7.0/31"), ports, &mut next);
            drawn.insert(group.to_string());
            let group = Group::random_of(block("ff15:7::/127"), "6000".parse().unwrap(), &mut next);
            assert!(["[ff15:7::]:6000", "[ff15:7::1]:6000"].contains(&group.to_string().as_str()));
        }
        assert_eq!(drawn.len(), 8, "{drawn:?}");
        assert_eq!(block("239.192.7.0/24").groups(), 256 * 27_768);
        for wrong in ["", "80", "20099-20000", "20000-", "20000-99999", "a-b", "-5"] {
            assert!(wrong.parse::<Ports>().is_err(), "{wrong}");
        }
        assert_eq!("64".parse::<Hops>().map(Hops::get), Ok(64));
        for wrong in ["", "0", "256", "-1", "far"] {
            assert!(wrong.parse::<Hops>().is_err(), "{wrong}");
        }
        // The third and fourth are flooded, the last reaches beyond multicast.
        for wrong in [
            "239.192.7.0",
            "10.0.0.0/24",
            "239.0.0.0/24",
            "224.0.0.0/25",
            "239.192.7.0/33",
            "fe80::/64",
            "ff00::/4",
        ] {
            assert!(wrong.parse::<GroupBlock>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_flooded_address_is_drawn_again() {
        // 225.0.1.0 + 0x7f_ff00 is 225.128.0.0; the last word is the port's.
        let mut words = [0x7f_ff00, 5, 0].into_iter();
        let group = Group::random_in(Range::GlobalV4, &mut || words.next().unwrap());
        assert_eq!(group.to_string(), "225.0.1.5:5000");
    }

    #[test]
    fn every_end_of_a_range_is_reached() {
        let drawn = |range, word| {
            let mut words = [word, 0].into_iter();
            Group::random_in(range, &mut || words.next().unwrap()).address.to_string()
        };
        assert_eq!(drawn(Range::OrganisationV4, 0), "239.192.0.0");
        assert_eq!(drawn(Range::OrganisationV4, 0x3_ffff), "239.195.255.255");
        let first = 0xE800_0000 - 0xE100_0100_u64;
        assert_eq!(drawn(Range::GlobalV4, first - 1), "231.255.255.255");
        assert_eq!(drawn(Range::GlobalV4, first), "234.0.1.0");
    }

    #[test]
    fn many_groups_are_different() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let groups: std::collections::HashSet<Group> =
            (0..1_000).map(|_| Group::random(Family::V4, &mut next)).collect();
        assert!(groups.len() >= 999, "{}", groups.len());
    }

    #[test]
    fn how_many_groups_there_are() {
        let ports = 27_768;
        assert_eq!(Range::OrganisationV4.groups(), (1 << 18) * ports);
        // The flooded blocks of each /8 are x.128.0.z, and x.0.0.z where that is in the range.
        let blocks = 12 * (1 << 16) - 12 - 12;
        assert_eq!(Range::GlobalV4.groups(), blocks * 256 * ports);
        assert_eq!(Range::LinkV6.groups(), (1 << 31) * ports);
    }
}
