//! Tables without rules: columns of words to the left, columns of numbers to the right.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::WIDTH;

/// The padding at both sides of a cell.
const PADDING: usize = 2;

/// A table whose first `left` columns hold words. Where it would be too wide, their cells are broken between words;
/// words and numbers never are.
pub fn table<H: Into<String>>(
    header: impl IntoIterator<Item = H>,
    rows: Vec<Vec<String>>,
    left: usize,
) -> String {
    let header: Vec<String> = header.into_iter().map(Into::into).collect();
    let longest_words: Vec<usize> = (0..left).map(|column| longest_word(&header, &rows, column)).collect();
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH as u16)
        .set_header(header)
        .add_rows(rows);
    for (column, characters) in table.column_iter_mut().zip(longest_words) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed((characters + PADDING) as u16)));
    }
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("{}\n", table.trim_fmt())
}

/// The characters of the longest word in a column.
fn longest_word(header: &[String], rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().map(|row| row.get(column)).chain([header.get(column)]).flatten();
    cells.flat_map(|cell| cell.split_whitespace()).map(|word| word.chars().count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_fits_and_breaks_words_only() {
        let rows =
            vec![vec!["several words ".repeat(9), "279 ms".into()], vec!["one".into(), "1.5 µs".into()]];
        let text = table(["name", "time"], rows, 1);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.ends_with("279 ms")), "{text}");
        assert!(text.contains("several\n") || text.contains("words\n"), "{text}");
        let names = table(["name", "time"], vec![vec!["long-word-".repeat(9), "1 ms".into()]], 1);
        assert_eq!(names.lines().count(), 2, "no word is broken: {names}");
    }
}
