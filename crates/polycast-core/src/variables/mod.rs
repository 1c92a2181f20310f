//! The environment variables of polycast: one list for the library, the tool and the documentation (docs/variables.md).

mod budget;
mod cache;
mod check;
mod report_to;
mod site;

pub use budget::budget;
pub use cache::cache_folder;
pub use check::problems;
pub use report_to::ReportTo;
pub use site::SiteFiles;

/// Words that switch on, in lower or upper case.
pub const ON: [&str; 4] = ["on", "1", "yes", "true"];
/// Words that switch off, in lower or upper case; doors/pmpi/say.c has the same.
pub const OFF: [&str; 4] = ["off", "0", "no", "false"];

/// Whether a value switches on.
pub fn is_on(value: &str) -> bool {
    ON.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// Whether a value switches off.
pub fn is_off(value: &str) -> bool {
    OFF.iter().any(|word| word.eq_ignore_ascii_case(value))
}

/// An environment variable that polycast reads. An empty value counts as none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name.
    pub name: &'static str,
    /// The program that reads the variable.
    pub reader: Reader,
    /// The values that the variable may have.
    pub values: Values,
    /// The behaviour without the variable, in words.
    pub default: &'static str,
    /// The effect of the variable, in words.
    pub meaning: &'static str,
}

/// The part of polycast that reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The library, in every rank; the tool hands the variable on to ranks.
    Library,
    /// The tool: where things are on its host.
    Tool,
}

/// The values that a variable may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A word of [`ON`] or [`OFF`], or one of these words.
    Switch {
        /// Words beside `on` and `off`.
        further: &'static [&'static str],
        /// The treatment of any other value, in words: `taken for on`.
        otherwise: &'static str,
    },
    /// A word of this list, in lower or upper case; any other value counts as none.
    Word(&'static [&'static str]),
    /// A destination of the report, as [`ReportTo`] reads it.
    ReportTo,
    /// A time, as [`budget`] reads it.
    Time,
    /// Text that only the variable's reader can judge; the field is how documentation writes it.
    Free(&'static str),
}

impl Values {
    /// Writes the values for documentation: `on, off, FILE`.
    pub fn written(self) -> String {
        match self {
            Values::Switch { further, .. } => [&["on", "off"], further].concat().join(", "),
            Values::Word(words) => words.join(", "),
            Values::ReportTo => "on, off, FILE".to_owned(),
            Values::Time => "TIME, on, off".to_owned(),
            Values::Free(written) => written.to_owned(),
        }
    }
}

/// Switches the library off.
pub const SWITCH: &str = "POLYCAST";
/// Forces an algorithm for broadcasts, whatever the table says.
pub const BROADCAST: &str = "POLYCAST_BCAST";
/// Variables that force an algorithm for the calls of a collective, whatever the table says, in the
/// order of [`crate::collective::Collective::ALL`].
pub const FORCED: [&str; 8] = [
    BROADCAST,
    "POLYCAST_SCATTER",
    "POLYCAST_GATHER",
    "POLYCAST_ALLGATHER",
    "POLYCAST_ALLTOALL",
    "POLYCAST_BARRIER",
    "POLYCAST_REDUCE",
    "POLYCAST_ALLREDUCE",
];
/// A file with rules.
pub const TABLE: &str = "POLYCAST_TABLE";
/// A file with switches and hosts, or `off`.
pub const TOPOLOGY: &str = "POLYCAST_TOPOLOGY";
/// A file with measured parameters.
pub const PARAMETERS: &str = "POLYCAST_PARAMS";
/// Switches multicast off, or chooses one of [`MULTICAST_PROTOCOLS`].
pub const MULTICAST: &str = "POLYCAST_MULTICAST";
/// Switches trials off, in which what the rules choose is compared with the MPI.
pub const TRIALS: &str = "POLYCAST_TRIALS";
/// The time for which a job may measure which ways serve it best.
pub const TUNE: &str = "POLYCAST_TUNE";
/// The sums that are served, by a word of [`SERVED_SUMS`].
pub const SUMS: &str = "POLYCAST_SUMS";
/// The words of [`SUMS`], in the order of [`crate::policy::ServedSums::ALL`].
pub const SERVED_SUMS: [&str; 3] = ["auto", "canonical", "mpi"];
/// The folder in which jobs leave each other what their trials found.
pub const CACHE: &str = "POLYCAST_CACHE";
/// Values of [`MULTICAST`] besides on and off.
pub const MULTICAST_PROTOCOLS: [&str; 4] = ["verbs", "ipv4", "ipv4-global", "ipv6"];
/// Switches memory off that the ranks of a node share.
pub const SHARED_MEMORY: &str = "POLYCAST_SHARED_MEMORY";
/// Chooses what waiting ranks do, by a word of [`WAITING`].
pub const WAIT: &str = "POLYCAST_WAIT";
/// The words of [`WAIT`], in the order of its documentation.
pub const WAITING: [&str; 3] = ["spin", "yield", "sleep"];
/// Chooses the interface that multicast uses.
pub const NET: &str = "POLYCAST_NET";
/// The MADCAP server to ask for a group.
pub const MADCAP: &str = "POLYCAST_MADCAP";
/// The ports of multicast, and of copies.
pub const PORTS: &str = "POLYCAST_PORTS";
/// The block of addresses that multicast groups are drawn from.
pub const GROUPS: &str = "POLYCAST_GROUPS";
/// How many routers multicast passes, and one more.
pub const HOPS: &str = "POLYCAST_TTL";
/// The destination of the report.
pub const REPORT: &str = "POLYCAST_REPORT";
/// The folder in which ranks leave what they record of their calls.
pub const TRACE: &str = "POLYCAST_TRACE";
/// Set by the tool once it has said what is wrong with the variables.
pub const WARNED: &str = "POLYCAST_WARNED";
/// Set by `polycast run --report`: the name of the socket through which a report comes of a job that ends early.
pub const WITNESS: &str = "POLYCAST_WITNESS";
/// The folder of the libraries.
pub const LIBRARY_DIRECTORY: &str = "POLYCAST_LIBDIR";
/// The folder in which labs keep their state.
pub const LAB_DIRECTORY: &str = "POLYCAST_LAB_DIRECTORY";
/// The tool that a lab starts again.
pub const TOOL: &str = "POLYCAST_TOOL";

/// Describes a variable of [`FORCED`] but the broadcast's; `collective` is its place in that list.
const fn forced(collective: usize, meaning: &'static str) -> Variable {
    let (reader, values) = (Reader::Library, Values::Free("ALGORITHM, stock"));
    Variable { name: FORCED[collective], reader, values, default: "the table chooses", meaning }
}

/// All variables. Names that begin with `POLYCAST_TEST` are left to polycast's own tests.
pub const ALL: [Variable; 31] = [
    Variable {
        name: SWITCH,
        reader: Reader::Library,
        values: Values::Switch { further: &[], otherwise: "taken for on" },
        default: "on",
        meaning: "`off`: every call goes to the MPI, as if polycast were not there",
    },
    Variable {
        name: BROADCAST,
        reader: Reader::Library,
        values: Values::Free("ALGORITHM, stock"),
        default: "the table chooses",
        meaning: "one algorithm for all broadcasts, with its parameters: `chain:segment=8KiB`",
    },
    forced(1, "the same for `MPI_Scatter`"),
    forced(2, "the same for `MPI_Gather`"),
    forced(3, "the same for `MPI_Allgather` and `MPI_Allgatherv`"),
    forced(4, "the same for `MPI_Alltoall`"),
    forced(5, "the same for `MPI_Barrier`"),
    forced(6, "the same for `MPI_Reduce`; `stock`: the MPI combines, in its own order"),
    forced(7, "the same for `MPI_Allreduce`; `stock`: the MPI combines, in its own order"),
    Variable {
        name: TABLE,
        reader: Reader::Library,
        values: Values::Free("FILE"),
        default: "the table that is built in",
        meaning: "rules that choose algorithms by ranks, nodes and bytes",
    },
    Variable {
        name: TOPOLOGY,
        reader: Reader::Library,
        values: Values::Free("FILE, off"),
        default: "what Slurm tells the ranks, else one switch",
        meaning: "the switches and hosts; `off`: all hosts are taken to be on one switch, and their ranks in the order of their numbers",
    },
    Variable {
        name: PARAMETERS,
        reader: Reader::Library,
        values: Values::Free("FILE"),
        default: "tables alone choose",
        meaning: "times that `polycast measure` found: predictions choose among trees",
    },
    Variable {
        name: SUMS,
        reader: Reader::Library,
        values: Values::Word(&SERVED_SUMS),
        default: "what the table says, else auto",
        meaning: "which reductions are served whose bits depend on the order: `auto` those for which a rule names a way that keeps the order of sums, `canonical` all, from the first call on, `mpi` none",
    },
    Variable {
        name: TRIALS,
        reader: Reader::Library,
        values: Values::Switch { further: &[], otherwise: "taken for on" },
        default: "on",
        meaning: "the first calls of each size try what polycast chooses and the MPI by turns, and the faster one stays; `off`: the rules alone choose",
    },
    Variable {
        name: TUNE,
        reader: Reader::Library,
        values: Values::Time,
        default: "off",
        meaning: "a time such as `20s`: before the first call of each size all ranks measure together which way serves it best, for so long in all; later jobs read it. `on` reads alone",
    },
    Variable {
        name: CACHE,
        reader: Reader::Library,
        values: Values::Free("DIRECTORY, off"),
        default: "`polycast` in the user's folder of caches",
        meaning: "where jobs leave each other what their trials found; rank 0's counts",
    },
    Variable {
        name: SHARED_MEMORY,
        reader: Reader::Library,
        values: Values::Switch { further: &[], otherwise: "taken for on" },
        default: "on",
        meaning: "whether the ranks of a node share memory of polycast's; `off` on any rank: none do; broadcasts by multicast are handed on by messages, for the rest the next rule decides, or the MPI serves",
    },
    Variable {
        name: WAIT,
        reader: Reader::Library,
        values: Values::Word(&WAITING),
        default: "by whether ranks outnumber processors",
        meaning: "what a rank does that waits in a call of polycast's: `spin` keeps the processor, `yield` lets others go first, `sleep` sleeps early, as where ranks outnumber processors",
    },
    Variable {
        name: MULTICAST,
        reader: Reader::Library,
        values: Values::Switch {
            further: &MULTICAST_PROTOCOLS,
            otherwise: "trees serve in place of multicast",
        },
        default: "on",
        meaning: "what multicast goes over; `on`: InfiniBand or RoCE where all nodes have a device (`verbs`), else `ipv4`; `ipv4-global` draws groups from 225.0.1.0 to 238.255.255.255 without 232 and 233; `off`: trees serve",
    },
    Variable {
        name: NET,
        reader: Reader::Library,
        values: Values::Free("eth0, =eth0, ^docker,veth"),
        default: "the MPI's own, else the default route's, else the fastest",
        meaning: "the interface of multicast: names that begin so, exactly this one, none of these",
    },
    Variable {
        name: MADCAP,
        reader: Reader::Library,
        values: Values::Free("HOST, HOST:PORT"),
        default: "a random group",
        meaning: "the server that gives out multicast addresses; rank 0's counts",
    },
    Variable {
        name: PORTS,
        reader: Reader::Library,
        values: Values::Free("FIRST-LAST"),
        default: "UDP: random in 5000-32767; TCP, of copies: the kernel's",
        meaning: "the ports of multicast, and those that `polycast cp` listens at, for firewalls: `20000-20099`; rank 0's count",
    },
    Variable {
        name: GROUPS,
        reader: Reader::Library,
        values: Values::Free("ADDRESS/BITS"),
        default: "239.192.0.0/14; ff12::8000:0/97",
        meaning: "the block of addresses that multicast groups are drawn from, of the protocol that is used: `239.192.7.0/24`; rank 0's counts",
    },
    Variable {
        name: HOPS,
        reader: Reader::Library,
        values: Values::Free("1 to 255"),
        default: "1",
        meaning: "time to live of multicast datagrams: 1 stays in the subnet, each router that is to pass them on needs one more, and must route multicast",
    },
    Variable {
        name: REPORT,
        reader: Reader::Library,
        values: Values::ReportTo,
        default: "off",
        meaning: "what polycast did, when the job ends: on standard error, or as JSON in a file",
    },
    Variable {
        name: TRACE,
        reader: Reader::Library,
        values: Values::Free("DIRECTORY, off"),
        default: "off",
        meaning: "each rank leaves there when its calls began and returned, who served them, and what they waited for: `polycast report` draws it",
    },
    Variable {
        name: WARNED,
        reader: Reader::Library,
        values: Values::Switch { further: &[], otherwise: "taken for off" },
        default: "off",
        meaning: "set by the tool that has said what is wrong with these variables: rank 0 does not say it again",
    },
    Variable {
        name: WITNESS,
        reader: Reader::Library,
        values: Values::Free("NAME"),
        default: "standard error",
        meaning: "set by `polycast run --report`: where on its host it takes the report of a job that ends early",
    },
    Variable {
        name: LIBRARY_DIRECTORY,
        reader: Reader::Tool,
        values: Values::Free("DIRECTORY"),
        default: "beside the tool",
        meaning: "where `libpolycast-mpi.so` and its doors are",
    },
    Variable {
        name: LAB_DIRECTORY,
        reader: Reader::Tool,
        values: Values::Free("DIRECTORY"),
        default: "one of this user's",
        meaning: "where labs keep their state",
    },
    Variable {
        name: TOOL,
        reader: Reader::Tool,
        values: Values::Free("FILE"),
        default: "the running tool",
        meaning: "the tool that a lab starts on its hosts, for programs that use labs as a Rust library",
    },
];

/// The variable of this name.
pub fn find(name: &str) -> Option<&'static Variable> {
    ALL.iter().find(|variable| variable.name == name)
}
