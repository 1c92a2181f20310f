//! What happened on a rank at some time.

/// An event of a rank. The meaning of its numbers depends on its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The time on the rank's own clock, in nanoseconds.
    pub at_ns: u64,
    /// The kind of the event.
    pub kind: Kind,
    /// A number whose meaning [`Kind`] says.
    pub detail: u8,
    /// The communicator, as an index into the file's list; [`crate::NOT_NAMED`] where there is
    /// none.
    pub communicator: u16,
    /// The number of the call on that communicator, from 1; 0 where there is none.
    pub call: u32,
    /// A number whose meaning [`Kind`] says.
    pub a: u64,
    /// A number whose meaning [`Kind`] says.
    pub b: u32,
    /// A number whose meaning [`Kind`] says.
    pub c: u32,
}

/// The kind of an event, with the meaning of the event's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The program called. `detail`: the collective; `a`: bytes of a message, or of a rank's block; `b`: the root.
    Call = 1,
    /// The choice for the call was settled. `detail`: the collective; `b`, `c`: the names of the
    /// choice and of the reason.
    Chosen = 2,
    /// The call returned. `detail`: 0, or 1 after an error; `a`: nanoseconds that the rank waited in it, as far as it is known; `b`: how often.
    Return = 3,
    /// The rank waited from then on, for `a` nanoseconds. Short waits are only counted by [`Kind::Return`].
    Wait = 4,
    /// The first datagram of a broadcast came (`detail` 0) or went (1).
    FirstDatagram = 5,
    /// The last datagram of a broadcast came (`detail` 0) or went (1).
    LastDatagram = 6,
    /// The datagrams of a broadcast: `a` came, `b` of those brought something new, `c` went.
    Datagrams = 7,
    /// The losses: `a` fragments were sent again to this node, `b` were restored from the parity,
    /// `c` requests were made.
    Repairs = 8,
    /// A call went to the MPI although no communicator was asked. `detail`: the collective; `a`: bytes; `b`: the name of the reason.
    Left = 9,
    /// A call went to the MPI because polycast does not serve its function. `a`: bytes; `b`: the
    /// name of the function.
    Unserved = 10,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Call,
        Kind::Chosen,
        Kind::Return,
        Kind::Wait,
        Kind::FirstDatagram,
        Kind::LastDatagram,
        Kind::Datagrams,
        Kind::Repairs,
        Kind::Left,
        Kind::Unserved,
    ];

    fn of(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// Words of an event.
pub const EVENT_WORDS: usize = 4;

impl Event {
    /// Returns the event as words, as memory and files have it.
    #[inline]
    pub fn words(&self) -> [u64; EVENT_WORDS] {
        let Event { at_ns, kind, detail, communicator, call, a, b, c } = *self;
        let where_ = u64::from(communicator) << 16 | u64::from(call) << 32;
        [at_ns, kind as u64 | u64::from(detail) << 8 | where_, a, u64::from(b) | u64::from(c) << 32]
    }

    /// Reads an event from words; `None` if there is no such kind.
    pub fn from_words([at_ns, head, a, bc]: [u64; EVENT_WORDS]) -> Option<Event> {
        Some(Event {
            at_ns,
            kind: Kind::of(head as u8)?,
            detail: (head >> 8) as u8,
            communicator: (head >> 16) as u16,
            call: (head >> 32) as u32,
            a,
            b: bc as u32,
            c: (bc >> 32) as u32,
        })
    }
}
