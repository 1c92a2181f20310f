//! The source: what there is to copy, and its blocks.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use polycast_copy::{Entry, Extent, Kind, Manifest, Moment, Name};
use rustix::fs::{SeekFrom, seek};

use super::backing::{Backing, open};
use super::message::Spoiled;
use super::store::Store;

/// The stamp of a file, equal while the file does not change: bytes, inode, and the two times of
/// change.
type Stamp = [i64; 6];

/// The files, folders and links that were found in the sources.
pub struct Scan {
    pub manifest: Manifest,
    pub places: HashMap<u32, PathBuf>,
    stamps: HashMap<u32, Stamp>,
    first_names: HashMap<(u64, u64), u32>,
    pub files: u64,
    pub folders: u64,
    pub links: u64,
    /// Paths in the sources that are neither plain files, folders nor links.
    pub skipped: Vec<String>,
    is_recursive: bool,
}

/// Lists files, and with `is_recursive` all that is in folders.
pub fn scan(sources: &[OsString], is_recursive: bool) -> Result<Scan, String> {
    let mut scan = Scan {
        manifest: Manifest::default(),
        places: HashMap::new(),
        stamps: HashMap::new(),
        first_names: HashMap::new(),
        files: 0,
        folders: 0,
        links: 0,
        skipped: Vec::new(),
        is_recursive,
    };
    for source in sources {
        let path = Path::new(source);
        // `folder/..` and `.` have names, too.
        let named = match path.file_name() {
            Some(name) => name.to_owned(),
            None => fs::canonicalize(path)
                .ok()
                .and_then(|path| path.file_name().map(ToOwned::to_owned))
                .ok_or_else(|| format!("{}: expected a file or folder with a name", path.display()))?,
        };
        // As cp does: what is named on the command line is followed unless folders are.
        let followed = if is_recursive { fs::symlink_metadata(path) } else { fs::metadata(path) };
        let metadata = followed.map_err(|error| format!("{}: {error}", path.display()))?;
        if metadata.is_dir() && !is_recursive {
            return Err(format!("{}: is a folder; -r copies it", path.display()));
        }
        if let Some(entry) = scan.add(None, named.as_bytes(), path, &metadata)? {
            // A link that is followed now is followed when the file is read again, which follows none.
            let place = if is_recursive { Ok(path.to_owned()) } else { fs::canonicalize(path) };
            scan.places.insert(entry, place.map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    if scan.manifest.entries().is_empty() {
        return Err(format!("expected files to copy, found none but {}", scan.skipped.join(", ")));
    }
    Ok(scan)
}

impl Scan {
    fn add(
        &mut self,
        parent: Option<u32>,
        name: &[u8],
        path: &Path,
        metadata: &Metadata,
    ) -> Result<Option<u32>, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let name = Name::new(name).ok_or_else(|| wrong(&"expected a name of 1 to 255 bytes"))?;
        let file_type = metadata.file_type();
        let identity = (metadata.dev(), metadata.ino());
        let kind = if file_type.is_dir() {
            self.folders += 1;
            Kind::Folder
        } else if file_type.is_symlink() {
            self.links += 1;
            Kind::Link(fs::read_link(path).map_err(|error| wrong(&error))?.as_os_str().as_bytes().into())
        } else if file_type.is_file() {
            self.files += 1;
            match self.first_names.get(&identity).filter(|_| metadata.nlink() > 1) {
                Some(first) => Kind::HardLink(*first),
                None => {
                    let extents = extents(path, metadata, !self.is_recursive);
                    Kind::File { bytes: metadata.len(), extents }
                }
            }
        } else {
            let what = if file_type.is_fifo() { "a pipe" } else { "a device or socket" };
            self.skipped.push(format!("{} ({what})", path.display()));
            return Ok(None);
        };
        let is_first = matches!(kind, Kind::File { .. });
        let moment = |seconds: i64, nanos: i64| Moment { seconds, nanos: u32::try_from(nanos).unwrap_or(0) };
        let entry = Entry {
            parent,
            name,
            mode: metadata.mode() & 0o7777,
            modified: moment(metadata.mtime(), metadata.mtime_nsec()),
            kind,
        };
        let number = self.manifest.add(entry).map_err(|error| wrong(&error))?;
        if is_first {
            self.first_names.insert(identity, number);
            self.stamps.insert(number, stamp(metadata));
        }
        if file_type.is_dir() {
            let listed = fs::read_dir(path).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
            let mut listed = listed.map_err(|error| wrong(&error))?;
            listed.sort_by_key(fs::DirEntry::file_name);
            for child in listed {
                let path = child.path();
                let metadata = child.metadata().map_err(|error| format!("{}: {error}", path.display()))?;
                self.add(Some(number), child.file_name().as_bytes(), &path, &metadata)?;
            }
        }
        Ok(Some(number))
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    [
        metadata.len() as i64,
        metadata.ino() as i64,
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.ctime(),
        metadata.ctime_nsec(),
    ]
}

/// Finds the extents of a file that have content. Only files with fewer blocks on disk than bytes
/// are asked for holes.
fn extents(path: &Path, metadata: &Metadata, follow: bool) -> Vec<Extent> {
    let bytes = metadata.len();
    if bytes == 0 {
        return Vec::new();
    }
    let whole = vec![Extent { at: 0, bytes }];
    if metadata.blocks() * 512 >= bytes {
        return whole;
    }
    // One that cannot be read is found out, and left out, when it is.
    let Ok(file) = open(path, follow) else { return whole };
    let mut found: Vec<Extent> = Vec::new();
    let mut at = 0;
    while at < bytes {
        let begin = match seek(&file, SeekFrom::Data(at)) {
            Ok(begin) => begin,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => return whole,
        };
        let Ok(end) = seek(&file, SeekFrom::Hole(begin)) else { return whole };
        let end = end.min(bytes);
        add_extent(&mut found, begin, end);
        at = end.max(at + 1);
    }
    found
}

/// Adds an extent; in a file that is written meanwhile it may touch the last extent, and then both
/// become one.
fn add_extent(found: &mut Vec<Extent>, begin: u64, end: u64) {
    match found.last_mut() {
        Some(last) if last.at + last.bytes == begin => last.bytes = end.max(begin) - last.at,
        _ if end > begin => found.push(Extent { at: begin, bytes: end - begin }),
        _ => {}
    }
}

/// Reads all blocks, as they are wanted, and says which files are not what they were, and as how many bytes the blocks travel.
pub fn read_all(
    backing: &Backing,
    stamps: &HashMap<u32, Stamp>,
    store: &Store,
    stop: &AtomicBool,
) -> (Vec<Spoiled>, u64) {
    let mut spoiled: Vec<Spoiled> = Vec::new();
    let mut sent_bytes = 0;
    let mut file: Option<(u32, Option<File>)> = None;
    for block in 0..store.stream.blocks() {
        let Ok(bytes) = backing.bytes_of(store.stream.range(block), |entry, at, to| {
            if file.as_ref().is_none_or(|(open, _)| *open != entry) {
                check_unchanged(file.take(), backing, stamps, &mut spoiled);
                let opened = open(&backing.path(entry), true);
                if let Err(error) = &opened {
                    backing.blank(entry, 0);
                    spoil(entry, backing, &mut spoiled, format!("cannot be read: {error}"));
                }
                file = Some((entry, opened.ok()));
            }
            // What cannot be read is zero, the first time and later, and nobody puts it in its place.
            if let Some((_, open)) = &mut file
                && let Some(Err(error)) = open.as_ref().map(|file| file.read_exact_at(to, at))
            {
                *open = None;
                to.fill(0);
                backing.blank(entry, at);
                let reason = match error.kind() {
                    io::ErrorKind::UnexpectedEof => "became shorter while it was read".to_owned(),
                    _ => format!("cannot be read: {error}"),
                };
                spoil(entry, backing, &mut spoiled, reason);
            }
            Ok::<(), Infallible>(())
        });
        let tag = store.key.tag(block, &bytes);
        let read = store.block(block, tag, bytes);
        sent_bytes += read.as_sent().len() as u64;
        if !store.push_all(block, [read], stop) {
            break;
        }
    }
    check_unchanged(file, backing, stamps, &mut spoiled);
    (spoiled, sent_bytes)
}

fn check_unchanged(
    file: Option<(u32, Option<File>)>,
    backing: &Backing,
    stamps: &HashMap<u32, Stamp>,
    spoiled: &mut Vec<Spoiled>,
) {
    if let Some((entry, Some(file))) = file {
        let now = file.metadata().map(|metadata| stamp(&metadata)).ok();
        if now.as_ref() != stamps.get(&entry) {
            spoil(entry, backing, spoiled, "changed while it was read".to_owned());
        }
    }
}

fn spoil(entry: u32, backing: &Backing, spoiled: &mut Vec<Spoiled>, reason: String) {
    if spoiled.last().is_none_or(|last| last.entry != entry) {
        spoiled.push(Spoiled { entry, file: backing.path(entry).display().to_string(), reason });
    }
}

impl Scan {
    /// The parts that live on when the scan is over.
    pub fn into_parts(self) -> (Manifest, HashMap<u32, PathBuf>, HashMap<u32, Stamp>) {
        (self.manifest, self.places, self.stamps)
    }
}

#[cfg(test)]
mod tests {
    use polycast_copy::{KEY_BYTES, Key, Layout};

    use super::super::backing::BlockReader;
    use super::super::store::Found;
    use super::*;

    #[test]
    fn extents_that_touch_are_one() {
        let mut found = Vec::new();
        for (begin, end) in [(0, 4), (4, 6), (8, 8), (8, 9)] {
            add_extent(&mut found, begin, end);
        }
        assert_eq!(found, [Extent { at: 0, bytes: 6 }, Extent { at: 8, bytes: 1 }]);
    }

    /// Those that are behind need it when it has left the memory.
    #[test]
    fn what_could_not_be_read_is_the_same_when_it_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::write(path, [7; 6_000]).unwrap();
        }
        let sources: Vec<OsString> = paths.iter().map(|path| path.clone().into_os_string()).collect();
        let (manifest, places, stamps) = scan(&sources, false).unwrap().into_parts();
        // The second cannot be opened, and of the third the end cannot be read.
        fs::remove_file(&paths[1]).unwrap();
        File::options().write(true).open(&paths[2]).unwrap().set_len(5_000).unwrap();
        let bytes = manifest.encode();
        let stream = Layout::new(&manifest, bytes.len() as u64).stream(4_096);
        let backing = Backing::new(manifest, bytes, places);
        let store = Store::new(stream, Key::from_bytes([1; KEY_BYTES]), false);
        let (spoiled, _) = read_all(&backing, &stamps, &store, &AtomicBool::new(false));
        assert_eq!(spoiled.iter().map(|spoiled| spoiled.entry).collect::<Vec<_>>(), [1, 2]);
        let mut reader = BlockReader::new(&backing);
        for block in 0..stream.blocks() {
            let again = reader.read(&stream, block).unwrap();
            let Some(Found::Memory(first)) = store.get(block, &AtomicBool::new(true)) else { panic!() };
            assert_eq!(again, first.bytes(), "block {block}");
        }
    }

    #[test]
    fn a_file_with_holes_that_cannot_be_read_is_left_to_who_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("holes");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(extents(&path, &metadata, false), []);
        // Whatever the reason; root may read everything.
        fs::remove_file(&path).unwrap();
        assert_eq!(extents(&path, &metadata, false), [Extent { at: 0, bytes: 1 << 20 }]);
    }
}
