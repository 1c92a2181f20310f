//! Parameters as a table for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use polycast_core::model::{Curve, Parameters};
use polycast_core::units::Bytes;

/// The curves that are shown, with their headings; the others follow from them or are for simulators.
const COLUMNS: [&str; 5] = ["L(m)", "g(m)", "os(m)", "or(m)", "t_end(m)"];

/// A table per class, in µs: the estimate, and how far its 95 % interval reaches to either side.
pub fn print(parameters: &Parameters) -> String {
    let mut text = String::new();
    for (class, curves) in parameters.classes() {
        let columns: [Option<&Curve>; 5] = [
            Some(&curves.latency),
            Some(&curves.gap),
            curves.send_overhead.as_ref(),
            curves.receive_overhead.as_ref(),
            curves.end.as_ref(),
        ];
        let mut table = Table::new();
        table.load_style(NOTHING);
        table.set_header(std::iter::once("bytes").chain(COLUMNS));
        for (row, point) in curves.gap.points().iter().enumerate() {
            let cells = columns.iter().map(|curve| curve.map_or_else(String::new, |curve| cell(curve, row)));
            table.add_row(std::iter::once(Bytes(point.bytes).to_string()).chain(cells));
        }
        table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        text += &format!("{class}, times in µs\n{table}\n\n");
    }
    text
}

fn cell(curve: &Curve, row: usize) -> String {
    let Some(point) = curve.points().get(row) else { return String::new() };
    let reach = (point.high - point.ns).max(point.ns - point.low);
    format!("{:.1} ± {:.1}", point.ns / 1e3, reach / 1e3)
}
