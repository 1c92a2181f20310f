//! What the kernel says of caches and NUMA nodes around the processors that this process is bound to.
//!
//! ```text
//!   cpu/cpuN/topology/core_siblings_list         the package         node/node*/cpulist                         the NUMA node
//!   cpu/cpuN/topology/thread_siblings_list       the core            cpu/cpuN/cache/index*/shared_cpu_list      the cache of the highest level
//! ```
//! A file that is not there, or says something else, is as if nothing were known of that.

use std::fs;
use std::path::Path;

use polycast_core::topology::{Locality, lowest_around};

/// Caches of a processor that are looked at.
const MAX_CACHES: u32 = 16;

/// What the files below `root` say of these processors.
pub fn read(root: &Path, bound: &[u32]) -> Locality {
    let Some(first) = bound.first() else { return Locality::default() };
    let text = |path: &str| fs::read_to_string(root.join(path)).ok();
    let of_first = |file: &str| text(&format!("cpu/cpu{first}/{file}"));
    let around_all = |list: &String| lowest_around(bound, list).is_some();
    let package = of_first("topology/core_siblings_list");
    // Of a rank that may go from one package to another the rest is not known either.
    if package.as_ref().is_some_and(|list| !around_all(list)) {
        return Locality::default();
    }
    let nodes = fs::read_dir(root.join("node")).into_iter().flatten().flatten();
    let lists = nodes.filter_map(|node| fs::read_to_string(node.path().join("cpulist")).ok());
    let node = lists.into_iter().find(around_all);
    let of_cache = |cache: u32, file: &str| of_first(&format!("cache/index{cache}/{file}"));
    let kinds = (0..MAX_CACHES).map_while(|cache| Some((cache, of_cache(cache, "type")?)));
    let for_data = kinds.filter(|(_, kind)| kind.trim() != "Instruction");
    let levels = for_data
        .filter_map(|(cache, _)| Some((of_cache(cache, "level")?.trim().parse::<u32>().ok()?, cache)));
    let cache = levels.max().and_then(|(_, cache)| of_cache(cache, "shared_cpu_list"));
    Locality::new(bound, [package, node, cache, of_first("topology/thread_siblings_list")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use polycast_core::topology::LEVELS;
    use tempfile::TempDir;

    /// Two packages, a NUMA node each, of two last caches, of two cores, of two processors: N and N + 8.
    fn machine() -> TempDir {
        let folder = TempDir::new().unwrap();
        let pairs = |first: u32, last: u32| format!("{first}-{last},{}-{}\n", first + 8, last + 8);
        for processor in 0..16u32 {
            let core = processor % 8;
            let (package, cache) = (core / 4 * 4, core / 2 * 2);
            let alone = format!("{core},{}\n", core + 8);
            write(
                &folder,
                &format!("cpu/cpu{processor}/topology/core_siblings_list"),
                &pairs(package, package + 3),
            );
            write(&folder, &format!("cpu/cpu{processor}/topology/thread_siblings_list"), &alone);
            let last = pairs(cache, cache + 1);
            let caches = [
                ("1", "Data", &alone),
                ("1", "Instruction", &alone),
                ("3", "Unified", &last),
                ("2", "Unified", &alone),
            ];
            for (index, (level, of, list)) in caches.into_iter().enumerate() {
                let file = |name: &str| format!("cpu/cpu{processor}/cache/index{index}/{name}");
                write(&folder, &file("level"), &format!("{level}\n"));
                write(&folder, &file("type"), &format!("{of}\n"));
                write(&folder, &file("shared_cpu_list"), list);
            }
        }
        write(&folder, "node/node0/cpulist", &pairs(0, 3));
        write(&folder, "node/node1/cpulist", &pairs(4, 7));
        // Memory alone.
        write(&folder, "node/node2/cpulist", "\n");
        write(&folder, "node/online", "0-2\n");
        folder
    }

    fn write(folder: &TempDir, file: &str, text: &str) {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The lowest processor of package, NUMA node, last cache and core.
    fn places(folder: &TempDir, bound: &[u32]) -> [Option<u64>; LEVELS] {
        let bits = read(folder.path(), bound).to_bits();
        [48, 32, 16, 0].map(|shift| (bits >> shift & 0xffff).checked_sub(1))
    }

    const NONE: [Option<u64>; LEVELS] = [None; LEVELS];

    #[test]
    fn a_rank_is_in_what_all_its_processors_share() {
        let folder = machine();
        assert_eq!(places(&folder, &[7]), [Some(4), Some(4), Some(6), Some(7)]);
        assert_eq!(places(&folder, &[7, 15]), [Some(4), Some(4), Some(6), Some(7)], "both of a core");
        assert_eq!(places(&folder, &[6, 7]), [Some(4), Some(4), Some(6), None]);
        assert_eq!(places(&folder, &[4, 5, 6, 7]), [Some(4), Some(4), None, None]);
        assert_eq!(places(&folder, &[3, 4]), NONE);
        assert_eq!(places(&folder, &(0..16).collect::<Vec<_>>()), NONE);
        assert_eq!(places(&folder, &[]), NONE);
        assert_eq!(places(&folder, &[16]), NONE, "the kernel does not know it");
    }

    #[test]
    fn what_is_missing_or_damaged_is_not_known() {
        let folder = machine();
        write(&folder, "cpu/cpu7/cache/index2/level", "three");
        assert_eq!(places(&folder, &[7]), [Some(4), Some(4), Some(7), Some(7)], "the next level is the last");
        write(&folder, "cpu/cpu7/cache/index3/shared_cpu_list", "\u{fffd},,");
        write(&folder, "node/node1/cpulist", "4-");
        assert_eq!(places(&folder, &[7]), [Some(4), None, None, Some(7)]);
        fs::write(folder.path().join("cpu/cpu7/topology/core_siblings_list"), [0xff, 0xfe]).unwrap();
        fs::remove_dir_all(folder.path().join("cpu/cpu7/cache")).unwrap();
        assert_eq!(places(&folder, &[7]), [None, None, None, Some(7)]);
        fs::remove_dir_all(folder.path().join("cpu/cpu7")).unwrap();
        assert_eq!(places(&folder, &[7]), NONE);
        assert_eq!(places(&TempDir::new().unwrap(), &[0]), NONE);
    }

    /// The kernel takes a processor that goes offline out of all lists, with its caches.
    #[test]
    fn processors_that_are_offline_are_in_no_list() {
        let folder = machine();
        fs::remove_dir_all(folder.path().join("cpu/cpu6/cache")).unwrap();
        fs::remove_dir_all(folder.path().join("cpu/cpu6/topology")).unwrap();
        for processor in [7, 15, 14] {
            write(&folder, &format!("cpu/cpu{processor}/cache/index2/shared_cpu_list"), "7,14-15\n");
        }
        write(&folder, "cpu/cpu14/topology/thread_siblings_list", "14\n");
        assert_eq!(places(&folder, &[7, 15]), [Some(4), Some(4), Some(7), Some(7)]);
        assert_eq!(places(&folder, &[14]), [Some(4), Some(4), Some(7), Some(14)]);
        assert_eq!(places(&folder, &[6]), [None, Some(4), None, None]);
    }

    /// A processor bound to which nothing else is known: whatever this kernel says must do.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn this_machine_is_read() {
        let bound = crate::machine::bound();
        let _ = read(Path::new(crate::machine::SYSTEM), &bound);
    }
}
