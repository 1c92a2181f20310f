//! The place of this process on its host, as far as it is bound.

use std::fs;
use std::path::Path;

use polycast_core::topology::Locality;

/// Reads the place of processors from the files below `root`.
pub fn read(root: &Path, bound: &[u32]) -> Locality {
    Locality::find(bound, &|file| fs::read_to_string(root.join(file)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        write(&folder, "node/has_cpu", "0-1\n");
        folder
    }

    fn write(folder: &TempDir, file: &str, text: &str) {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The lowest processor of package, NUMA node, last cache and core.
    fn places(folder: &TempDir, bound: &[u32]) -> [Option<u64>; 4] {
        let bits = read(folder.path(), bound).to_bits();
        [36, 24, 12, 0].map(|shift| (bits >> shift & 0xfff).checked_sub(1))
    }

    const NONE: [Option<u64>; 4] = [None; 4];

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
        write(&folder, "node/has_cpu", "0-4294967295");
        assert_eq!(places(&folder, &[1]), [Some(0), Some(0), Some(0), Some(1)]);
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
