//! Nodes that have DEST in common, by a file system that they share: one of them writes, for all.
//!
//! ```text
//!   n1   makes DEST/.polycast-cp-…/node-7c01…      it is the first: it writes
//!   n2   finds the file, and in it n1's number     the folder is the same one, by whatever path and mount: it has nothing to do
//!   n3   makes the file                            n3's folder is another one
//! ```
//!
//! The name follows from the copy's key, so nobody else can have made the file. It stays until its maker's agent ends, with the copy: who comes late
//! finds it, too.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::Key;

const PREFIX: &str = "node-";
/// The longest time that the mark's file may be empty: between its maker's two calls, and as long
/// as the file system takes to show the second one elsewhere.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// The file by which a node marks a folder as the one that it writes to.
#[derive(Clone, Debug)]
pub struct Mark {
    name: String,
    node: u32,
}

/// The node that writes to a folder.
#[derive(Debug, PartialEq, Eq)]
pub enum Owner {
    /// The node itself.
    Own,
    /// The node of this number, which has the folder in common with this one.
    Other(u32),
}

impl Mark {
    pub fn new(key: &Key, node: u32) -> Mark {
        Mark { name: format!("{PREFIX}{}", key.for_folder()), node }
    }

    /// The file in such a folder.
    pub fn file(&self, folder: &Path) -> PathBuf {
        folder.join(&self.name)
    }

    /// Marks a folder, unless another node of this copy has.
    pub fn put(&self, folder: &Path) -> io::Result<Owner> {
        let file = self.file(folder);
        let began = Instant::now();
        loop {
            match OpenOptions::new().write(true).create_new(true).open(&file) {
                Ok(mut file) => {
                    writeln!(file, "{}", self.node)?;
                    return Ok(Owner::Own);
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            let text = match fs::read_to_string(&file) {
                // Its maker has given up meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                text => text?,
            };
            match text.strip_suffix('\n').map(str::parse) {
                Some(Ok(node)) if node == self.node => return Ok(Owner::Own),
                Some(Ok(node)) => return Ok(Owner::Other(node)),
                Some(Err(_)) => return Err(io::Error::other("expected the number of a node")),
                None if began.elapsed() > PATIENCE => {
                    return Err(io::Error::other(
                        "another node has begun to write here, and does not say which; run it again",
                    ));
                }
                None => thread::sleep(LOOK),
            }
        }
    }

    /// Whether a file of this name is a mark of another copy, whose agent was killed.
    pub fn is_left(&self, name: &str) -> bool {
        name.starts_with(PREFIX) && name != self.name
    }
}

#[cfg(test)]
mod tests {
    use polycast_copy::KEY_BYTES;

    use super::*;

    #[test]
    fn the_first_of_a_copy_has_the_folder_and_the_others_find_it() {
        let folder = tempfile::tempdir().unwrap();
        let mark = |key: u8, node| Mark::new(&Key::from_bytes([key; KEY_BYTES]), node);
        let put = |mark: &Mark| mark.put(folder.path()).unwrap();
        assert_eq!(put(&mark(1, 3)), Owner::Own);
        assert_eq!([put(&mark(1, 2)), put(&mark(1, 70_000))], [Owner::Other(3), Owner::Other(3)]);
        assert_eq!(put(&mark(2, 2)), Owner::Own, "another copy");
        let names: Vec<String> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(names.iter().filter(|name| mark(1, 9).is_left(name)).count(), 1);
        assert!(!mark(1, 9).is_left("tree"));
    }

    #[test]
    fn whose_a_folder_is_may_be_said_a_little_later() {
        let folder = tempfile::tempdir().unwrap();
        let mark = Mark::new(&Key::from_bytes([1; KEY_BYTES]), 2);
        fs::write(mark.file(folder.path()), "").unwrap();
        let (file, other) = (mark.file(folder.path()), mark.clone());
        let at = folder.path().to_owned();
        let asks = thread::spawn(move || other.put(&at).unwrap());
        fs::write(file, "1\n").unwrap();
        assert_eq!(asks.join().unwrap(), Owner::Other(1));
        fs::write(mark.file(folder.path()), "x\n").unwrap();
        assert!(mark.put(folder.path()).unwrap_err().to_string().contains("number of a node"));
    }
}
