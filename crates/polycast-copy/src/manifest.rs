//! The list of what is copied: folders, files and links, each in a folder before it.
//!
//! ```text
//!  "polycopy" version │ kind  parent  mode  time  name │ file: bytes, extents   link: target   hard link: entry │ …
//! ```
//!
//! Invariants, of whatever was decoded
//! 1. An entry's parent stands before it and is a folder, so that no way leads through a link.
//! 2. A name is one component ([`Name`]), and unique in its folder.
//! 3. Extents ascend, do not touch each other and lie within their file; all together are less than 2⁶³ bytes.

use std::collections::HashSet;

use crate::bytes::{Reader, put_bytes, put_number, put_signed};
use crate::name::Name;

const MAGIC: &[u8; 8] = b"polycopy";
const VERSION: u64 = 1;
/// Permissions, set-user-id, set-group-id and sticky bits.
const MODES: u32 = 0o7777;
/// The longest target of a link that Linux takes.
const MAX_TARGET_BYTES: usize = 4_095;
/// Entries of one copy.
pub const MAX_ENTRIES: usize = 1 << 26;

const FOLDER: u8 = 1;
const FILE: u8 = 2;
const SPARSE_FILE: u8 = 3;
const LINK: u8 = 4;
const HARD_LINK: u8 = 5;

/// A time as files have it: seconds since 1970, and nanoseconds behind these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The whole seconds since 1970; negative before.
    pub seconds: i64,
    /// Below 1,000,000,000.
    pub nanos: u32,
}

/// A part of a file that is not a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The place in the file where the extent begins, bytes.
    pub at: u64,
    /// The extent's length, bytes; at least 1.
    pub bytes: u64,
}

/// The kind of an entry, with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder; its entries come behind it.
    Folder,
    /// A file.
    File {
        /// The file's length, bytes.
        bytes: u64,
        /// The parts of the file that have content; the rest is zero.
        extents: Vec<Extent>,
    },
    /// A symbolic link; the target is text and nothing else.
    Link(Box<[u8]>),
    /// Another name of the file of this entry, which stands before.
    HardLink(u32),
}

/// A folder, file or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The folder that it is in; `None`: directly in the destination.
    pub parent: Option<u32>,
    /// The entry's name in that folder.
    pub name: Name,
    /// Permissions and the bits in front of them.
    pub mode: u32,
    /// The time of the last change. The time of the last access is not taken along: copying changes
    /// it, and a list that differs is another copy.
    pub modified: Moment,
    /// The kind of the entry.
    pub kind: Kind,
}

/// All entries of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<Entry>,
    known: HashSet<(Option<u32>, Name)>,
}

/// Bytes that are no manifest, or an entry that cannot stand in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The bytes do not begin like a manifest.
    #[error("expected a manifest of polycast cp, version {VERSION}")]
    Foreign,
    /// An entry ends too early, or has a number that means nothing.
    #[error("entry {0}: cannot be read")]
    Unreadable(usize),
    /// An entry is in no folder that stands before it.
    #[error("entry {0}: its folder does not stand before it")]
    NoFolder(usize),
    /// An entry's name is no name.
    #[error("entry {0}: its name is none, or leads out of its folder")]
    BadName(usize),
    /// Two entries of a folder have the same name.
    #[error("entry {0}: its folder has this name already")]
    Twice(usize),
    /// Extents that overlap, are empty or lie outside of their file.
    #[error("entry {0}: its contents lie outside of the file, or over each other")]
    BadExtents(usize),
    /// More than a copy can have.
    #[error("more than {MAX_ENTRIES} files, or 2^63 bytes")]
    TooMuch,
}

impl Manifest {
    /// The entries, in their order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds an entry behind the others and returns its number.
    ///
    /// # Errors
    /// If it breaks an invariant.
    pub fn add(&mut self, entry: Entry) -> Result<u32, ManifestError> {
        let number = self.entries.len();
        if number >= MAX_ENTRIES {
            return Err(ManifestError::TooMuch);
        }
        let at = |index: u32| self.entries.get(index as usize).map(|entry| &entry.kind);
        if entry.parent.is_some_and(|parent| at(parent) != Some(&Kind::Folder)) {
            return Err(ManifestError::NoFolder(number));
        }
        match &entry.kind {
            Kind::File { bytes, extents } => check_extents(*bytes, extents, number)?,
            Kind::HardLink(other) if !matches!(at(*other), Some(Kind::File { .. })) => {
                return Err(ManifestError::NoFolder(number));
            }
            Kind::Link(target) if !(1..=MAX_TARGET_BYTES).contains(&target.len()) || target.contains(&0) => {
                return Err(ManifestError::BadName(number));
            }
            _ => {}
        }
        let is_readable = entry.mode & !MODES == 0 && entry.modified.nanos < 1_000_000_000;
        if !is_readable {
            return Err(ManifestError::Unreadable(number));
        }
        if !self.known.insert((entry.parent, entry.name.clone())) {
            return Err(ManifestError::Twice(number));
        }
        self.entries.push(entry);
        Ok(number as u32)
    }

    /// The bytes of the manifest on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(16 + 40 * self.entries.len());
        to.extend_from_slice(MAGIC);
        put_number(VERSION, &mut to);
        let mut before = 0;
        for entry in &self.entries {
            let is_whole = |bytes: u64, extents: &[Extent]| match extents {
                [] => bytes == 0,
                [one] => one.at == 0 && one.bytes == bytes,
                _ => false,
            };
            to.push(match &entry.kind {
                Kind::Folder => FOLDER,
                Kind::File { bytes, extents } if is_whole(*bytes, extents) => FILE,
                Kind::File { .. } => SPARSE_FILE,
                Kind::Link(_) => LINK,
                Kind::HardLink(_) => HARD_LINK,
            });
            put_number(entry.parent.map_or(0, |parent| u64::from(parent) + 1), &mut to);
            put_number(entry.mode.into(), &mut to);
            // Files of one folder are often of one day.
            put_signed(entry.modified.seconds.wrapping_sub(before), &mut to);
            put_number(entry.modified.nanos.into(), &mut to);
            before = entry.modified.seconds;
            put_bytes(entry.name.as_bytes(), &mut to);
            match &entry.kind {
                Kind::Folder => {}
                Kind::File { bytes, extents } => {
                    put_number(*bytes, &mut to);
                    if !is_whole(*bytes, extents) {
                        put_number(extents.len() as u64, &mut to);
                        for extent in extents {
                            put_number(extent.at, &mut to);
                            put_number(extent.bytes, &mut to);
                        }
                    }
                }
                Kind::Link(target) => put_bytes(target, &mut to),
                Kind::HardLink(other) => put_number((*other).into(), &mut to),
            }
        }
        to
    }

    /// Reads what [`Manifest::encode`] has written.
    ///
    /// # Errors
    /// Whatever is not a manifest, or breaks an invariant.
    pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let mut reader = Reader(bytes.strip_prefix(MAGIC).ok_or(ManifestError::Foreign)?);
        if reader.number() != Some(VERSION) {
            return Err(ManifestError::Foreign);
        }
        let mut manifest = Manifest::default();
        let mut before = 0;
        let mut content_bytes = 0u64;
        while !reader.0.is_empty() {
            let number = manifest.entries.len();
            let entry = read_entry(&mut reader, before).ok_or(ManifestError::Unreadable(number))?;
            let entry = entry.ok_or(ManifestError::BadName(number))?;
            before = entry.modified.seconds;
            if let Kind::File { extents, .. } = &entry.kind {
                for extent in extents {
                    content_bytes = content_bytes.checked_add(extent.bytes).ok_or(ManifestError::TooMuch)?;
                }
            }
            if content_bytes > i64::MAX as u64 {
                return Err(ManifestError::TooMuch);
            }
            manifest.add(entry)?;
        }
        Ok(manifest)
    }
}

/// Reads an entry: `None` if it cannot be read, `Some(None)` if its name is none.
fn read_entry(reader: &mut Reader<'_>, before: i64) -> Option<Option<Entry>> {
    let kind = reader.byte()?;
    let parent = match reader.number()? {
        0 => None,
        parent => Some(u32::try_from(parent - 1).ok()?),
    };
    let mode = u32::try_from(reader.number()?).ok()?;
    let seconds = before.wrapping_add(reader.signed()?);
    let modified = Moment { seconds, nanos: u32::try_from(reader.number()?).ok()? };
    let name = Name::new(reader.bytes()?);
    let kind = match kind {
        FOLDER => Kind::Folder,
        FILE => {
            let bytes = reader.number()?;
            let extents = if bytes > 0 { vec![Extent { at: 0, bytes }] } else { Vec::new() };
            Kind::File { bytes, extents }
        }
        SPARSE_FILE => {
            let bytes = reader.number()?;
            let mut extents = Vec::new();
            for _ in 0..reader.number()? {
                extents.push(Extent { at: reader.number()?, bytes: reader.number()? });
            }
            Kind::File { bytes, extents }
        }
        LINK => Kind::Link(reader.bytes()?.into()),
        HARD_LINK => Kind::HardLink(u32::try_from(reader.number()?).ok()?),
        _ => return None,
    };
    Some(name.map(|name| Entry { parent, name, mode, modified, kind }))
}

fn check_extents(bytes: u64, extents: &[Extent], number: usize) -> Result<(), ManifestError> {
    let mut end = None;
    for extent in extents {
        let next = extent.at.checked_add(extent.bytes).filter(|next| *next <= bytes);
        if extent.bytes == 0 || end.is_some_and(|end| extent.at <= end) || next.is_none() {
            return Err(ManifestError::BadExtents(number));
        }
        end = next;
    }
    if bytes > i64::MAX as u64 { Err(ManifestError::BadExtents(number)) } else { Ok(()) }
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
