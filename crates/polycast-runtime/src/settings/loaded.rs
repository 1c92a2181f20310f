use std::fs;

use polycast_core::files::FileKind;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Content that a file of the user's can be read as.
pub trait Content: Sized {
    /// Name of the variable that names the file.
    const VARIABLE: &str;
    const KIND: FileKind;
    const MAX_TEXT_BYTES: usize;

    /// Parses `text`, which is that of the file named `file`.
    fn parse(text: &str, file: &str) -> Result<Self, String>;
}

/// A file of the user's that has been read and understood. The text is kept so that rank 0 can send
/// it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// Name of the file, as the user gave it.
    pub file: String,
    pub text: String,
    pub content: T,
}

impl<T: Content> Loaded<T> {
    /// Reads the file that the variable names.
    pub fn read(file: String) -> Result<Loaded<T>, String> {
        let variable = T::VARIABLE;
        let text = read_at_most(&file, T::KIND, T::MAX_TEXT_BYTES)
            .map_err(|problem| format!("{variable}={file}: {problem}"))?;
        Loaded::of(file, text).map_err(|problem| format!("{variable}: {problem}"))
    }

    fn of(file: String, text: String) -> Result<Loaded<T>, String> {
        let content = T::parse(&text, &file)?;
        Ok(Loaded { file, text, content })
    }
}

/// Writes name and text; the rank that gets them reads the text again.
impl<T> Serialize for Loaded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.file, &self.text).serialize(serializer)
    }
}

impl<'de, T: Content> Deserialize<'de> for Loaded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (file, text) = Deserialize::deserialize(deserializer)?;
        Loaded::of(file, text).map_err(D::Error::custom)
    }
}

/// Reads the text of a file, which the user may have named by mistake: a huge file, or a pipe that
/// nobody writes to.
fn read_at_most(file: &str, kind: FileKind, most_bytes: usize) -> Result<String, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
    if !metadata.is_file() || metadata.len() > most_bytes as u64 {
        return Err(format!("expected a file of at most {most_bytes} bytes"));
    }
    kind.text(fs::read(file).map_err(|error| error.to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of a text; one that is called Cargo.toml has a problem.
    #[derive(Debug)]
    struct Length(usize);

    impl Content for Length {
        const VARIABLE: &str = "POLYCAST_X";
        const KIND: FileKind = FileKind::Table;
        const MAX_TEXT_BYTES: usize = 1 << 20;

        fn parse(text: &str, file: &str) -> Result<Length, String> {
            if file.ends_with("Cargo.toml") { Err("line 7".to_owned()) } else { Ok(Length(text.len())) }
        }
    }

    fn read(file: &str) -> Result<Loaded<Length>, String> {
        Loaded::read(file.to_owned())
    }

    #[test]
    fn what_is_no_file_is_named_with_its_variable() {
        for (file, expected) in [
            ("/no/such/file", "No such file"),
            ("/dev/zero", "expected a file of at most"),
            ("/", "expected a file"),
            ("/proc/self/exe", "expected a file of at most"),
        ] {
            let error = read(file).unwrap_err();
            assert!(error.contains(&format!("POLYCAST_X={file}")) && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_no_table_is_named() {
        let file = std::env::temp_dir().join(format!("polycast-no-table-{}", std::process::id()));
        fs::write(&file, b"\x7fELF\xff").unwrap();
        let error = read(file.to_str().unwrap()).unwrap_err();
        fs::remove_file(&file).unwrap();
        assert!(
            error.ends_with("expected a table of rules in TOML (see docs/table.md), found binary data"),
            "{error}"
        );
    }

    #[test]
    fn a_problem_in_the_file_is_handed_on() {
        let of = |name: &str| format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(read(&of("Cargo.toml")).unwrap_err(), "POLYCAST_X: line 7");
        assert!(read(&of("build.rs")).unwrap().content.0 > 100);
    }
}
