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
    /// Where the entries without a parent are.
    places: RwLock<HashMap<u32, PathBuf>>,
}

impl Backing {
    pub fn new(manifest: Manifest, manifest_bytes: Vec<u8>, places: HashMap<u32, PathBuf>) -> Backing {
        let layout = Layout::new(&manifest, manifest_bytes.len() as u64);
        Backing { manifest, manifest_bytes, layout, places: RwLock::new(places) }
    }

    /// An entry without a parent is in another place now.
    pub fn moved(&self, entry: u32, place: PathBuf) {
        self.places.write().unwrap_or_else(PoisonError::into_inner).insert(entry, place);
    }

    /// Where an entry is.
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

/// Reads blocks one after the other, and keeps the last file open.
pub struct BlockReader<'a> {
    backing: &'a Backing,
    file: Option<(u32, File)>,
}

impl<'a> BlockReader<'a> {
    pub fn new(backing: &'a Backing) -> BlockReader<'a> {
        BlockReader { backing, file: None }
    }

    /// A block's bytes.
    pub fn read(&mut self, stream: &Stream, block: u64) -> io::Result<Vec<u8>> {
        let BlockReader { backing, file } = self;
        backing.bytes_of(stream.range(block), |entry, at, to| {
            if file.as_ref().is_none_or(|(open, _)| *open != entry) {
                *file = Some((entry, open(&backing.path(entry), false)?));
            }
            file.as_ref().map_or(Ok(()), |(_, file)| file.read_exact_at(to, at))
        })
    }
}
