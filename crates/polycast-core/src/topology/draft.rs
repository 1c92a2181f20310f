use std::collections::HashMap;

use super::problem::{Problem, ProblemKind, TopologyError};
use super::{
    Host, Link, MAX_HOSTS, MAX_LINKS, MAX_NAME, MAX_SWITCHES, Reading, Topology, hostlist, spanning,
};

/// Switches, links and hosts as a description gives them, before it is known whether they form a
/// tree.
///
/// Readers of all formats fill one of these; what is wrong is collected, so that a user sees all of it at once.
pub(super) struct Draft {
    file: String,
    pub(super) switches: Vec<DraftSwitch>,
    pub(super) links: Vec<DraftLink>,
    pub(super) hosts: Vec<Host>,
    switch_by_name: HashMap<String, usize>,
    /// Index and line of each host.
    host_by_name: HashMap<String, (usize, usize)>,
    problems: Vec<Problem>,
    /// Hosts that are on another switch already, each with its lines; reported together in the end.
    doubled: Vec<(Doubled, String)>,
    /// Notes of the reader, as sentences; [`Topology::notes`] takes them over.
    pub(super) notes: Vec<String>,
    /// True if the source cannot know what is above the topmost switches, so they are joined as a
    /// matter of course.
    pub(super) is_open_above: bool,
}

/// A host that is described twice: its two switches and the lines that name them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Doubled {
    line: usize,
    first_line: usize,
    kept: usize,
    found: usize,
}

pub(super) struct DraftSwitch {
    pub(super) name: String,
    pub(super) line: usize,
}

/// A link between two switches.
pub(super) struct DraftLink {
    pub(super) upper: usize,
    pub(super) lower: usize,
    pub(super) link: Link,
    pub(super) line: usize,
}

impl Draft {
    pub(super) fn new(file: &str) -> Draft {
        Draft {
            file: file.to_owned(),
            switches: Vec::new(),
            links: Vec::new(),
            hosts: Vec::new(),
            switch_by_name: HashMap::new(),
            host_by_name: HashMap::new(),
            problems: Vec::new(),
            doubled: Vec::new(),
            notes: Vec::new(),
            is_open_above: false,
        }
    }

    pub(super) fn mistake(&mut self, line: usize, text: impl Into<String>) {
        self.problem(line, ProblemKind::Mistake, text.into());
    }

    pub(super) fn irregular(&mut self, line: usize, text: String) {
        self.problem(line, ProblemKind::Irregular, text);
    }

    fn problem(&mut self, line: usize, kind: ProblemKind, text: String) {
        self.problems.push(Problem { file: self.file.clone(), line, kind, text });
    }

    pub(super) fn switch(&self, name: &str) -> Option<usize> {
        self.switch_by_name.get(name).copied()
    }

    /// Adds a switch and gives its index, unless its name is wrong or taken.
    pub(super) fn add_switch(&mut self, line: usize, name: &str) -> Option<usize> {
        if let Err(text) = check_name(name) {
            self.mistake(line, text);
            return None;
        }
        if let Some(&first) = self.switch_by_name.get(name) {
            let first = self.switches[first].line;
            self.mistake(line, format!("switch {name} is described already{}", in_line(first)));
            return None;
        }
        let index = self.switches.len();
        if index >= MAX_SWITCHES {
            self.once(line, format!("expected at most {MAX_SWITCHES} switches, found more"));
            return None;
        }
        self.switch_by_name.insert(name.to_owned(), index);
        self.switches.push(DraftSwitch { name: name.to_owned(), line });
        Some(index)
    }

    /// Adds a link between two switches; `upper` is the one that stands above in the description.
    pub(super) fn add_link(&mut self, line: usize, upper: usize, lower: usize, link: Link) {
        if upper == lower {
            let name = &self.switches[upper].name;
            return self.mistake(line, format!("switch {name} has itself below it: that is a cycle"));
        }
        if self.links.len() >= MAX_LINKS {
            return self
                .once(line, format!("expected at most {MAX_LINKS} links between switches, found more"));
        }
        self.links.push(DraftLink { upper, lower, link, line });
    }

    pub(super) fn add_host(&mut self, line: usize, name: &str, switch: usize, link: Link) {
        if let Err(text) = check_name(name) {
            return self.mistake(line, text);
        }
        if let Some(&(first, first_line)) = self.host_by_name.get(name) {
            let doubled = Doubled { line, first_line, kept: self.hosts[first].switch, found: switch };
            return self.doubled.push((doubled, name.to_owned()));
        }
        if self.hosts.len() >= MAX_HOSTS {
            return self.once(line, format!("expected at most {MAX_HOSTS} hosts, found more"));
        }
        self.host_by_name.insert(name.to_owned(), (self.hosts.len(), line));
        self.hosts.push(Host { name: name.to_owned(), switch, link });
    }

    /// A mistake that would otherwise be reported for every entry that follows.
    fn once(&mut self, line: usize, text: String) {
        if self.problems.last().is_none_or(|last| last.text != text) {
            self.mistake(line, text);
        }
    }

    /// Tells of hosts that come again, those of one line together.
    fn tell_doubled(&mut self) {
        let doubled = std::mem::take(&mut self.doubled);
        for same in doubled.chunk_by(|(one, _), (next, _)| one == next) {
            let Doubled { line, first_line, kept, found } = same[0].0;
            let names = hostlist(&same.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>());
            let (kept, found) = (&self.switches[kept].name, &self.switches[found].name);
            let first = in_line(first_line);
            let text = match same.len() {
                1 => format!(
                    "host {names} is on switch {kept} already{first}: its link to {found} is left out"
                ),
                _ => format!(
                    "hosts {names} are on switch {kept} already{first}: their links to {found} are left out"
                ),
            };
            // Only a reader that goes on shows notes.
            self.notes.push(text.clone());
            self.irregular(line, text);
        }
    }

    /// True if something could not be understood, so that what follows from it is not worth a word.
    pub(super) fn is_mistaken(&self) -> bool {
        self.problems.iter().any(|problem| problem.kind == ProblemKind::Mistake)
    }

    /// The problems so far, for a description whose form as a tree does not matter.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.tell_doubled();
        self.problems
    }

    /// Makes the tree, or returns all problems of the description.
    pub(super) fn finish(mut self, reading: Reading) -> Result<Topology, TopologyError> {
        self.tell_doubled();
        // An entry that could not be read may be the one that had the hosts.
        if self.hosts.is_empty() && !self.is_mistaken() {
            self.mistake(0, "expected at least one host, found none");
        }
        // What a mistake has taken away would be reported as a hole in the tree.
        if !self.is_mistaken() {
            for (line, text) in spanning::irregularities(&self) {
                self.irregular(line, text);
            }
        }
        let is_irregular = !self.problems.is_empty();
        if is_irregular && (!reading.spanning_tree || self.is_mistaken()) {
            return Err(TopologyError::new(self.problems));
        }
        Ok(spanning::tree(self, is_irregular))
    }
}

/// Writes `, in line 7`, for the middle of a sentence; nothing if `line` is 0, where there are no
/// lines.
pub(super) fn in_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!(", in line {line}") }
}

/// Checks the name of a switch or host: names end up in hosts files, on command lines and in the
/// files of others.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && name.chars().all(plain)
    {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_NAME + 1).collect();
    Err(format!("expected a name of at most {MAX_NAME} letters, digits, - _ and ., found {shown:?}"))
}
