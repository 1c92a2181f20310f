//! Texts of files that may not be there.

use std::fs::File;
use std::io::{self, Read};

/// The text of a file, if there is one: at most `most_bytes` of a regular file. An error says in
/// words what was found instead.
pub fn text_if_there(file: &str, most_bytes: usize) -> Option<Result<String, String>> {
    match std::fs::metadata(file) {
        Ok(metadata) if !metadata.is_file() => Some(Err("expected a regular file".to_owned())),
        Ok(_) => Some(text(file, most_bytes)),
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

fn text(file: &str, most_bytes: usize) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(most_bytes as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if bytes.len() > most_bytes {
        return Err(format!("expected at most {most_bytes} bytes, found more"));
    }
    String::from_utf8(bytes).map_err(|_| "expected text in UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_or_not_or_something_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::write(at("short"), "text").unwrap();
        std::fs::write(at("wild"), [0xff, 0xfe]).unwrap();
        assert_eq!(text_if_there(&at("short"), 4), Some(Ok("text".to_owned())));
        assert_eq!(text_if_there(&at("none"), 4), None);
        assert_eq!(text_if_there(&at("short/none"), 4), None);
        for (file, most, expected) in [
            (at("short"), 3, "expected at most 3 bytes, found more"),
            (at("wild"), 4, "expected text in UTF-8"),
            (at("."), 4, "expected a regular file"),
            ("/dev/zero".to_owned(), 4, "expected a regular file"),
        ] {
            assert_eq!(text_if_there(&file, most), Some(Err(expected.to_owned())), "{file}");
        }
    }
}
