use super::{Curve, ParametersError};
use crate::collective::Collective;

/// Curves of what is shared within a node that a parameter file may have.
pub const MAX_SHARING: usize = 64;

/// The fewest ranks that can share: one alone has nobody to share with.
const FEWEST_RANKS: u32 = 2;

/// The times of a collective among the ranks of one node, through the memory that they share, as
/// functions of the bytes: what the mixed-mode model needs to know of a node (Wu 2005, §4.5.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Sharing {
    /// The collective.
    pub collective: Collective,
    /// Ranks of the node, at least 2.
    pub ranks: u32,
    /// `smcc(m)`: from the call of the rank that has the data to the return of the last one, nothing else going on.
    pub cost: Curve,
    /// `ovp(m)`: by how much a message between nodes is delayed while as many bytes are shared beside it. The model takes no more
    /// than `smcc(m)` for it.
    pub penalty: Option<Curve>,
}

impl Sharing {
    /// The curves by their names in parameter files.
    pub fn curves(&self) -> [(&'static str, Option<&Curve>); 2] {
        [("cost", Some(&self.cost)), ("penalty", self.penalty.as_ref())]
    }

    /// `smcc(m)` in nanoseconds; 0 for no bytes: nothing is shared in no time.
    pub fn cost_ns(&self, bytes: u64) -> f64 {
        if bytes == 0 { 0.0 } else { self.cost.at(bytes) }
    }
}

/// Checks all sharing of a parameter file: how many entries there are, that each has ranks enough
/// and is there once, and that no time is negative. The error names no file.
pub(super) fn check(all: &[Sharing]) -> Result<(), ParametersError> {
    let error = |place: String, problem| ParametersError { file: "parameters".to_owned(), place, problem };
    if all.len() > MAX_SHARING {
        let problem = format!("expected at most {MAX_SHARING}, found {}", all.len());
        return Err(error("sharing".to_owned(), problem));
    }
    for (index, sharing) in all.iter().enumerate() {
        let Sharing { collective, ranks, .. } = sharing;
        if *ranks < FEWEST_RANKS {
            let problem = format!("expected at least {FEWEST_RANKS} ranks that share a node, found {ranks}");
            return Err(error(format!("sharing[{index}].ranks"), problem));
        }
        let is_same = |other: &Sharing| (other.collective, other.ranks) == (*collective, *ranks);
        if all[..index].iter().any(is_same) {
            let problem = format!("expected each once, found {collective} of {ranks} ranks again");
            return Err(error(format!("sharing[{index}]"), problem));
        }
        for (name, curve) in sharing.curves() {
            let points = curve.map_or(&[][..], Curve::points);
            if let Some(point) = points.iter().position(|point| point.ns < 0.0) {
                let problem = format!("expected a time that is not negative, found {} ns", points[point].ns);
                return Err(error(format!("sharing[{index}].{name}[{point}]"), problem));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;

    fn sharing(ranks: u32, ns: f64) -> Sharing {
        let cost = Curve::new(vec![Point::exact(1, ns)]).unwrap();
        Sharing { collective: Collective::Broadcast, ranks, cost, penalty: None }
    }

    #[test]
    fn limits() {
        let several =
            |count: usize| (0..count).map(|index| sharing(2 + index as u32, 1.0)).collect::<Vec<_>>();
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&several(MAX_SHARING)), Ok(()));
        let place = |all: &[Sharing]| check(all).unwrap_err().place;
        assert_eq!(place(&several(MAX_SHARING + 1)), "sharing");
        assert_eq!(place(&[sharing(1, 1.0)]), "sharing[0].ranks");
        assert_eq!(place(&[sharing(2, 1.0), sharing(4, 1.0), sharing(2, 3.0)]), "sharing[2]");
        assert_eq!(place(&[sharing(2, 1.0), sharing(4, -1.0)]), "sharing[1].cost[0]");
        let penalty = sharing(2, -1.0).cost.into();
        assert_eq!(place(&[Sharing { penalty, ..sharing(2, 1.0) }]), "sharing[0].penalty[0]");
    }

    #[test]
    fn nothing_is_shared_in_no_time() {
        assert_eq!([0, 1, 100].map(|bytes| sharing(2, 7.0).cost_ns(bytes)), [0.0, 7.0, 7.0]);
    }
}
