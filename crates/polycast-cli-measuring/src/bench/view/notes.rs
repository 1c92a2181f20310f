//! What stands below a table: why rows are marked.

use std::io::{self, Write};

use polycast_core::units::Bytes;

use crate::bench::point::{DOUBT, Point, REMARK};
use crate::terminal::hanging;

/// The notes below a table, gathered by their text, so that each stands once with all rows that it
/// is about.
#[derive(Default)]
pub struct Notes {
    notes: Vec<(char, String, Vec<String>)>,
    /// An unreliable variant: its name, the repetitions that were lost, and all.
    unreliable: Option<(String, usize, usize)>,
}

impl Notes {
    /// Takes in the notes on a point; `are_several` says that points of several MPIs follow, so
    /// each names its MPI.
    pub fn add(&mut self, point: &Point, are_several: bool) {
        let with = if are_several { format!(" with {}", point.mpi) } else { String::new() };
        let size = format!("{}{with}", Bytes(point.bytes));
        if let Some(doubt) = &point.doubt {
            self.note(DOUBT, doubt, size.clone());
        }
        if let Some(remark) = &point.remark {
            self.note(REMARK, remark, format!("{} {size}", point.variant));
        }
        if !point.reliable {
            let (_, lost, all) = self.unreliable.get_or_insert_with(|| (point.variant.clone(), 0, 0));
            *lost += point.lost;
            *all += point.lost + point.samples + point.dropped;
        }
    }

    fn note(&mut self, mark: char, text: &str, row: String) {
        match self.notes.iter_mut().find(|note| note.0 == mark && note.1 == text) {
            Some((_, _, rows)) if rows.contains(&row) => {}
            Some((_, _, rows)) => rows.push(row),
            None => self.notes.push((mark, text.to_owned(), vec![row])),
        }
    }

    /// The mark that stands at a row.
    pub fn mark(point: &Point) -> char {
        point.mark().unwrap_or(' ')
    }

    /// Writes all notes.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some((variant, lost, all)) = &self.unreliable {
            let text = format!(
                "* {variant}: a bare UDP multicast of the same bytes, not MPI and not reliable; {lost} of {all} \
                 repetitions were lost and are not timed"
            );
            writeln!(out, "\n{}", hanging("", "  ", &text))?;
        }
        let mut previous = None;
        for (mark, text, rows) in &self.notes {
            if previous != Some(mark) {
                writeln!(out)?;
            }
            previous = Some(mark);
            let rows = rows.join(", ");
            let text = match *mark {
                DOUBT => format!("{mark} {rows}: more than this lab can show: {text}"),
                _ => format!("{mark} {rows}: {text}"),
            };
            writeln!(out, "{}", hanging("", "  ", &text))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_stands_once_with_all_its_rows() {
        let point = |bytes, remark: &str| Point {
            variant: "polycast".into(),
            bytes,
            remark: Some(remark.into()),
            reliable: true,
            ..Point::default()
        };
        let mut notes = Notes::default();
        notes.add(&point(1024, "left to the MPI"), false);
        notes.add(&point(4096, "left to the MPI"), false);
        notes.add(&Point { doubt: Some("cores are the limit".into()), ..point(4096, "late") }, false);
        let mut out = Vec::new();
        notes.write(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("! polycast 1KiB, polycast 4KiB: left to the MPI\n"), "{text}");
        assert!(text.contains("? 4KiB: more than this lab can show: cores are the limit\n"), "{text}");
        assert!(text.contains("! polycast 4KiB: late\n"), "{text}");
    }
}
