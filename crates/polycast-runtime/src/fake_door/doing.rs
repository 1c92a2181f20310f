use std::ffi::c_int;
use std::fmt;

/// A collective call on a communicator of the program. Ranks must agree on all but the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collective {
    /// The ranks ask each other in MPI_Init (doors/pmpi/vote.c).
    Vote,
    /// polycast_door.sum_over_world.
    Sum,
    Allgather {
        bytes: usize,
    },
    Broadcast {
        bytes: usize,
        root: u32,
    },
    /// Of the private communicator of all ranks, in MPI_Init.
    OpenPrivate,
    Intersect {
        words: usize,
    },
    /// Of the program, by the stock MPI.
    Stock {
        root: u32,
    },
    /// polycast_door.stock.
    Measured {
        collective: u32,
        bytes: usize,
        root: i32,
    },
    /// MPI_Finalize, in which MPI works on until all have come. It does not fail.
    Finalize,
}

impl Collective {
    /// By whom alone it is over for all, if it is one.
    pub fn root(self) -> Option<u32> {
        match self {
            Collective::Broadcast { root, .. } | Collective::Stock { root } => Some(root),
            _ => None,
        }
    }

    /// What all ranks get: what the root has, what all have in common, their sum, or what each has, one after the other.
    pub fn outcome(self, parts: &[Option<Vec<u8>>]) -> Vec<u8> {
        let there = parts.iter().flatten();
        match self {
            Collective::Intersect { .. } => combined(there, |one, other| one & other),
            Collective::Sum => combined(there, u64::wrapping_add),
            _ => match self.root() {
                Some(root) => parts[root as usize].clone().unwrap_or_default(),
                None => there.fold(Vec::new(), |mut all, part| {
                    all.extend(part);
                    all
                }),
            },
        }
    }
}

fn combined<'a>(mut parts: impl Iterator<Item = &'a Vec<u8>>, operation: fn(u64, u64) -> u64) -> Vec<u8> {
    let mut all = parts.next().cloned().unwrap_or_default();
    for part in parts {
        for (all, one) in all.as_chunks_mut().0.iter_mut().zip(part.as_chunks().0) {
            *all = operation(u64::from_le_bytes(*all), u64::from_le_bytes(*one)).to_le_bytes();
        }
    }
    all
}

/// The last call of a rank, for those who ask why it does not return.
#[derive(Clone, Copy, Debug)]
pub enum Doing {
    Nothing,
    Collective(Collective),
    Isend { bytes: usize, peer: u32, tag: c_int },
    Irecv { bytes: usize, peer: u32, tag: c_int },
    Poll,
    Combine { bytes: usize },
}

impl fmt::Display for Doing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doing::Nothing => f.write_str("nothing"),
            Doing::Collective(what) => write!(f, "{what:?}"),
            Doing::Isend { bytes, peer, tag } => {
                write!(f, "isend of {bytes} bytes to rank {peer} with tag {tag}")
            }
            Doing::Irecv { bytes, peer, tag } => {
                write!(f, "irecv of {bytes} bytes from rank {peer} with tag {tag}")
            }
            Doing::Poll => f.write_str("poll"),
            Doing::Combine { bytes } => write!(f, "combination of {bytes} bytes"),
        }
    }
}
