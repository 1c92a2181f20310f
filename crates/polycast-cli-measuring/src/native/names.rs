use std::fmt;

use polycast_core::collective::Collective;
use polycast_core::units::Bytes;

/// An algorithm of the library's own, with its parameters; 0: as the library has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// Open MPI's number among those for the collective, or the place among MPICH's; 0: the library decides.
    pub algorithm: u32,
    /// The children of a rank, where there is a choice.
    pub fan: u32,
    /// Bytes of a segment.
    pub segment: u64,
    /// The library's name.
    pub name: &'static str,
}

impl Way {
    /// The library decides.
    pub const STOCK: Way = Way { algorithm: 0, fan: 0, segment: 0, name: "ignore" };

    /// The way with the algorithm of that number, if the collective has such a one.
    pub fn new(collective: Collective, algorithm: u32, fan: u32, segment: u64) -> Option<Way> {
        if algorithm == 0 {
            return Some(Way::STOCK);
        }
        let name = algorithms(collective).get(algorithm as usize - 1)?.0;
        // From Open MPI 5 on its rounds grow by that factor, and with less than 2 they never end.
        let fan = if (collective, name) == BRUCK { fan.max(2) } else { fan };
        Some(Way { algorithm, fan, segment, name })
    }

    /// The way with the algorithm of that name, if the collective has such a one.
    pub fn named(collective: Collective, name: &str, fan: u32, segment: u64) -> Option<Way> {
        if name == Way::STOCK.name {
            return Some(Way::STOCK);
        }
        let name = if (collective, name) == (BRUCK.0, BRUCK_IN_JSON) { BRUCK.1 } else { name };
        let place = algorithms(collective).iter().position(|(known, _)| *known == name)?;
        Way::new(collective, place as u32 + 1, fan, segment)
    }

    /// True if the algorithm can send in segments.
    pub fn can_be_cut(self, collective: Collective) -> bool {
        let known =
            self.algorithm.checked_sub(1).and_then(|place| algorithms(collective).get(place as usize));
        known.is_some_and(|(_, takes)| *takes != Nothing)
    }

    /// Returns Open MPI 6's name for the algorithm.
    pub fn name_in_json(self, collective: Collective) -> &'static str {
        if (collective, self.name) == BRUCK { BRUCK_IN_JSON } else { self.name }
    }

    /// The variables by which Open MPI (3 to 5) serves all calls of the collective so.
    pub fn variables(self, collective: Collective) -> Vec<(String, String)> {
        if self == Way::STOCK {
            return Vec::new();
        }
        let of = format!("OMPI_MCA_coll_tuned_{collective}_algorithm");
        let mut set = vec![
            ("OMPI_MCA_coll_tuned_use_dynamic_rules".to_owned(), "1".to_owned()),
            (of.clone(), self.algorithm.to_string()),
        ];
        if self.segment > 0 {
            set.push((format!("{of}_segmentsize"), self.segment.to_string()));
        }
        if self.fan > 0 {
            let which = if self.name == "chain" { "chain" } else { "tree" };
            set.push((format!("{of}_{which}_fanout"), self.fan.to_string()));
        }
        set
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text =
            if *self == Way::STOCK { "as the library decides".to_owned() } else { self.name.to_owned() };
        if self.segment > 0 {
            text += &format!(", segments of {}", Bytes(self.segment));
        }
        if self.fan > 0 {
            text += &format!(", fan-out {}", self.fan);
        }
        f.pad(&text)
    }
}

/// The parameters that an algorithm takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    Segments,
    /// The size of segments and the number of children.
    SegmentsAndFan,
}
use Takes::{Nothing, Segments, SegmentsAndFan};

/// Open MPI's algorithms from number 1 on (ompi/mca/coll/tuned/coll_tuned_*_decision.c of 4.1), but those for two ranks alone at the end.
fn algorithms(collective: Collective) -> &'static [(&'static str, Takes)] {
    match collective {
        Collective::Broadcast => &[
            ("basic_linear", Nothing),
            ("chain", SegmentsAndFan),
            ("pipeline", Segments),
            ("split_binary_tree", Segments),
            ("binary_tree", Segments),
            ("binomial", Segments),
            ("knomial", SegmentsAndFan),
            ("scatter_allgather", Nothing),
            ("scatter_allgather_ring", Nothing),
        ],
        Collective::Scatter => &[("basic_linear", Nothing), ("binomial", Nothing), ("linear_nb", Nothing)],
        Collective::Gather => &[("basic_linear", Nothing), ("binomial", Nothing), ("linear_sync", Segments)],
        Collective::Allgather => &[
            ("linear", Nothing),
            ("bruck", Nothing),
            ("recursive_doubling", Nothing),
            ("ring", Nothing),
            ("neighbor", Nothing),
        ],
        Collective::Alltoall => &[
            ("linear", Nothing),
            ("pairwise", Nothing),
            ("modified_bruck", Nothing),
            ("linear_sync", Nothing),
        ],
        Collective::Barrier => &[
            ("linear", Nothing),
            ("double_ring", Nothing),
            ("recursive_doubling", Nothing),
            ("bruck", Nothing),
        ],
        Collective::Reduce => &[
            ("linear", Nothing),
            ("chain", SegmentsAndFan),
            ("pipeline", Segments),
            ("binary", Segments),
            ("binomial", Segments),
            ("in-order_binary", Segments),
            ("rabenseifner", Nothing),
        ],
        Collective::Allreduce => &[
            ("basic_linear", Nothing),
            ("nonoverlapping", Nothing),
            ("recursive_doubling", Nothing),
            ("ring", Nothing),
            ("segmented_ring", Segments),
            ("rabenseifner", Nothing),
        ],
    }
}

/// Bruck's allgather, which has another name since Open MPI 5, where the fan-out counts.
const BRUCK: (Collective, &str) = (Collective::Allgather, "bruck");
const BRUCK_IN_JSON: &str = "bruck-k-fanout";
/// The k of Open MPI's k-nomial trees, whatever a rule says: only a variable for all calls changes it.
pub const RADIX: u32 = 4;

/// Segments that are searched.
const SEARCHED: [u64; 4] = [2 << 10, 8 << 10, 32 << 10, 128 << 10];
/// The numbers of children that are searched.
const FANS: [u32; 2] = [2, 4];

/// A library that has algorithms of its own and reads rules that choose among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Open MPI, 3 to 6.
    OpenMpi,
    /// MPICH, 4 and 5.
    Mpich,
}

/// MPICH's algorithms that need nothing to be told and that all its releases have (src/mpi/coll/*/*.c of 4.0), those for numbers of ranks that are
/// powers of two marked.
fn of_mpich(collective: Collective) -> &'static [(&'static str, bool)] {
    match collective {
        Collective::Broadcast => &[
            ("binomial", false),
            ("scatter_recursive_doubling_allgather", true),
            ("scatter_ring_allgather", false),
        ],
        Collective::Allgather => &[("brucks", false), ("recursive_doubling", true), ("ring", false)],
        Collective::Alltoall => &[("brucks", false), ("pairwise", false), ("scattered", false)],
        Collective::Reduce => &[("binomial", false), ("reduce_scatter_gather", false)],
        Collective::Allreduce => &[("recursive_doubling", false), ("reduce_scatter_allgather", false)],
        Collective::Scatter | Collective::Gather | Collective::Barrier => &[],
    }
}

impl Library {
    /// The algorithm of that name.
    pub fn named(self, collective: Collective, name: &str, fan: u32, segment: u64) -> Option<Way> {
        match self {
            Library::OpenMpi => Way::named(collective, name, fan, segment),
            Library::Mpich => {
                let place = of_mpich(collective).iter().position(|(known, _)| *known == name)?;
                let name = of_mpich(collective)[place].0;
                Some(Way { algorithm: place as u32 + 1, fan: 0, segment: 0, name })
            }
        }
    }

    /// Lists the ways that may be tried for messages of at most so many bytes on so many ranks, the
    /// library's own decision first.
    pub fn ways(self, collective: Collective, most_bytes: u64, ranks: u32) -> Vec<Way> {
        if self == Library::OpenMpi {
            return ways(collective, most_bytes);
        }
        let there =
            of_mpich(collective).iter().filter(|(_, is_for_power)| !is_for_power || ranks.is_power_of_two());
        let ours = there.filter_map(|(name, _)| self.named(collective, name, 0, 0));
        [Way::STOCK].into_iter().chain(ours).collect()
    }

    /// Returns the variables by which the library serves all calls of the collective this way.
    pub fn variables(self, way: Way, collective: Collective) -> Vec<(String, String)> {
        match self {
            Library::OpenMpi => way.variables(collective),
            Library::Mpich if way == Way::STOCK => Vec::new(),
            Library::Mpich => {
                let of = collective.to_string().to_uppercase();
                vec![(format!("MPIR_CVAR_{of}_INTRA_ALGORITHM"), way.name.to_owned())]
            }
        }
    }
}

/// Lists the ways that may be tried for messages of at most so many bytes, the library's own
/// decision first.
fn ways(collective: Collective, most_bytes: u64) -> Vec<Way> {
    let mut found = vec![Way::STOCK];
    for (place, (name, takes)) in algorithms(collective).iter().enumerate() {
        let mut add = |fan, segment| found.extend(Way::new(collective, place as u32 + 1, fan, segment));
        let segments = SEARCHED.into_iter().filter(|segment| *segment < most_bytes);
        match takes {
            Nothing => add(0, 0),
            Segments => [0].into_iter().chain(segments).for_each(|segment| add(0, segment)),
            SegmentsAndFan => {
                let fans = FANS.into_iter().filter(|fan| *name != "knomial" || *fan == RADIX);
                fans.for_each(|fan| segments.clone().for_each(|segment| add(fan, segment)));
            }
        }
    }
    found
}

/// Open MPI's numbers of collectives (ompi/mca/coll/base/coll_base_functions.h).
const NUMBERS: [(Collective, u32); 8] = [
    (Collective::Allgather, 0),
    (Collective::Allreduce, 2),
    (Collective::Alltoall, 3),
    (Collective::Barrier, 6),
    (Collective::Broadcast, 7),
    (Collective::Gather, 9),
    (Collective::Reduce, 11),
    (Collective::Scatter, 15),
];

pub fn number_of(collective: Collective) -> u32 {
    NUMBERS.iter().find(|(one, _)| *one == collective).map_or(0, |(_, number)| *number)
}

pub fn collective_of(number: u64) -> Option<Collective> {
    NUMBERS.iter().find(|(_, one)| u64::from(*one) == number).map(|(collective, _)| *collective)
}
