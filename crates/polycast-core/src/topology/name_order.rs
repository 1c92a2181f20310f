use super::Topology;

impl Topology {
    /// The hosts in the order of their names, as people count: n2 before n10. It is the order in which launchers and batch
    /// systems hand out hosts when nobody asks for another one. Indices into [`Topology::hosts`].
    pub fn hosts_by_name(&self) -> Vec<usize> {
        let mut hosts: Vec<usize> = (0..self.hosts.len()).collect();
        hosts.sort_by_cached_key(|&host| counting_key(&self.hosts[host].name));
        hosts
    }
}

/// Sorts names as people count: n2 before n10, and n02 before n2 where nothing else tells them apart.
///
/// A name is cut behind each of its numbers; a number is its length without leading zeros and then its digits, so that
/// numbers of any length are compared without overflow.
pub fn counting_key(name: &str) -> (Vec<(&str, usize, &str)>, &str) {
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, behind) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let (digits, behind) =
            behind.split_at(behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len()));
        let number = digits.trim_start_matches('0');
        pieces.push((text, number.len(), number));
        rest = behind;
    }
    (pieces, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_as_people_count() {
        let sorted =
            ["a", "n0", "n02", "n2", "n10", "n10x2", "n10x11", "n99999999999999999999999", "rack1n3"];
        let mut names = sorted;
        names.reverse();
        names.sort_by_key(|name| counting_key(name));
        assert_eq!(names, sorted);
    }

    #[test]
    fn hosts_of_several_switches_are_mixed_by_name() {
        let topology = Topology::flat(["n10", "n2", "n1"].map(str::to_owned));
        assert_eq!(topology.hosts_by_name(), [2, 1, 0]);
    }
}
