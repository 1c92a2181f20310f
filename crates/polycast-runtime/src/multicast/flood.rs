//! Limits for datagrams that keep coming: a sender that is faster than this rank must not keep it
//! from everything else.

use std::io;
use std::time::Duration;

use polycast_core::protocol::wire::JOB_AT;
use polycast_net::Datagrams;

use crate::machine;

/// Most system calls, and longest time, for one drain.
const MAX_READS: usize = 64;
const MAX_DRAIN: Duration = Duration::from_micros(100);
/// Number of strangers' datagrams from which on the kernel is to drop them.
const STRANGERS: u64 = 64;

/// Outcome of a look into the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    pub datagrams: u64,
    /// True if nothing is left in the socket.
    pub is_all: bool,
}

/// Hands on the datagrams that are there, for a limited time.
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

/// State of the kernel's filter, which drops strangers' datagrams so that they take neither room
/// nor time. The kernel counts them with those for which there was no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// No filter: strangers are too few to be worth it yet.
    #[default]
    None,
    /// A filter is set. The kernel had dropped this many datagrams before, for other reasons.
    Since(u64),
    /// The kernel has no filter.
    Refused,
}

impl Filter {
    /// Sets the filter if `strangers` datagrams of others, in all, are enough. `job` is the number
    /// of the socket's job.
    pub fn look(&mut self, strangers: u64, socket: &mut Datagrams, job: u32) {
        if *self == Filter::None && strangers >= STRANGERS {
            let before = socket.dropped();
            let is_kept = socket.keep_only(job.to_le_bytes(), JOB_AT as u32);
            *self = if is_kept { Filter::Since(before) } else { Filter::Refused };
        }
    }

    /// Number of datagrams for which there was no room, of the `dropped` ones that the kernel
    /// counts.
    pub fn for_room(self, dropped: u64) -> u64 {
        match self {
            Filter::Since(before) => before.min(dropped),
            Filter::None | Filter::Refused => dropped,
        }
    }
}
