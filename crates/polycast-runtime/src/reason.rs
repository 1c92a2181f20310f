//! Reasons for which nodes go without multicast.

/// Reason for which multicast is not used between some nodes. All ranks know the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Switched off there.
    Off = 1,
    /// A setting that cannot be understood.
    Setting,
    /// No interface that could be used.
    Interface,
    /// The process is a member of too many groups.
    TooManyGroups,
    /// A try between these nodes has failed before.
    TriedBefore,
    /// A socket could not be opened.
    Socket,
    /// No group was free.
    Conflict,
    /// Datagrams do not arrive.
    Silence,
    /// No random numbers.
    Entropy,
    /// A mistake of polycast's.
    Internal,
    /// No other node to go to; no rank is asked then.
    Nowhere,
}

impl Reason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Reason; 11] = [
        Reason::Off,
        Reason::Setting,
        Reason::Interface,
        Reason::TooManyGroups,
        Reason::TriedBefore,
        Reason::Socket,
        Reason::Conflict,
        Reason::Silence,
        Reason::Entropy,
        Reason::Internal,
        Reason::Nowhere,
    ];

    /// Undoes `as u8`; `None` for 0, which means that all is well.
    pub fn from_code(code: u8) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| *reason as u8 == code)
    }

    /// Text for the warning.
    pub fn text(self) -> &'static str {
        match self {
            Reason::Off => "POLYCAST_MULTICAST switches it off",
            Reason::Setting => "POLYCAST_MULTICAST or POLYCAST_NET cannot be understood",
            Reason::Interface => "no interface can be used, or POLYCAST_NET excludes all",
            Reason::TooManyGroups => "the process has as many groups as it may have",
            Reason::TriedBefore => "it did not work a short while ago between these nodes",
            Reason::Socket => "a socket could not be opened",
            Reason::Conflict => "no group and port was free",
            Reason::Silence => "datagrams from some node do not arrive there",
            Reason::Entropy => "the system gives no random numbers",
            Reason::Internal => "polycast failed inside",
            Reason::Nowhere => "one node",
        }
    }
}
