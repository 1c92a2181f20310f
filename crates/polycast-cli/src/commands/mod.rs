//! One file per verb: its arguments and what it does with them.

pub mod bench;
pub mod doctor;
pub mod explain;
pub mod generate;
pub mod info;
pub mod job_args;
pub mod lab;
pub mod madcap;
pub mod measure;
pub mod predict;
pub mod run;
pub mod simulate;
pub mod topology;
pub mod tree;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// What a verb ends with. An error is printed after `polycast: ` and ends the process with status 1.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// Writes all of `text` to standard output; a reader that has gone is an error like any other, not a panic.
pub fn print(text: &str) -> io::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())
}

/// A table whose first `left` columns hold words.
pub fn table(header: impl IntoIterator<Item = &'static str>, rows: Vec<Vec<String>>, left: usize) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.into_iter().collect::<Vec<_>>()).add_rows(rows);
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n", table.trim_fmt())
}
