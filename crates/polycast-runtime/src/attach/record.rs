use std::hash::{DefaultHasher, Hash, Hasher};

const RECORD_BYTES: usize = 56;

/// What one rank says of itself at a communicator's first broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Of the library; another one may not speak the same messages.
    pub version: u64,
    pub capabilities: u64,
    pub settings_digest: u64,
    /// The same for ranks that share a host: kernel and host name, since containers and emulated hosts share kernels.
    pub host: u64,
    /// The same for ranks whose processes run on the same processors.
    pub kernel: u64,
    /// Tells processes apart.
    pub process: u64,
    /// Of the name of its host.
    pub name_bytes: u32,
    /// Of where Slurm says that the host is; 0 if it does not.
    pub address_bytes: u32,
}

impl Record {
    pub fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let Record { version, capabilities, settings_digest, host, kernel, process, .. } = self;
        let lengths = u64::from(self.name_bytes) | u64::from(self.address_bytes) << 32;
        let fields = [version, capabilities, settings_digest, host, kernel, process, lengths];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: [u8; RECORD_BYTES]) -> Record {
        let mut fields = bytes.chunks_exact(8).map(|field| u64::from_le_bytes(field.try_into().unwrap()));
        let mut next = || fields.next().unwrap();
        let mut record = Record {
            version: next(),
            capabilities: next(),
            settings_digest: next(),
            host: next(),
            kernel: next(),
            process: next(),
            name_bytes: 0,
            address_bytes: 0,
        };
        let lengths = next();
        (record.name_bytes, record.address_bytes) = (lengths as u32, (lengths >> 32) as u32);
        record
    }
}

pub fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_wire() {
        let record = Record {
            version: 1,
            capabilities: 2,
            settings_digest: 3,
            host: u64::MAX,
            kernel: 5,
            process: 6,
            name_bytes: 7,
            address_bytes: u32::MAX,
        };
        assert_eq!(Record::from_bytes(record.to_bytes()), record);
    }
}
