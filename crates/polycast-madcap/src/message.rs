//! The messages of MADCAP, RFC 2730 sections 2 and 3.
//!
//! ```text
//!  0               1               2               3
//! +---------------+---------------+-------------------------------+
//! | version = 0   | kind          | address family (1, 2)         |
//! +---------------+---------------+-------------------------------+
//! | transaction identifier (xid): a reply repeats the request's   |
//! +-------------------------------+-------------------------------+
//! | option code                   | option bytes                  |   any number of options, 0 (End, no bytes) is the last;
//! +-------------------------------+-------------------------------+   those that are not known are skipped
//! | …                                                             |
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use polycast_net::Family;

/// Codes of the options (RFC 2730, section 3) that are read and written here.
mod code {
    pub const END: u16 = 0;
    pub const LEASE_TIME: u16 = 1;
    pub const SERVER: u16 = 2;
    pub const LEASE_ID: u16 = 3;
    pub const SCOPE: u16 = 4;
    pub const ADDRESSES_WANTED: u16 = 7;
    pub const RANGES: u16 = 10;
    pub const ERROR: u16 = 16;
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A client asks which servers could give an address.
    Discover = 1,
    /// A server could give one.
    Offer = 2,
    /// A client asks one server for an address.
    Request = 3,
    /// A client asks to prolong a lease.
    Renew = 4,
    /// The server has done as asked.
    Ack = 5,
    /// The server has not done as asked; the error option says why.
    Nak = 6,
    /// A client gives its address back.
    Release = 7,
    /// A client asks for the server's scopes.
    GetInfo = 8,
}

/// The reason why a server refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NakCode {
    /// 0: a valid request that could not be met, as when all addresses are taken.
    #[error("it has no address to give")]
    NotCompleted,
    /// 1: not a valid request.
    #[error("it finds the request invalid")]
    Invalid,
    /// 2: the clocks differ too much.
    #[error("its clock differs too much")]
    ClockSkew,
    /// 3: no such lease.
    #[error("it does not know the lease")]
    UnknownLease,
    /// 4: a feature that was required.
    #[error("it lacks a required feature")]
    UnsupportedFeature,
    /// Codes of later standards.
    #[error("error {0}")]
    Other(u16),
}

impl NakCode {
    fn from_code(code: u16) -> NakCode {
        match code {
            0 => NakCode::NotCompleted,
            1 => NakCode::Invalid,
            2 => NakCode::ClockSkew,
            3 => NakCode::UnknownLease,
            4 => NakCode::UnsupportedFeature,
            other => NakCode::Other(other),
        }
    }

    fn code(self) -> u16 {
        match self {
            NakCode::NotCompleted => 0,
            NakCode::Invalid => 1,
            NakCode::ClockSkew => 2,
            NakCode::UnknownLease => 3,
            NakCode::UnsupportedFeature => 4,
            NakCode::Other(code) => code,
        }
    }
}

/// A client's identifier of a lease: opaque to the server, unguessable to others, 1 to
/// [`MAX_BYTES`](LeaseId::MAX_BYTES) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId {
    /// The identifier, with zeroes behind `length`.
    bytes: [u8; LeaseId::MAX_BYTES],
    length: u8,
}

impl LeaseId {
    /// The most bytes of an identifier, which bounds the server's memory.
    pub const MAX_BYTES: usize = 32;

    /// An identifier of these bytes; `None` if there are none or more than
    /// [`MAX_BYTES`](LeaseId::MAX_BYTES).
    pub fn new(bytes: &[u8]) -> Option<LeaseId> {
        if bytes.is_empty() || bytes.len() > LeaseId::MAX_BYTES {
            return None;
        }
        let mut id = LeaseId { bytes: [0; LeaseId::MAX_BYTES], length: bytes.len() as u8 };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// The bytes as they are sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// A message of MADCAP, as far as a client of one address and its server need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The kind of message.
    pub kind: Kind,
    /// The family of the addresses that are asked for or given: of all addresses in the message but the server's.
    pub family: Family,
    /// The transaction identifier; a reply repeats that of its request.
    pub xid: u32,
    /// Seconds that the lease lasts or is wished to last.
    pub lease_seconds: Option<u32>,
    /// The server's address.
    pub server: Option<IpAddr>,
    /// The lease that the message is about.
    pub lease: Option<LeaseId>,
    /// The lowest address of the scope.
    pub scope: Option<IpAddr>,
    /// The least number of addresses that is of use to the client; 1 where nothing is said.
    pub addresses_wanted: Option<u16>,
    /// The first address that is given.
    pub address: Option<IpAddr>,
    /// The reason of a refusal.
    pub error: Option<NakCode>,
}

/// Bytes that are no message of MADCAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside the header or an option, or without the option End.
    #[error("cut off")]
    CutOff,
    /// Another version of the protocol.
    #[error("version {0}, expected 0")]
    Version(u8),
    /// No such kind of message.
    #[error("unknown kind of message {0}")]
    Kind(u8),
    /// Neither IPv4 nor IPv6.
    #[error("address family {0}, expected 1 or 2")]
    Family(u16),
    /// An option has a length that its kind cannot have.
    #[error("option {code} of {bytes} bytes")]
    OptionLength {
        /// The code of the option.
        code: u16,
        /// The length of the option's value, in bytes.
        bytes: usize,
    },
}

impl Message {
    /// A message without options.
    pub fn new(kind: Kind, family: Family, xid: u32) -> Message {
        Message {
            kind,
            family,
            xid,
            lease_seconds: None,
            server: None,
            lease: None,
            scope: None,
            addresses_wanted: None,
            address: None,
            error: None,
        }
    }

    /// Reads a message. Never panics and never allocates, whatever the bytes; unknown options are skipped, of an option that comes
    /// twice the last counts.
    pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
        let (header, mut options) = bytes.split_first_chunk::<8>().ok_or(DecodeError::CutOff)?;
        let [version, kind, family_high, family_low, xid @ ..] = *header;
        if version != 0 {
            return Err(DecodeError::Version(version));
        }
        let kind = kind_of(kind).ok_or(DecodeError::Kind(kind))?;
        let family = family_of(u16::from_be_bytes([family_high, family_low]))?;
        let mut message = Message::new(kind, family, u32::from_be_bytes(xid));
        loop {
            let (head, rest) = options.split_first_chunk::<4>().ok_or(DecodeError::CutOff)?;
            let code = u16::from_be_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
            if code == code::END {
                return Ok(message);
            }
            let (value, rest) = rest.split_at_checked(length).ok_or(DecodeError::CutOff)?;
            message.read_option(code, value).ok_or(DecodeError::OptionLength { code, bytes: length })?;
            options = rest;
        }
    }

    /// Reads an option into the message; `None` if its value has a length that it cannot have.
    /// Unknown options are skipped.
    fn read_option(&mut self, code: u16, value: &[u8]) -> Option<()> {
        match code {
            code::LEASE_TIME => self.lease_seconds = Some(u32::from_be_bytes(value.try_into().ok()?)),
            code::SERVER => {
                let (family, address) = value.split_first_chunk::<2>()?;
                let family = family_of(u16::from_be_bytes(*family)).ok()?;
                self.server = Some(read_address(family, address)?);
            }
            code::LEASE_ID => self.lease = Some(LeaseId::new(value)?),
            code::SCOPE => self.scope = Some(read_address(self.family, value)?),
            code::ADDRESSES_WANTED => {
                // The least number, then the number that would be best.
                let [high, low, _, _] = *<&[u8; 4]>::try_from(value).ok()?;
                self.addresses_wanted = Some(u16::from_be_bytes([high, low]));
            }
            code::RANGES => self.address = read_first_range(self.family, value)?,
            code::ERROR => {
                // What follows the code explains it.
                let (code, _) = value.split_first_chunk::<2>()?;
                self.error = Some(NakCode::from_code(u16::from_be_bytes(*code)));
            }
            _ => {}
        }
        Some(())
    }

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0, self.kind as u8];
        bytes.extend(family_code(self.family).to_be_bytes());
        bytes.extend(self.xid.to_be_bytes());
        let mut option = |code: u16, parts: &[&[u8]]| {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            bytes.extend(code.to_be_bytes());
            // 34 at most: a lease identifier, or an address with its family.
            bytes.extend((length as u16).to_be_bytes());
            parts.iter().for_each(|part| bytes.extend(*part));
        };
        if let Some(seconds) = self.lease_seconds {
            option(code::LEASE_TIME, &[&seconds.to_be_bytes()]);
        }
        if let Some(server) = self.server {
            let family = if server.is_ipv4() { Family::V4 } else { Family::V6 };
            option(code::SERVER, &[&family_code(family).to_be_bytes(), &octets(server)]);
        }
        if let Some(lease) = &self.lease {
            option(code::LEASE_ID, &[lease.as_bytes()]);
        }
        if let Some(scope) = self.scope {
            option(code::SCOPE, &[&octets(scope)]);
        }
        if let Some(least) = self.addresses_wanted {
            option(code::ADDRESSES_WANTED, &[&least.to_be_bytes(), &least.to_be_bytes()]);
        }
        if let Some(address) = self.address {
            option(code::RANGES, &[&octets(address), &1_u16.to_be_bytes()]);
        }
        if let Some(error) = self.error {
            option(code::ERROR, &[&error.code().to_be_bytes()]);
        }
        option(code::END, &[]);
        bytes
    }
}

/// Reads the first address of the first range that has any, from a list of (first address, number
/// of addresses in two bytes). `None` if the list has a wrong length, `Some(None)` if no range has
/// an address.
fn read_first_range(family: Family, list: &[u8]) -> Option<Option<IpAddr>> {
    let entry_bytes = address_bytes(family) + 2;
    if !list.len().is_multiple_of(entry_bytes) {
        return None;
    }
    let first = list.chunks_exact(entry_bytes).find(|entry| entry[entry_bytes - 2..] != [0, 0]);
    Some(first.and_then(|entry| read_address(family, &entry[..entry_bytes - 2])))
}

fn read_address(family: Family, value: &[u8]) -> Option<IpAddr> {
    Some(match family {
        Family::V4 => Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?).into(),
        Family::V6 => Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?).into(),
    })
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn address_bytes(family: Family) -> usize {
    match family {
        Family::V4 => 4,
        Family::V6 => 16,
    }
}

/// The number of an address family, as IANA assigns it.
fn family_code(family: Family) -> u16 {
    match family {
        Family::V4 => 1,
        Family::V6 => 2,
    }
}

fn family_of(code: u16) -> Result<Family, DecodeError> {
    match code {
        1 => Ok(Family::V4),
        2 => Ok(Family::V6),
        other => Err(DecodeError::Family(other)),
    }
}

fn kind_of(code: u8) -> Option<Kind> {
    Some(match code {
        1 => Kind::Discover,
        2 => Kind::Offer,
        3 => Kind::Request,
        4 => Kind::Renew,
        5 => Kind::Ack,
        6 => Kind::Nak,
        7 => Kind::Release,
        8 => Kind::GetInfo,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
