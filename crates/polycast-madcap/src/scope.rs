use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use polycast_net::Family;

/// A range of multicast addresses, as prefix and length: `239.192.0.0/14`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    first: IpAddr,
    prefix_bits: u8,
}

/// Words that are no range of multicast addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {found}; expected a range of multicast addresses like 239.192.0.0/24 or ff12::8000:0/112")]
pub struct ParseScopeError {
    text: String,
    found: &'static str,
}

impl Scope {
    /// The range that random groups are drawn from too: 239.192.0.0/14, the organisation's, or
    /// ff12::/16, the link's.
    pub const fn of(family: Family) -> Scope {
        match family {
            Family::V4 => Scope { first: IpAddr::V4(Ipv4Addr::new(239, 192, 0, 0)), prefix_bits: 14 },
            Family::V6 => {
                Scope { first: IpAddr::V6(Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0)), prefix_bits: 16 }
            }
        }
    }

    /// The lowest address, which is also what MADCAP calls the scope by.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The version of the Internet Protocol of its addresses.
    pub fn family(&self) -> Family {
        match self.first {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// The number of addresses in the scope, at most `u64::MAX`.
    pub fn addresses(&self) -> u64 {
        1_u64.checked_shl(self.host_bits()).unwrap_or(u64::MAX)
    }

    /// True if the address is in the scope; false for an address of the other family.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.offset(address).is_some_and(|offset| offset >> self.host_bits() == 0)
    }

    /// The address at this distance from the first; the caller stays below [`addresses`](Scope::addresses).
    pub(super) fn nth(&self, offset: u32) -> IpAddr {
        debug_assert!(u64::from(offset) < self.addresses());
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() + offset).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() + u128::from(offset)).into(),
        }
    }

    fn offset(&self, address: IpAddr) -> Option<u128> {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                address.to_bits().checked_sub(first.to_bits()).map(u128::from)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => address.to_bits().checked_sub(first.to_bits()),
            _ => None,
        }
    }

    /// The number of address bits behind the prefix. Below 128, since the least prefix that is
    /// accepted is 4 bits long.
    fn host_bits(&self) -> u32 {
        match self.first {
            IpAddr::V4(_) => 32 - u32::from(self.prefix_bits),
            IpAddr::V6(_) => 128 - u32::from(self.prefix_bits),
        }
    }
}

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Scope, ParseScopeError> {
        let wrong = |found| ParseScopeError { text: text.to_owned(), found };
        let (first, bits) = text.trim().split_once('/').ok_or(wrong("no `/`"))?;
        let first: IpAddr = first.parse().map_err(|_| wrong("no address before `/`"))?;
        let prefix_bits: u8 = bits.parse().map_err(|_| wrong("no number after `/`"))?;
        // All multicast addresses share the first 4 bits (IPv4) or 8 (IPv6).
        let bits_of_all = match first {
            IpAddr::V4(_) => 4..=32,
            IpAddr::V6(_) => 8..=128,
        };
        if !first.is_multicast() || !bits_of_all.contains(&prefix_bits) {
            return Err(wrong("not multicast"));
        }
        let scope = Scope { first, prefix_bits };
        let bits = match first {
            IpAddr::V4(first) => u128::from(first.to_bits()),
            IpAddr::V6(first) => first.to_bits(),
        };
        if bits & ((1 << scope.host_bits()) - 1) != 0 {
            return Err(wrong("the address has bits set behind the prefix"));
        }
        Ok(scope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_addresses_and_no_others() {
        let scope: Scope = "239.192.4.0/24".parse().unwrap();
        assert_eq!((scope.addresses(), scope.to_string().as_str()), (256, "239.192.4.0/24"));
        for (address, inside) in [
            ("239.192.4.0", true),
            ("239.192.4.255", true),
            ("239.192.5.0", false),
            ("239.192.3.255", false),
            ("10.0.0.1", false),
            ("ff12::1", false),
        ] {
            assert_eq!(scope.contains(address.parse().unwrap()), inside, "{address}");
        }
        assert_eq!(scope.nth(255).to_string(), "239.192.4.255");
        assert!(Scope::of(Family::V4).contains("239.195.255.255".parse().unwrap()));
        assert!(Scope::of(Family::V6).contains("ff12::8000:1".parse().unwrap()));
        assert!(!Scope::of(Family::V6).contains("ff13::8000:1".parse().unwrap()));
        assert_eq!(Scope::of(Family::V6).addresses(), u64::MAX);
        assert_eq!("ff12::8000:0/112".parse::<Scope>().unwrap().addresses(), 65_536);
        assert_eq!("239.1.2.3/32".parse::<Scope>().unwrap().addresses(), 1);
    }

    #[test]
    fn words_that_are_no_range_are_refused() {
        for (text, found) in [
            ("239.192.0.0", "no `/`"),
            ("239.192.0/24", "no address"),
            ("239.192.0.0/x", "no number"),
            ("10.0.0.0/24", "not multicast"),
            ("224.0.0.0/3", "not multicast"),
            ("239.192.0.0/33", "not multicast"),
            ("ff12::/129", "not multicast"),
            ("239.192.0.1/24", "behind the prefix"),
        ] {
            let error = text.parse::<Scope>().unwrap_err().to_string();
            assert!(error.contains(found), "{text}: {error}");
        }
    }
}
