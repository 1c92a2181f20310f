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
