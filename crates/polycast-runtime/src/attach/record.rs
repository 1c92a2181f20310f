//! The record by which a rank tells of itself when MPI begins: the first bytes that ranks exchange.
//!
//! ```text
//! byte 0                                8                                16
//!     ├──────────── "polycast" ─────────┼──────── build identity ────────┤   for ever
//!  16 ├────────── capabilities ─────────┼──────── settings digest ───────┤   as this build has it
//!  32 ├────────────── host ─────────────┼───────────── kernel ───────────┤
//!  48 ├──────────── process ────────────┼ name ┬ address ┬ kernel's start ─┤
//! ```
//! Numbers are little-endian. Ranks with different builds must be able to exchange records and to find out that their builds
//! differ. So the length, and what the first 16 bytes mean, stay as they are in all versions. What stands in the other 48 is read
//! only when all builds are the same, and any version may lay it out anew. What finds no room goes into another exchange, after
//! this one has shown that all ranks take part in it.

/// Length of a record in bytes, for ever.
pub const RECORD_BYTES: usize = 64;
/// Beginning of each record: anything else comes from a program that is not polycast.
const MAGIC: [u8; 8] = *b"polycast";

/// The record of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRecord {
    /// Identity of the library; another one may not speak the same messages, and chooses
    /// differently.
    pub build: u64,
    pub capabilities: u64,
    pub settings_digest: u64,
    /// Digest of kernel and host name, equal for ranks that share a host: containers and emulated
    /// hosts share kernels.
    pub host: u64,
    /// Digest that is equal for ranks whose processes run on the same processors.
    pub kernel: u64,
    /// Number that tells processes apart.
    pub process: u64,
    /// Bytes of the name of the rank's host.
    pub name_bytes: u16,
    /// Bytes of Slurm's address of the host; 0 if there is none.
    pub address_bytes: u16,
    /// Digest that is equal for ranks on one kernel, whatever their hosts' names.
    pub kernel_start: u32,
}

impl RankRecord {
    /// The record of a rank that cannot serve: it has no capabilities.
    pub fn unable(build: u64) -> RankRecord {
        let [capabilities, settings_digest, host, kernel, process] = [0; 5];
        let (name_bytes, address_bytes, kernel_start) = (0, 0, 0);
        RankRecord {
            build,
            capabilities,
            settings_digest,
            host,
            kernel,
            process,
            name_bytes,
            address_bytes,
            kernel_start,
        }
    }

    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let RankRecord { build, capabilities, settings_digest, host, kernel, process, .. } = self;
        let lengths = u64::from(self.name_bytes)
            | u64::from(self.address_bytes) << 16
            | u64::from(self.kernel_start) << 32;
        let magic = u64::from_le_bytes(MAGIC);
        let fields = [magic, build, capabilities, settings_digest, host, kernel, process, lengths];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads a record; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Option<RankRecord> {
        let field = |index: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[8 * index + at]));
        (bytes[..8] == MAGIC).then(|| RankRecord {
            build: field(1),
            capabilities: field(2),
            settings_digest: field(3),
            host: field(4),
            kernel: field(5),
            process: field(6),
            name_bytes: field(7) as u16,
            address_bytes: (field(7) >> 16) as u16,
            kernel_start: (field(7) >> 32) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: RankRecord = RankRecord {
        build: 0x0807_0605_0403_0201,
        capabilities: 2,
        settings_digest: 3,
        host: u64::MAX,
        kernel: 5,
        process: 6,
        name_bytes: 7,
        address_bytes: u16::MAX,
        kernel_start: u32::MAX - 1,
    };

    #[test]
    fn a_record_survives_the_wire() {
        assert_eq!(RankRecord::from_bytes(&RECORD.to_bytes()), Some(RECORD));
    }

    /// Every version reads this of every other one.
    #[test]
    fn length_and_beginning_are_for_ever() {
        let bytes = RECORD.to_bytes();
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[..16], *b"polycast\x01\x02\x03\x04\x05\x06\x07\x08");
    }

    #[test]
    fn a_stranger_is_recognised() {
        let mut bytes = RECORD.to_bytes();
        bytes[0] ^= 1;
        assert_eq!(RankRecord::from_bytes(&bytes), None);
    }
}
