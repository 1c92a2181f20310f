//! Keys do not belong into core dumps, which land in folders and bug reports that others read.

use polycast_core::protocol::Key;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Keeps the memory of a key out of core dumps from now on. Where the kernel does not do it there is nothing to be done.
pub fn keep_out(key: &Key) {
    advise(key, Advice::LinuxDontDump);
}

/// Gives the kernel an advice about core dumps for the key's memory.
fn advise(key: &Key, advice: Advice) {
    if cfg!(miri) {
        // It has no madvise.
        return;
    }
    let (begin, bytes) = key.memory();
    // Where pages are larger than the key's memory, its neighbours are kept out, too.
    let before = begin.addr() % page_size();
    let begin = begin.wrapping_byte_sub(before);
    // SAFETY: this advice changes nothing but what a core dump has.
    let _ = unsafe { madvise(begin.cast_mut().cast(), before + bytes, advice) };
}

#[cfg(test)]
mod tests {
    use polycast_core::protocol::KEY_BYTES;

    use super::*;

    /// The flags that /proc/self/smaps has for the mapping of this address.
    fn flags(address: usize) -> String {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut is_it = false;
        for line in text.lines() {
            let ends = line.split_whitespace().next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            if let Some((Some(begin), Some(end))) = ends.map(|(begin, end)| (number(begin), number(end))) {
                is_it = (begin..end).contains(&address);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_it) {
                return flags.to_owned();
            }
        }
        panic!("no mapping of {address:#x}")
    }

    #[test]
    fn a_core_dump_has_no_key() {
        let key = Key::from_bytes([7; KEY_BYTES]);
        let (begin, bytes) = key.memory();
        // The memory may have been that of another test's key: what was said of it outlives its use.
        advise(&key, Advice::LinuxDoDump);
        assert!(!flags(begin.addr()).contains(" dd"), "so the test can fail");
        keep_out(&key);
        for at in [begin.addr(), begin.addr() + bytes - 1] {
            assert!(flags(at).contains(" dd"), "{}", flags(at));
        }
        assert_eq!(key.clone().memory(), (begin, bytes), "clones are the same memory");
    }
}
