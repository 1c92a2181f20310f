//! What an mpiexec says on its standard error on a lab's host, without what is about the emulation and not about the program.

use std::io::{self, ErrorKind, Read, Write};

/// What Open MPI 4 says of each host to whose daemon it has no time to give a group of its own before the daemon does so by itself. It
/// goes on, and knows no parameter for it.
const NOISE: [&[u8]; 2] = [b"plm:rsh: Warning: setpgid(", b") failed in parent with errno="];

/// Hands on what a launcher says, as it comes, but for lines of noise.
#[derive(Default)]
pub(crate) struct LauncherWords {
    /// What has come of a line that begins like noise.
    held: Vec<u8>,
    /// True after a part of a line that has no end yet.
    is_within_line: bool,
}

impl LauncherWords {
    /// Hands on all that is there to be read without waiting; returns whether it was the last.
    pub(crate) fn pass_on(&mut self, from: &mut impl Read, to: &mut impl Write) -> io::Result<bool> {
        let mut bytes = [0; 64 << 10];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => return Ok(true),
                // What nobody reads here is taken all the same: the launcher must not wait.
                Ok(count) => drop(self.hear(&bytes[..count], to)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands on these bytes.
    fn hear(&mut self, bytes: &[u8], to: &mut impl Write) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        let said = std::mem::take(&mut self.held);
        let mut passes = Vec::with_capacity(said.len());
        for piece in said.split_inclusive(|byte| *byte == b'\n') {
            let is_whole = piece.ends_with(b"\n");
            match (self.is_within_line, is_whole) {
                (false, true) if is_noise(piece) => {}
                (false, false) if begins_like_noise(piece) => self.held = piece.to_vec(),
                _ => {
                    passes.extend_from_slice(piece);
                    self.is_within_line = !is_whole;
                }
            }
        }
        to.write_all(&passes)
    }

    /// Hands on what is held: no more will come.
    pub(crate) fn end(self, to: &mut impl Write) {
        let _ = to.write_all(&self.held);
    }
}

/// A line behind the name of host and process, if it has one.
fn behind_name(line: &[u8]) -> Option<&[u8]> {
    let end = line.strip_prefix(b"[")?.windows(2).position(|two| two == b"] ")?;
    line.get(end + 3..)
}

fn begins_like_noise(line: &[u8]) -> bool {
    behind_name(line).is_some_and(|words| words.starts_with(NOISE[0]))
}

fn is_noise(line: &[u8]) -> bool {
    begins_like_noise(line) && line.windows(NOISE[1].len()).any(|words| words == NOISE[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str =
        "[h0:17] plm:rsh: Warning: setpgid(21,21) failed in parent with errno=Permission denied(13)\n";

    /// What comes of pieces: after each of them, and at the end.
    fn passed(pieces: &[&str]) -> (Vec<String>, String) {
        let (mut words, mut all, mut each) = (LauncherWords::default(), Vec::new(), Vec::new());
        for piece in pieces {
            let before = all.len();
            assert!(words.pass_on(&mut piece.as_bytes(), &mut all).unwrap());
            each.push(String::from_utf8(all[before..].to_vec()).unwrap());
        }
        words.end(&mut all);
        (each, String::from_utf8(all).unwrap())
    }

    #[test]
    fn noise_goes_wherever_its_pieces_end() {
        let text = format!("before\n{LINE}{LINE}behind");
        let quiet = "before\nbehind";
        assert_eq!(passed(&[&text]).1, quiet);
        let (behind_words, ends) =
            ("before\n".len() + "[h0:17] plm:rsh: Warning: setpgid(".len(), text.len());
        for at in behind_words.."before\n".len() + LINE.len() {
            assert_eq!(passed(&[&text[..at], &text[at..ends]]).1, quiet, "{at}");
        }
    }

    #[test]
    fn all_else_passes_at_once_and_unchanged() {
        let cut = LINE.trim_end();
        for text in ["[", "[h0:17] plm", "50 %\r", "\n\n", "[h0:17] plm:rsh: Warning: other\n", "x\u{e9}"] {
            assert_eq!(
                passed(&[text, "then"]),
                (vec![text.to_owned(), "then".into()], text.to_owned() + "then")
            );
        }
        // Behind something else it is somebody else's; without an end it may be anything.
        let (within, unended) = (format!("a: {LINE}"), passed(&[cut]));
        assert_eq!(passed(&["a: ", LINE]).1, within);
        assert_eq!(unended, (vec![String::new()], cut.to_owned()));
    }
}
