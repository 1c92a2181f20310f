//! Tables without rules: columns of words to the left, columns of numbers to the right.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::width;

/// The padding at both sides of a cell.
const PADDING: usize = 2;

/// The characters after which a word may be broken where there is no room for it; the later lists
/// only if the earlier ones do not do.
const JOINTS: [&[char]; 3] = [&[], &[':', ',', '/'], &[':', ',', '/', '.', '-', '_']];

/// A table whose first `left` columns hold words. Where it would be too wide, their cells are broken between words, and a word
/// where that does not do; numbers never are.
pub fn table<H: Into<String>>(
    header: impl IntoIterator<Item = H>,
    mut rows: Vec<Vec<String>>,
    left: usize,
) -> String {
    let header: Vec<String> = header.into_iter().map(Into::into).collect();
    let of_numbers: usize =
        (left..header.len()).map(|column| longest(&header, &rows, column, whole) + PADDING).sum();
    let room = width().saturating_sub(of_numbers + left * PADDING);
    let longest_words: Vec<usize> =
        (0..left).map(|column| longest(&header, &rows, column, |cell| pieces(cell, &[]))).collect();
    let mut widths = longest_words.clone();
    for joints in JOINTS {
        let least: Vec<usize> =
            (0..left).map(|column| longest(&header, &rows, column, |cell| pieces(cell, joints))).collect();
        widths = shrunk(longest_words.clone(), &least, room);
        if widths.iter().sum::<usize>() > room {
            continue;
        }
        for row in &mut rows {
            for ((cell, &width), &longest_word) in row.iter_mut().zip(&widths).zip(&longest_words) {
                if width < longest_word {
                    *cell = broken(cell, joints, width);
                }
            }
        }
        break;
    }
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width() as u16)
        .set_header(header)
        .add_rows(rows);
    for (column, characters) in table.column_iter_mut().zip(widths) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed((characters + PADDING) as u16)));
    }
    for column in table.column_iter_mut().skip(left) {
        column.set_cell_alignment(CellAlignment::Right);
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    format!("{}\n", table.trim_fmt())
}

/// The characters of the longest piece in a column.
fn longest<'a>(
    header: &'a [String],
    rows: &'a [Vec<String>],
    column: usize,
    pieces: impl Fn(&'a str) -> Vec<&'a str>,
) -> usize {
    let cells = rows.iter().map(|row| row.get(column)).chain([header.get(column)]).flatten();
    cells.flat_map(|cell| pieces(cell)).map(|piece| piece.trim_end().chars().count()).max().unwrap_or(0)
}

fn whole(cell: &str) -> Vec<&str> {
    vec![cell]
}

/// Splits a cell into the pieces that stay together, each with the character that ends it: a space
/// or a joint.
fn pieces<'a>(cell: &'a str, joints: &[char]) -> Vec<&'a str> {
    cell.split_inclusive(|c: char| c == ' ' || joints.contains(&c)).collect()
}

/// Widths of columns that take no more room in all, if that can be: the widest give first, down to the least.
fn shrunk(mut widths: Vec<usize>, least: &[usize], room: usize) -> Vec<usize> {
    while widths.iter().sum::<usize>() > room {
        let can_give = |column: &usize| widths[*column] > least[*column];
        match (0..widths.len()).filter(can_give).max_by_key(|column| widths[*column]) {
            Some(widest) => widths[widest] -= 1,
            None => break,
        }
    }
    widths
}

/// Breaks a cell into lines of at most this width, as far as its pieces are that short.
fn broken(cell: &str, joints: &[char], width: usize) -> String {
    let mut lines = vec![String::new()];
    for piece in pieces(cell, joints) {
        let line = lines.last_mut().expect("one to begin with");
        if !line.is_empty() && (line.chars().count() + piece.trim_end().chars().count()) > width {
            lines.push(piece.to_owned());
        } else {
            line.push_str(piece);
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;

    #[test]
    fn a_table_fits_and_breaks_words_only() {
        let rows =
            vec![vec!["several words ".repeat(9), "279 ms".into()], vec!["one".into(), "1.5 µs".into()]];
        let text = table(["name", "time"], rows, 1);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().nth(1).is_some_and(|line| line.ends_with("279 ms")), "{text}");
        assert!(text.contains("several\n") || text.contains("words\n"), "{text}");
        let names = table(["name", "time"], vec![vec!["longword".repeat(12), "1 ms".into()]], 1);
        assert_eq!(names.lines().count(), 2, "no name is broken where it has no joint: {names}");
    }

    #[test]
    fn long_names_are_broken_at_their_joints() {
        let page = |link: &str| {
            let numbers = ["24.9 ms", "5.03 ms", "1.66 ms", "128"];
            let row = ["contention-free-binary:segment=64KiB", link].into_iter().chain(numbers);
            let header = ["ALGORITHM", "LIMIT", "TIME", "FILL", "PERIOD", "PIECES"];
            let text = table(header, vec![row.map(str::to_owned).collect()], 2);
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            assert!(text.contains("24.9 ms  5.03 ms  1.66 ms"), "{text}");
            text
        };
        let text = page("leaf-03.rack-17 → core-1");
        assert!(text.lines().any(|line| line.trim().starts_with("contention-free-binary: ")), "{text}");
        let text = page("leaf-03.rack-17.example.org → core-1.example.org");
        assert!(text.contains("contention-free-") && text.contains("leaf-03.rack-17."), "{text}");
        let narrow = table(["name", "time"], vec![vec!["a-b:c".into(), "1 ms".into()]], 1);
        assert_eq!(narrow.lines().count(), 2, "what fits is not broken: {narrow}");
    }
}
