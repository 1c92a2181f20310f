use std::fs;

use polycast_core::files::FileKind;

/// A file of the user's that has been read and understood. The text is kept so that rank 0 can send it.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded<T> {
    /// As the user named it.
    pub file: String,
    pub text: String,
    pub content: T,
}

impl<T> Loaded<T> {
    /// Reads the file that `variable` names.
    pub fn read(
        variable: &str,
        file: String,
        (kind, most_bytes): (FileKind, usize),
        parse: impl FnOnce(&str, &str) -> Result<T, String>,
    ) -> Result<Loaded<T>, String> {
        let text = read_at_most(&file, kind, most_bytes)
            .map_err(|problem| format!("{variable}={file}: {problem}"))?;
        let content = parse(&text, &file).map_err(|problem| format!("{variable}: {problem}"))?;
        Ok(Loaded { file, text, content })
    }
}

/// The text of what a user may have named by mistake: a huge file, or a pipe that nobody writes to.
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

    fn read(file: &str) -> Result<Loaded<usize>, String> {
        Loaded::read("POLYCAST_X", file.to_owned(), (FileKind::Table, 1 << 20), |text, _| Ok(text.len()))
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
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
        let refuse = |_: &str, _: &str| Err::<(), _>("line 7".to_owned());
        let error = Loaded::read("POLYCAST_X", file.clone(), (FileKind::Table, 1 << 20), refuse).unwrap_err();
        assert_eq!(error, "POLYCAST_X: line 7");
        assert!(read(&file).unwrap().content > 100);
    }
}
