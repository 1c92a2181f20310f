//! The hosts of the ranks, from a command line or a file.

use polycast_core::topology::expand_hostlist;

/// Ranks of a routine at the most.
const RANKS_MOST: usize = 65_536;

/// A host, with the number of its ranks if it says it.
pub type Listed = (String, Option<usize>);

/// Reads `node[00-15],login:2`.
pub fn of_list(list: &str) -> Result<Vec<Listed>, String> {
    let names = expand_hostlist(list, RANKS_MOST).map_err(|problem| format!("--hosts {list}: {problem}"))?;
    names.iter().map(|name| host(name).map_err(|problem| format!("--hosts {list}: {problem}"))).collect()
}

/// Reads a file as for mpiexec: a host per line, then perhaps the number of its ranks. Comments begin with `#`.
pub fn of_file(text: &str, file: &str) -> Result<Vec<Listed>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let hosts = lines.enumerate().filter(|(_, line)| !line.is_empty());
    let hosts: Result<Vec<Listed>, String> = hosts
        .map(|(index, line)| line_of_file(line).map_err(|problem| format!("{file}:{}: {problem}", index + 1)))
        .collect();
    match hosts? {
        hosts if hosts.is_empty() => Err(format!("{file}: expected a host in each line, found none")),
        hosts => Ok(hosts),
    }
}

/// `node00`, `node00:4` (MPICH) or `node00 slots=4 max_slots=8` (Open MPI).
fn line_of_file(line: &str) -> Result<Listed, String> {
    let mut words = line.split_whitespace();
    let (name, ranks) = host(words.next().unwrap_or(""))?;
    let slots = words.find_map(|word| word.strip_prefix("slots="));
    match slots {
        Some(slots) => Ok((name, Some(number(slots)?))),
        None => Ok((name, ranks)),
    }
}

fn host(text: &str) -> Result<Listed, String> {
    let (name, ranks) = match text.trim().split_once(':') {
        Some((name, ranks)) => (name, Some(number(ranks)?)),
        None => (text.trim(), None),
    };
    match name.is_empty() {
        true => Err(format!("expected a host such as node00 or node00:4, found {text:?}")),
        false => Ok((name.to_owned(), ranks)),
    }
}

fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|ranks| (1..=RANKS_MOST).contains(ranks));
    number.ok_or_else(|| format!("expected a number of ranks from 1 to {RANKS_MOST}, found {text:?}"))
}

/// The host of each rank.
pub fn of_ranks(listed: &[Listed], ranks_per_host: usize) -> Result<Vec<String>, String> {
    let counts = listed.iter().map(|(_, ranks)| ranks.unwrap_or(ranks_per_host));
    match counts.clone().sum() {
        0 | 1 => Err("one rank has nobody to send to; name more hosts, or raise --ranks-per-host".to_owned()),
        ranks if ranks > RANKS_MOST => Err(format!(
            "{ranks} ranks are too many: a routine is for at most {RANKS_MOST}; name fewer hosts or ranks"
        )),
        _ => Ok(listed
            .iter()
            .zip(counts)
            .flat_map(|((name, _), ranks)| std::iter::repeat_n(name.clone(), ranks))
            .collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(listed: Result<Vec<Listed>, String>, per_host: usize) -> Result<String, String> {
        of_ranks(&listed?, per_host).map(|hosts| hosts.join(" "))
    }

    #[test]
    fn lists() {
        for (list, per_host, expected) in [
            ("b,a", 1, "b a"),
            ("n[0-1],x", 2, "n0 n0 n1 n1 x x"),
            ("n[0-1]:3,x", 1, "n0 n0 n0 n1 n1 n1 x"),
            ("a,b,a", 1, "a b a"),
        ] {
            assert_eq!(ranks(of_list(list), per_host).as_deref(), Ok(expected), "{list}");
        }
    }

    #[test]
    fn files() {
        let text = "# ours\na\n\nb:2   # two\nc slots=3 max_slots=9\n";
        assert_eq!(ranks(of_file(text, "hosts"), 1).as_deref(), Ok("a b b c c c"));
    }

    #[test]
    fn mistakes_say_where_and_what() {
        for (problem, words) in [
            (of_list("a,,b").unwrap_err(), "--hosts a,,b"),
            (of_list("a:0,b").unwrap_err(), "from 1 to"),
            (of_list(":2").unwrap_err(), "node00:4"),
            (of_list("n[1-99999999]").unwrap_err(), "more names"),
            (of_file("a\nb slots=x\n", "hosts").unwrap_err(), "hosts:2: expected a number"),
            (of_file("# none\n", "hosts").unwrap_err(), "found none"),
            (ranks(of_list("a"), 1).unwrap_err(), "--ranks-per-host"),
            (ranks(of_list("n[1-65536],x"), 1).unwrap_err(), "more names"),
            (ranks(of_list("n[1-20]:4000"), 1).unwrap_err(), "80000 ranks are too many"),
        ] {
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn the_limit_is_reached_and_not_passed() {
        let ranks = |count| of_ranks(&[("a".to_owned(), Some(count))], 1).map(|hosts| hosts.len());
        assert_eq!((ranks(2), ranks(RANKS_MOST)), (Ok(2), Ok(RANKS_MOST)));
        assert!(ranks(1).is_err() && ranks(RANKS_MOST + 1).is_err());
    }
}
