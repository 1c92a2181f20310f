use std::fmt;

/// The version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Bytes of the IP and UDP headers in front of a datagram's payload.
    pub const fn header_bytes(self) -> usize {
        match self {
            Family::V4 => 20 + 8,
            Family::V6 => 40 + 8,
        }
    }

    /// The most payload that the length fields allow: IPv4 counts its own header in 16 bits, IPv6 does not.
    pub(crate) const fn most_payload_bytes(self) -> usize {
        match self {
            Family::V4 => 65_535 - 20 - 8,
            Family::V6 => 65_535 - 8,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}
