use proptest::prelude::*;

use super::*;

pub fn entry(parent: Option<u32>, name: &str, kind: Kind) -> Entry {
    let moment = Moment { seconds: 1_700_000_000, nanos: 5 };
    let name = Name::new(name.as_bytes()).unwrap();
    Entry { parent, name, mode: 0o644, modified: moment, kind }
}

fn file(bytes: u64, extents: &[(u64, u64)]) -> Kind {
    Kind::File {
        bytes,
        extents: extents.iter().map(|(at, bytes)| Extent { at: *at, bytes: *bytes }).collect(),
    }
}

fn example() -> Manifest {
    let mut manifest = Manifest::default();
    let folder = manifest.add(entry(None, "folder", Kind::Folder)).unwrap();
    let one = manifest.add(entry(Some(folder), "one", file(10, &[(0, 10)]))).unwrap();
    manifest.add(entry(Some(folder), "empty", file(0, &[]))).unwrap();
    manifest.add(entry(Some(folder), "holes", file(100, &[(10, 20), (40, 60)]))).unwrap();
    manifest.add(entry(Some(folder), "hollow", file(100, &[]))).unwrap();
    manifest.add(entry(Some(folder), "link", Kind::Link(b"../../etc".as_slice().into()))).unwrap();
    manifest.add(entry(Some(folder), "again", Kind::HardLink(one))).unwrap();
    manifest
}

#[test]
fn a_manifest_is_read_as_it_was_written() {
    let manifest = example();
    assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    // 10,000 files cost little beside their contents.
    let mut many = Manifest::default();
    for number in 0..10_000 {
        many.add(entry(None, &format!("file-{number:05}"), file(1024, &[(0, 1024)]))).unwrap();
    }
    assert!(many.encode().len() < 10_000 * 32, "{}", many.encode().len());
}

#[test]
fn every_cut_is_noticed_or_whole() {
    let bytes = example().encode();
    for end in 0..bytes.len() {
        let cut = Manifest::decode(&bytes[..end]);
        assert!(cut.is_err() || cut.unwrap().entries().len() < example().entries().len());
    }
}

#[test]
fn no_entry_leads_out_of_the_destination() {
    let mut manifest = example();
    let number = manifest.entries().len();
    for (bad, error) in [
        // Through a link, through a file, through an entry behind it.
        (entry(Some(5), "passwd", file(1, &[(0, 1)])), ManifestError::NoFolder(number)),
        (entry(Some(1), "x", Kind::Folder), ManifestError::NoFolder(number)),
        (entry(Some(7), "x", Kind::Folder), ManifestError::NoFolder(number)),
        (entry(None, "folder", Kind::Link(b"/etc".as_slice().into())), ManifestError::Twice(number)),
        (entry(None, "x", Kind::HardLink(0)), ManifestError::NoFolder(number)),
        (entry(None, "x", Kind::HardLink(99)), ManifestError::NoFolder(number)),
        (entry(None, "x", Kind::Link(b"".as_slice().into())), ManifestError::BadName(number)),
        (entry(None, "x", Kind::Link(b"a\0".as_slice().into())), ManifestError::BadName(number)),
        (entry(None, "x", file(9, &[(0, 10)])), ManifestError::BadExtents(number)),
        (entry(None, "x", file(9, &[(0, 0)])), ManifestError::BadExtents(number)),
        (entry(None, "x", file(9, &[(4, 2), (5, 2)])), ManifestError::BadExtents(number)),
        (entry(None, "x", file(u64::MAX, &[(u64::MAX, 1)])), ManifestError::BadExtents(number)),
    ] {
        assert_eq!(manifest.add(bad.clone()), Err(error), "{bad:?}");
    }
    // Names that are none cannot be made; in bytes they can.
    for bad in ["..", ".", "a/b"] {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION as u8, FOLDER, 0, 0, 0, 0]);
        put_bytes(bad.as_bytes(), &mut bytes);
        assert_eq!(Manifest::decode(&bytes), Err(ManifestError::BadName(0)));
    }
}

#[test]
fn contents_that_cannot_be_are_refused() {
    let mut manifest = Manifest::default();
    let most = i64::MAX as u64;
    for name in ["a", "b", "c"] {
        manifest.add(entry(None, name, file(most, &[(0, most)]))).unwrap();
    }
    assert_eq!(Manifest::decode(&manifest.encode()), Err(ManifestError::TooMuch));
    assert_eq!(Manifest::decode(b""), Err(ManifestError::Foreign));
    assert_eq!(Manifest::decode(b"polycopy\x02"), Err(ManifestError::Foreign));
}

proptest! {
    #[test]
    fn nothing_makes_the_decoder_fail(mut bytes in prop::collection::vec(any::<u8>(), 0..200), is_framed: bool) {
        if is_framed {
            bytes.splice(0..0, MAGIC.iter().copied().chain([VERSION as u8]));
        }
        crate::check_any_bytes(&bytes);
    }

    #[test]
    fn changed_bytes_do_not_break_it(at in 0usize..200, to: u8) {
        let mut bytes = example().encode();
        let at = at % bytes.len();
        bytes[at] = to;
        crate::check_any_bytes(&bytes);
    }
}
