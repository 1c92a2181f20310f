use std::fmt;

/// The longest name that file systems take.
pub const MAX_NAME_BYTES: usize = 255;

/// The name of a file within its folder: one component of a path, never a way out of the folder.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<[u8]>);

impl Name {
    /// Makes a name; `None` for what is no name: empty, `.`, `..`, with a slash or a zero byte, or
    /// too long.
    pub fn new(bytes: &[u8]) -> Option<Name> {
        let is_name = !bytes.is_empty()
            && bytes.len() <= MAX_NAME_BYTES
            && bytes != b"."
            && bytes != b".."
            && !bytes.contains(&b'/')
            && !bytes.contains(&0);
        is_name.then(|| Name(bytes.into()))
    }

    /// The bytes of the name as the file system has it; not always text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_its_folder() {
        let longest = [b'x'; MAX_NAME_BYTES];
        for good in [&b"a"[..], b"...", b".a", b"a b\n", b"\xff", &longest] {
            assert_eq!(Name::new(good).unwrap().as_bytes(), good);
        }
        let too_long = [b'x'; MAX_NAME_BYTES + 1];
        for bad in [&b""[..], b".", b"..", b"/", b"a/b", b"/etc", b"../a", b"a\0", &too_long] {
            assert_eq!(Name::new(bad), None, "{bad:?}");
        }
    }
}
