//! What datagrams may cost that keep coming: a sender that is faster than we are must not keep us from everything else.

use std::io;
use std::time::Duration;

use polycast_core::protocol::wire::JOB_AT;
use polycast_net::Datagrams;

use crate::machine;

/// System calls, and time, for one drain.
const MAX_READS: usize = 64;
const MAX_DRAIN: Duration = Duration::from_micros(100);
/// Strangers' datagrams from which on the kernel is to drop them.
const STRANGERS: u64 = 64;

/// What a look into the socket has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    pub datagrams: u64,
    /// Nothing is left.
    pub is_all: bool,
}

/// Hands on what is there, for a limited time.
#[inline]
pub fn drain(socket: &mut Datagrams, mut each: impl FnMut(&[u8])) -> io::Result<Drained> {
    let began = machine::now();
    let mut datagrams = 0;
    for _ in 0..MAX_READS {
        let count = socket.receive(&mut each)?;
        if count == 0 {
            return Ok(Drained { datagrams, is_all: true });
        }
        datagrams += count as u64;
        if machine::now() - began >= MAX_DRAIN {
            break;
        }
    }
    Ok(Drained { datagrams, is_all: false })
}

/// Whether the kernel drops strangers' datagrams, so that they take neither room nor time. It counts them with those for which there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// None are worth it yet.
    #[default]
    None,
    /// Since it had dropped so many datagrams for other reasons.
    Since(u64),
    /// It has none.
    Refused,
}

impl Filter {
    /// So many strangers' datagrams have come by now to the socket of a job with this number.
    pub fn look(&mut self, strangers: u64, socket: &mut Datagrams, job: u32) {
        if *self == Filter::None && strangers >= STRANGERS {
            let before = socket.dropped();
            let is_kept = socket.keep_only(job.to_le_bytes(), JOB_AT as u32);
            *self = if is_kept { Filter::Since(before) } else { Filter::Refused };
        }
    }

    /// Of so many that the kernel has dropped, those for which there was no room.
    pub fn for_room(self, dropped: u64) -> u64 {
        match self {
            Filter::Since(before) => before.min(dropped),
            Filter::None | Filter::Refused => dropped,
        }
    }
}
