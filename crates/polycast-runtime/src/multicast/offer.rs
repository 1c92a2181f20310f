//! The messages of the ranks to each other before a communicator's first multicast.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polycast_core::protocol::{KEY_BYTES, Key};
use polycast_net::{Family, Group};
use zeroize::Zeroizing;

use crate::reason::Reason;

/// A leader's abilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Reason for which the leader refuses; `None` if it is willing.
    pub refusal: Option<Reason>,
    pub is_ipv6: bool,
    /// Ability to multicast over verbs, beside IP multicast or in its place.
    pub verbs: Option<VerbsOffer>,
    /// The job number of the group that this process has for these nodes; 0: none.
    pub existing: u32,
    /// Bytes of the largest datagram.
    pub datagram_bytes: u32,
    /// Rate of the link in bits per second; 0: unknown.
    pub bits_per_second: u64,
}

/// A leader's abilities over InfiniBand or RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerbsOffer {
    /// True if its groups are of IPv6.
    pub is_ipv6: bool,
    pub datagram_bytes: u32,
    /// Rate of the link in bits per second; 0: unknown.
    pub bits_per_second: u64,
}

/// Version of IP of groups over verbs, as offers have it.
const VERBS_V4: u8 = 4;
const VERBS_V6: u8 = 6;

impl Offer {
    pub const BYTES: usize = 32;

    /// The offer of a rank that leads no node.
    pub fn none() -> Offer {
        Offer {
            refusal: None,
            is_ipv6: false,
            verbs: None,
            existing: 0,
            datagram_bytes: 0,
            bits_per_second: 0,
        }
    }

    pub fn refuse(reason: Reason) -> Offer {
        Offer { refusal: Some(reason), ..Offer::none() }
    }

    pub fn to_bytes(self) -> [u8; Offer::BYTES] {
        let mut bytes = [0; Offer::BYTES];
        bytes[0] = self.refusal.map_or(0, |reason| reason as u8);
        bytes[1] = self.is_ipv6.into();
        bytes[4..8].copy_from_slice(&self.existing.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.datagram_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.bits_per_second.to_le_bytes());
        if let Some(verbs) = self.verbs {
            bytes[2] = if verbs.is_ipv6 { VERBS_V6 } else { VERBS_V4 };
            bytes[12..16].copy_from_slice(&verbs.datagram_bytes.to_le_bytes());
            bytes[24..32].copy_from_slice(&verbs.bits_per_second.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: [u8; Offer::BYTES]) -> Offer {
        let u64_at = |at| u64::from(u32_at(&bytes, at)) | u64::from(u32_at(&bytes, at + 4)) << 32;
        let verbs =
            |is_ipv6| VerbsOffer { is_ipv6, datagram_bytes: u32_at(&bytes, 12), bits_per_second: u64_at(24) };
        Offer {
            refusal: Reason::from_code(bytes[0]),
            is_ipv6: bytes[1] != 0,
            existing: u32_at(&bytes, 4),
            datagram_bytes: u32_at(&bytes, 8),
            verbs: [VERBS_V4, VERBS_V6].contains(&bytes[2]).then(|| verbs(bytes[2] == VERBS_V6)),
            bits_per_second: u64_at(16),
        }
    }
}

/// The decision of rank 0.
#[derive(Clone, Debug)]
pub struct GroupPlan {
    /// Reason for which rank 0 refuses; `None`: all go on.
    pub refusal: Option<Reason>,
    pub job: u32,
    pub communicator: u32,
    pub group: Group,
    pub key: Key,
}

impl GroupPlan {
    pub const BYTES: usize = 32 + KEY_BYTES;

    /// A plan that ends the set-up, for a reason.
    pub fn refuse(reason: Reason) -> GroupPlan {
        GroupPlan {
            refusal: Some(reason),
            job: 0,
            communicator: 0,
            group: Group { address: Ipv4Addr::UNSPECIFIED.into(), port: 0 },
            key: Key::from_bytes([0; KEY_BYTES]),
        }
    }

    /// The plan's bytes. They hold the key, and wipe themselves.
    pub fn to_bytes(&self) -> Zeroizing<[u8; GroupPlan::BYTES]> {
        let mut bytes = Zeroizing::new([0; GroupPlan::BYTES]);
        bytes[0] = self.refusal.map_or(0, |reason| reason as u8);
        bytes[1] = (self.group.family() == Family::V6).into();
        bytes[2..4].copy_from_slice(&self.group.port.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.job.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.communicator.to_le_bytes());
        match self.group.address {
            IpAddr::V4(address) => bytes[16..20].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[16..32].copy_from_slice(&address.octets()),
        }
        bytes[32..].copy_from_slice(&self.key.to_bytes()[..]);
        bytes
    }

    pub fn from_bytes(bytes: &[u8; GroupPlan::BYTES]) -> GroupPlan {
        let address: [u8; 16] = std::array::from_fn(|at| bytes[16 + at]);
        let address = match bytes[1] {
            0 => Ipv4Addr::new(address[0], address[1], address[2], address[3]).into(),
            _ => Ipv6Addr::from(address).into(),
        };
        GroupPlan {
            refusal: Reason::from_code(bytes[0]),
            job: u32_at(bytes, 4),
            communicator: u32_at(bytes, 8),
            group: Group { address, port: u16::from_le_bytes([bytes[2], bytes[3]]) },
            key: Key::from_bytes(std::array::from_fn(|at| bytes[32 + at])),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_and_plans_survive_the_wire() {
        let offer = Offer {
            refusal: Some(Reason::Silence),
            is_ipv6: true,
            verbs: Some(VerbsOffer { is_ipv6: true, datagram_bytes: 4096, bits_per_second: 1 << 40 }),
            existing: 7,
            datagram_bytes: 1472,
            bits_per_second: 10_000_000_000,
        };
        assert_eq!(Offer::from_bytes(offer.to_bytes()), offer);
        assert_eq!(Offer::from_bytes(Offer::none().to_bytes()), Offer::none());
        let verbs = VerbsOffer { is_ipv6: false, datagram_bytes: 2048, bits_per_second: 0 };
        let only = Offer { verbs: Some(verbs), ..Offer::refuse(Reason::Interface) };
        assert_eq!(Offer::from_bytes(only.to_bytes()), only);
        for address in ["239.192.1.2", "ff12::1234:5678"] {
            let group = Group { address: address.parse().unwrap(), port: 12345 };
            let key = Key::from_bytes(std::array::from_fn(|at| at as u8));
            let plan = GroupPlan { refusal: None, job: 1, communicator: 2, group, key };
            let read = GroupPlan::from_bytes(&plan.to_bytes());
            assert_eq!((read.refusal, read.job, read.communicator, read.group), (None, 1, 2, group));
            assert_eq!(*read.key.to_bytes(), *plan.key.to_bytes());
        }
    }

    #[test]
    fn every_reason_is_told_apart_and_said() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_code(reason as u8), Some(reason));
            assert!(!reason.text().is_empty());
        }
        assert_eq!(Reason::from_code(0), None);
    }
}
