//! Results that are kept as they come: files with a JSON value in each line.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file that each run adds to.
pub struct JsonLines {
    path: PathBuf,
    /// True if the last line has no end, as a run that was killed leaves it.
    is_cut: bool,
}

impl JsonLines {
    /// Opens the file, which need not exist, and reads its lines. A damaged line is passed over.
    pub fn open<T: DeserializeOwned>(path: &Path) -> Result<(JsonLines, Vec<T>), String> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        let lines = text.split(|byte| *byte == b'\n');
        let values = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let is_cut = text.last().is_some_and(|last| *last != b'\n');
        Ok((JsonLines { path: path.to_owned(), is_cut }, values))
    }

    /// Adds a value.
    pub fn add(&mut self, value: &impl Serialize) -> Result<(), String> {
        let value = serde_json::to_string(value).map_err(|error| error.to_string())?;
        let line = format!("{}{value}\n", if self.is_cut { "\n" } else { "" });
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.is_cut = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_damaged_line_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values");
        let (mut lines, none) = JsonLines::open::<[u32; 2]>(&path).unwrap();
        assert!(none.is_empty() && !path.exists());
        lines.add(&[1, 2]).unwrap();
        fs::write(&path, fs::read_to_string(&path).unwrap() + "\u{fffd}[3,").unwrap();
        let (mut lines, one) = JsonLines::open::<[u32; 2]>(&path).unwrap();
        assert_eq!(one, [[1, 2]]);
        lines.add(&[5, 6]).unwrap();
        lines.add(&[7, 8]).unwrap();
        assert_eq!(JsonLines::open::<[u32; 2]>(&path).unwrap().1, [[1, 2], [5, 6], [7, 8]]);
        let error = JsonLines::open::<[u32; 2]>(folder.path()).err().unwrap();
        assert!(error.starts_with("cannot read "), "{error}");
    }
}
