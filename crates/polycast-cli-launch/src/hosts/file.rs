//! Files of hosts, as mpiexec of Open MPI (`a slots=4`) and of MPICH and Intel MPI (`a:4`) read them.

use std::fs;
use std::path::Path;

use polycast_core::topology::is_same_name;

use super::{HostsError, Listed, number_of_ranks, one};

/// Reads a file of hosts.
pub fn read_file(file: &Path) -> Result<Vec<Listed>, HostsError> {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => parse_file(&text, &name),
        Err(error) => Err(HostsError::UnreadableFile { file: name, problem: error.to_string() }),
    }
}

/// Reads a host per line, with the number of its ranks behind it or not; what follows a `#` is a comment. A host that has
/// several lines takes the ranks of all of them, one where a line does not say how many, as batch systems write their
/// files; it stands where it came first.
fn parse_file(text: &str, file: &str) -> Result<Vec<Listed>, HostsError> {
    let mut hosts: Vec<Listed> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let unreadable =
            || HostsError::Line { file: file.to_owned(), line: index + 1, found: line.to_owned() };
        let host = of_line(line).ok_or_else(unreadable)?;
        match hosts.iter_mut().find(|known| is_same_name(&known.name, &host.name)) {
            Some(known) => known.ranks = Some(known.ranks.unwrap_or(1) + host.ranks.unwrap_or(1)),
            None => hosts.push(host),
        }
    }
    match hosts.is_empty() {
        true => Err(HostsError::EmptyFile { file: file.to_owned() }),
        false => Ok(hosts),
    }
}

/// The other words of a line (`max_slots=8`, `binding=…`) say nothing about how many ranks there are.
fn of_line(line: &str) -> Option<Listed> {
    let mut words = line.split_whitespace();
    let mut host = one(words.next()?)?;
    // Open MPI takes spaces around the sign, and `cpu` or `count` for the word.
    let rest = words.collect::<Vec<_>>().join(" ").replace(" =", "=").replace("= ", "=");
    let slots = rest.split(' ').find_map(|word| match word.split_once('=')? {
        ("slots" | "cpu" | "count", number) => Some(number),
        _ => None,
    });
    if let Some(number) = slots {
        host.ranks = Some(number_of_ranks(number)?);
    }
    Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> Result<String, String> {
        let hosts = parse_file(text, "hosts").map_err(|error| error.to_string())?;
        let shown = hosts.iter().map(|host| match host.ranks {
            Some(ranks) => format!("{}:{ranks}", host.name),
            None => host.name.clone(),
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn both_ways_of_writing_are_read() {
        let text =
            "# ours\na\n\nb:2   # two\nc slots=3 max_slots=9\nd slots = 4\ne:5 binding=none\nf max_slots=2\n";
        assert_eq!(hosts(text).as_deref(), Ok("a b:2 c:3 d:4 e:5 f"));
    }

    #[test]
    fn lines_of_one_host_add_up() {
        assert_eq!(hosts("n1\nn0\nn1\nn1\n").as_deref(), Ok("n1:3 n0"));
        assert_eq!(hosts("a:2\nb\na slots=3\n").as_deref(), Ok("a:5 b"));
        assert_eq!(hosts("N1:2\r\nb\r\nn1 slots=3\r\n").as_deref(), Ok("N1:5 b"));
    }

    #[test]
    fn mistakes_say_where_and_what() {
        for (text, words) in [
            ("a\nb slots=x\n", "hosts:2: expected `host`"),
            ("a:0\n", "hosts:1:"),
            ("-oProxyCommand=x\n", "hosts:1:"),
            ("# none\n", "found none"),
        ] {
            let problem = hosts(text).unwrap_err();
            assert!(problem.contains(words), "{problem}");
        }
    }
}
