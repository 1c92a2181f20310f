use std::fmt::Write;

use polycast_core::units::quantity::{count as counted, nanoseconds, rate, size};

use super::record::{AlikeLinks, Asked, Count, Found};
use polycast_core::collective::Collective;
use polycast_core::policy::trials::Sameness;

use super::summary::{CallsOf, SizeClass, Summary};

/// Most algorithms that the sentence names.
const MAX_NAMED: usize = 3;

/// Hint where calls may be that a program made all the same.
const PAST: &str = "; calls by handles of the MPI library (dlsym, RTLD_DEEPBIND) go past it";

impl Summary {
    /// Sentence for a person about broadcasts, and about other calls that were served.
    pub fn sentence(&self) -> String {
        self.sentence_of(0)
    }

    /// Sentence about the numbers of `rank`.
    pub fn sentence_of(&self, rank: u32) -> String {
        let is_told = |calls: &&CallsOf| match calls.collective {
            Collective::Broadcast => calls.were_any(),
            _ => !calls.served.is_empty(),
        };
        let sentence = |calls: &CallsOf| match calls.collective {
            Collective::Broadcast => calls.sentence() + &self.repair(),
            _ => calls.sentence(),
        };
        let sentences: Vec<String> = self.calls.iter().filter(is_told).map(sentence).collect();
        let left = Count::sum(self.calls.iter().map(CallsOf::all_left));
        match sentences[..] {
            [] if left.calls > 0 => {
                let calls = counted(left.calls, "call", "calls");
                format!("served none of {calls} of collectives: all were left to the MPI")
            }
            [] if !self.unserved.is_empty() => {
                format!("rank {rank} called no collective that polycast could serve")
            }
            [] => format!("rank {rank} called no collective that came by polycast{PAST}"),
            _ => sentences.join("; "),
        }
    }

    /// Clause about fragments that were repaired, if multicast was used.
    fn repair(&self) -> String {
        let mended = self.multicast("repaired") + self.multicast("restored");
        match (self.multicast("broadcasts"), mended) {
            (0, _) => String::new(),
            (_, 0) => "; nothing was repaired".to_owned(),
            _ => format!("; {mended} of {} fragments were repaired", mended + self.multicast("useful")),
        }
    }
}

impl Asked {
    /// Line about hosts with slow links, which hold the others up; none if links are alike.
    fn differing_links(&self) -> Option<String> {
        let (others, slow) = self.links.split_last()?;
        let rate = |alike: &AlikeLinks| rate(alike.bits_per_second);
        let slow: Vec<String> = slow.iter().map(|alike| format!("{} {}", alike.hosts, rate(alike))).collect();
        Some(format!(
            "links differ: {}, others {}: the slowest holds all up; `polycast doctor` measures them",
            slow.join(", "),
            rate(others)
        ))
    }
}

impl CallsOf {
    fn counted(&self, calls: u64) -> String {
        match self.collective {
            Collective::Broadcast => counted(calls, "broadcast", "broadcasts"),
            collective => counted(calls, "call", "calls") + " of " + &collective.function(),
        }
    }

    fn sentence(&self) -> String {
        let (served, left) = (self.all_served(), self.all_left());
        let all = self.counted(served.calls + left.calls);
        match served.calls {
            0 => format!("served none of {all} ({}): all were left to the MPI", bytes_in_time(left)),
            calls => format!(
                "served {calls} of {all} ({}) by {} in {}",
                size(served.bytes),
                self.algorithms(),
                nanoseconds(served.nanos as f64),
            ),
        }
    }

    /// Names of the algorithms that served, the most bytes first.
    fn algorithms(&self) -> String {
        let mut by_bytes: Vec<&(String, Count)> = self.served.iter().collect();
        by_bytes.sort_by_key(|(_, count)| std::cmp::Reverse(count.bytes));
        let mut names: Vec<String> = by_bytes.iter().take(MAX_NAMED).map(|(name, _)| name.clone()).collect();
        match by_bytes.len().saturating_sub(MAX_NAMED) {
            0 => {}
            others => names.push(counted(others as u64, "other", "others")),
        }
        match names.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            _ => names.concat(),
        }
    }
}

impl Summary {
    /// The report as lines.
    pub fn text(&self) -> String {
        let mut lines = vec![self.sentence()];
        lines.extend(self.notes.iter().cloned());
        for of in &self.calls {
            for (reason, count) in &of.left {
                let calls = of.counted(count.calls);
                lines.push(format!("left to the MPI: {calls} ({}): {reason}", bytes_in_time(*count)));
            }
        }
        for (operation, count) in &self.unserved {
            let calls = counted(count.calls, "call", "calls");
            lines.push(format!("cannot be served: {calls} of {operation} ({})", size(count.bytes)));
        }
        for (reason, communicators) in &self.without_multicast {
            let communicators = counted(*communicators, "communicator", "communicators");
            lines.push(format!("without multicast: {communicators}: {reason}"));
        }
        lines.extend(self.asked.iter().filter_map(Asked::differing_links));
        lines.extend(self.found.iter().map(found_line));
        lines.extend(self.repairs());
        let sizes = &self.broadcasts().sizes;
        if !sizes.is_empty() {
            let [size, by, calls, all, median, longest] =
                ["size on rank 0", "by", "calls", "in all", "median", "longest"];
            lines.push(format!("{size:>16} {by:<8}{calls:>7}{all:>10}{median:>10}{longest:>10}"));
        }
        lines.extend(sizes.iter().map(size_line));
        lines.extend(self.numbers());
        let mut text = String::new();
        for line in lines {
            let _ = writeln!(text, "polycast: report: {line}");
        }
        text
    }

    /// Line about repairs, from multicast's counters; none if multicast was not used.
    fn repairs(&self) -> Option<String> {
        self.multicast.as_ref().filter(|_| self.multicast("broadcasts") > 0)?;
        let of = |name: &str, one: &str, several: &str| counted(self.multicast(name), one, several);
        let ranks = if self.all_ranks.is_some() { "over all nodes" } else { "on this node" };
        Some(format!(
            "repairs {ranks}: {} brought by the ring, {} restored from parity, in {}; {} lost in full buffers",
            of("repaired", "fragment", "fragments"),
            self.multicast("restored"),
            of("penalty_broadcasts", "repair round", "repair rounds"),
            of("buffer_drops", "datagram", "datagrams"),
        ))
    }

    /// Names and numbers, as tests and scripts read them.
    fn numbers(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.choices.iter().map(|by| format!("choices {by}")).collect();
        for Asked { nodes, rate, latency, multicast_percent, .. } in &self.asked {
            let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
            let (rate, latency) = (known(rate), known(latency));
            lines.push(format!(
                "network nodes={nodes} rate={rate} latency={latency} multicast_percent={multicast_percent}"
            ));
        }
        for of in &self.calls {
            let (collective, stock) = (of.collective, of.all_left());
            let stock = (stock.calls > 0).then(|| ("stock".to_owned(), stock));
            for (name, Count { calls, bytes, nanos }) in of.served.iter().cloned().chain(stock) {
                let seconds = nanos as f64 / 1e9;
                lines.push(format!("{collective} {name} calls={calls} bytes={bytes} seconds={seconds:.9}"));
            }
        }
        for (operation, Count { calls, bytes, .. }) in &self.unserved {
            lines.push(format!("unserved {operation} calls={calls} bytes={bytes}"));
        }
        if let Some(multicast) = &self.multicast {
            let numbers: String = multicast.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            let (fallbacks, ranks) = (self.fallbacks(), self.ranks_of_multicast());
            lines.push(format!("multicast{numbers} fallbacks={fallbacks} ranks={ranks}"));
        }
        let Summary { attached, released, .. } = self;
        lines.push(format!("attached communicators={attached} released={released}"));
        lines
    }
}

fn found_line(found: &Found) -> String {
    let Found { collective, first_bytes, ranks, times, stays, is_tuned, is_remembered } = found;
    let times: Vec<String> =
        times.iter().map(|(way, nanos)| format!("{way} {}", nanoseconds(*nanos as f64))).collect();
    let sizes = match first_bytes {
        0 => size(0),
        first => format!("{}..{}", size(*first), size(Sameness::sizes_alike(*first).end() + 1)),
    };
    let sizes = sizes.replace(' ', "");
    let done = if *is_tuned { "tuned" } else { "compared" };
    let by = if *is_remembered { format!("{done} by an earlier job") } else { done.to_owned() };
    let of = match collective {
        Collective::Broadcast => sizes,
        Collective::Barrier => collective.to_string(),
        _ => format!("{collective} of {sizes}"),
    };
    format!("{by}: {of} on {ranks} ranks: {}: {stays} stays", times.join(", "))
}

fn bytes_in_time(count: Count) -> String {
    match count.nanos {
        0 => size(count.bytes),
        nanos => format!("{} in {}", size(count.bytes), nanoseconds(nanos as f64)),
    }
}

fn size_line(class: &SizeClass) -> String {
    let SizeClass { first_bytes, above_bytes, by, count, times } = class;
    let range =
        format!("{}..{}", size(*first_bytes), above_bytes.map_or(String::new(), size)).replace(' ', "");
    let [all, median, longest] =
        [count.nanos, times.median_nanos, times.longest_nanos].map(|nanos| nanoseconds(nanos as f64));
    format!("{range:>16} {:<8}{:>7}{all:>10}{median:>10}{longest:>10}", by.name(), count.calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compared_is_told_with_its_sizes() {
        let said = |collective, first_bytes| {
            found_line(&Found {
                collective,
                first_bytes,
                ranks: 4,
                times: Vec::new(),
                stays: polycast_core::policy::Choice::Stock,
                is_tuned: false,
                is_remembered: false,
            })
        };
        assert!(said(Collective::Broadcast, 0).starts_with("compared: 0B on 4 ranks:"));
        assert!(said(Collective::Reduce, 4096).starts_with("compared: reduce of 4KiB..8KiB on 4 ranks:"));
        assert!(said(Collective::Barrier, 0).starts_with("compared: barrier on 4 ranks:"));
    }
}
