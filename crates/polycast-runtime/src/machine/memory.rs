//! The memory that this process may still have, where that is known before it asks.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Bytes of the pages that `statm` counts.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Bytes left by the limits of this process, and by the files below `root`, which is /proc.
pub fn left(root: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
    let limits = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    let of_process = limits.into_iter().flatten().min().map(|limit| {
        // Of addresses; there are no fewer of them than of data.
        let pages = read("self/statm").split(' ').next().and_then(|word| word.parse::<u64>().ok());
        limit.saturating_sub(pages.unwrap_or(0).saturating_mul(page_bytes()))
    });
    let is_strict = read("sys/vm/overcommit_memory").trim() == "2";
    let of_machine = is_strict.then(|| promised(&read("meminfo"))).flatten();
    [of_process, of_machine].into_iter().flatten().min()
}

/// Bytes that the kernel may still promise, for kernels that promise no more than they have.
fn promised(meminfo: &str) -> Option<u64> {
    let kib = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some(kib("CommitLimit")?.saturating_sub(kib("Committed_AS")?).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_kernel_says_what_it_may_promise() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("sys/vm")).unwrap();
        let strict = folder.path().join("sys/vm/overcommit_memory");
        let meminfo = "MemTotal:       100 kB\nCommitLimit:     70 kB\nCommitted_AS:    30 kB\n";
        fs::write(folder.path().join("meminfo"), meminfo).unwrap();
        fs::write(&strict, "0\n").unwrap();
        assert_eq!(left(folder.path()), None, "tests run without a limit");
        fs::write(&strict, "2\n").unwrap();
        assert_eq!(left(folder.path()), Some(40 << 10));
        fs::write(folder.path().join("meminfo"), "CommitLimit: many\n").unwrap();
        assert_eq!(left(folder.path()), None);
    }
}
