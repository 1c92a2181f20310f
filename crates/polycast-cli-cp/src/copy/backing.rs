//! The files of a manifest, wherever they are at the moment: at the source, in a staging folder, or in their place.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use polycast_copy::{Layout, Manifest, Part, Stream};
use rustix::fs::OFlags;

/// Files that can be read block by block.
pub struct Backing {
    pub manifest: Manifest,
    pub manifest_bytes: Vec<u8>,
    pub layout: Layout,
    /// The paths of the entries without a parent.
    places: RwLock<HashMap<u32, PathBuf>>,
    /// Files that are zero from here on, for they could not be read, and are put on no node.
    blanks: RwLock<HashMap<u32, u64>>,
}

impl Backing {
    pub fn new(manifest: Manifest, manifest_bytes: Vec<u8>, places: HashMap<u32, PathBuf>) -> Backing {
        let layout = Layout::new(&manifest, manifest_bytes.len() as u64);
        Backing { manifest, manifest_bytes, layout, places: RwLock::new(places), blanks: RwLock::default() }
    }

    /// Makes a file zero from `at` on, whoever reads it.
    pub fn blank(&self, entry: u32, at: u64) {
        self.blanks.write().unwrap_or_else(PoisonError::into_inner).entry(entry).or_insert(at);
    }

    fn is_blank(&self, entry: u32, at: u64) -> bool {
        let blanks = self.blanks.read().unwrap_or_else(PoisonError::into_inner);
        blanks.get(&entry).is_some_and(|from| at >= *from)
    }

    /// An entry without a parent is in another place now.
    pub fn moved(&self, entry: u32, place: PathBuf) {
        self.places.write().unwrap_or_else(PoisonError::into_inner).insert(entry, place);
    }

    /// The present path of an entry.
    pub fn path(&self, entry: u32) -> PathBuf {
        let mut names = Vec::new();
        let mut at = entry;
        while let Some(parent) = self.manifest.entries()[at as usize].parent {
            names.push(self.manifest.entries()[at as usize].name.as_bytes());
            at = parent;
        }
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let mut path = places.get(&at).cloned().unwrap_or_default();
        path.extend(names.into_iter().rev().map(OsStr::from_bytes));
        path
    }

    /// A range of the stream; `read` brings what is in files: of which entry, from where on, to where.
    pub fn bytes_of<E>(
        &self,
        range: Range<u64>,
        mut read: impl FnMut(u32, u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let mut rest = &mut bytes[..];
        for part in self.layout.parts(range) {
            let (to, behind) = rest.split_at_mut(part.bytes() as usize);
            rest = behind;
            match part {
                Part::Manifest { at, bytes } => {
                    to.copy_from_slice(&self.manifest_bytes[at as usize..(at + bytes) as usize]);
                }
                Part::File { entry, at, .. } => read(entry, at, to)?,
            }
        }
        Ok(bytes)
    }

    /// The first file of which something is in a range of the stream.
    pub fn first_file(&self, range: Range<u64>) -> Option<PathBuf> {
        self.layout.parts(range).find_map(|part| match part {
            Part::File { entry, .. } => Some(self.path(entry)),
            Part::Manifest { .. } => None,
        })
    }

    /// The entries without a parent.
    pub fn tops(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = self.manifest.entries().iter().enumerate();
        entries.filter(|(_, entry)| entry.parent.is_none()).map(|(number, _)| number as u32)
    }
}

/// Opens a file for reading, never through a link that stands in its place.
pub fn open(path: &Path, follow: bool) -> io::Result<File> {
    let flags = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    File::options().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// A file that was read before cannot be read again as it was.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", file.display())]
pub struct Unreadable {
    pub file: PathBuf,
    pub reason: String,
}

impl Unreadable {
    /// The error for a file that has changed while it was copied.
    pub fn has_changed(file: PathBuf) -> io::Error {
        let reason = "changed while it was copied: nodes that were behind cannot have it; copy again".into();
        io::Error::other(Unreadable { file, reason })
    }

    fn because(file: PathBuf, error: &io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Unreadable::has_changed(file),
            _ => io::Error::other(Unreadable { file, reason: format!("cannot be read again: {error}") }),
        }
    }
}

/// Reads blocks one after the other, and keeps the last file open.
pub struct BlockReader<'a> {
    backing: &'a Backing,
    file: Option<(u32, File)>,
}

impl<'a> BlockReader<'a> {
    pub fn new(backing: &'a Backing) -> BlockReader<'a> {
        BlockReader { backing, file: None }
    }

    /// A block's bytes. Errors name the file.
    pub fn read(&mut self, stream: &Stream, block: u64) -> io::Result<Vec<u8>> {
        let BlockReader { backing, file } = self;
        backing.bytes_of(stream.range(block), |entry, at, to| {
            if backing.is_blank(entry, at) {
                return Ok(());
            }
            let path = || backing.path(entry);
            let named = |error: io::Error| Unreadable::because(path(), &error);
            if file.as_ref().is_none_or(|(open, _)| *open != entry) {
                *file = Some((entry, open(&path(), false).map_err(named)?));
            }
            file.as_ref().map_or(Ok(()), |(_, file)| file.read_exact_at(to, at).map_err(named))
        })
    }
}

#[cfg(test)]
mod tests {
    use polycast_copy::{Entry, Extent, Kind, Moment, Name};

    use super::*;

    #[test]
    fn a_file_that_became_shorter_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::default();
        let mut places = HashMap::new();
        for name in ["first", "second"] {
            let kind = Kind::File { bytes: 8, extents: vec![Extent { at: 0, bytes: 8 }] };
            let entry = Entry {
                parent: None,
                name: Name::new(name.as_bytes()).unwrap(),
                mode: 0o644,
                modified: Moment::default(),
                kind,
            };
            let path = folder.path().join(name);
            std::fs::write(&path, "contents").unwrap();
            places.insert(manifest.add(entry).unwrap(), path);
        }
        let backing = Backing::new(manifest, Vec::new(), places);
        let stream = Stream { bytes: 16, manifest_bytes: 0, block_bytes: 8 };
        let read =
            |block: u64| BlockReader::new(&backing).read(&stream, block).map_err(|error| error.to_string());
        assert_eq!(read(1).unwrap(), b"contents");
        let second = folder.path().join("second");
        std::fs::write(&second, "short").unwrap();
        assert_eq!(read(0).unwrap(), b"contents");
        let said = |reason: &str| format!("{}: {reason}", second.display());
        assert!(read(1).unwrap_err().starts_with(&said("changed while it was copied")));
        std::fs::remove_file(&second).unwrap();
        assert!(read(1).unwrap_err().starts_with(&said("cannot be read again: No such file")));
        assert_eq!(backing.first_file(stream.range(1)), Some(second));
    }
}
