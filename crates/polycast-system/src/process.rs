use std::fs;

/// A process. Numbers are used again; with the time of its start it is the only one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The number of the process.
    pub pid: i32,
    /// The time of its start, in clock ticks after boot.
    pub start_ticks: u64,
}

/// What `/proc` shows of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The process.
    pub process: Process,
    /// The number of its parent.
    pub parent: i32,
    /// True if the process has ended, and only waits for its parent to hear of it.
    pub has_ended: bool,
}

impl Status {
    /// The status of the process of this number; `None` if there is none.
    pub fn read(pid: i32) -> Option<Status> {
        Status::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The status of every process.
    pub fn all() -> impl Iterator<Item = Status> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Status::read(entry.file_name().to_str()?.parse().ok()?))
    }

    fn parse(pid: i32, stat: &str) -> Option<Status> {
        // The second field is a name that may hold spaces and parentheses; fields are counted after its end.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let has_ended = matches!(*fields.first()?, "Z" | "X");
        let (parent, start_ticks) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
        Some(Status { process: Process { pid, start_ticks }, parent, has_ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 77 19";
        let read = |name: &str, state: &str| Status::parse(5, &format!("5 ({name}) {state} {rest}"));
        let expected = Status { process: Process { pid: 5, start_ticks: 77 }, parent: 1, has_ended: false };
        assert_eq!(read("sh", "S"), Some(expected));
        assert_eq!(read("a) Z (b", "R"), Some(expected));
        assert_eq!(read("sh", "Z"), Some(Status { has_ended: true, ..expected }));
        assert_eq!(Status::parse(5, "5 (sh) S 1"), None);
    }

    #[test]
    fn this_process_is_among_all() {
        let me = Status::read(std::process::id() as i32).unwrap();
        assert!(!me.has_ended && Status::all().any(|status| status == me));
        assert_eq!(Status::read(i32::MAX), None);
    }
}
