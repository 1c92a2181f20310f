//! Who wins where, for people.

use polycast_core::policy::tune::Found;
use polycast_core::policy::{Choice, CommunicatorShape};
use polycast_core::units::Bytes;

use super::{Size, picture};
use crate::terminal::nanoseconds;

/// The best choices for each collective, shape and size.
#[derive(Default)]
pub struct Map {
    pub(super) collectives: Vec<OfCollective>,
}

/// The best choices for a collective: by shape, then by rising sizes.
pub(super) struct OfCollective {
    pub name: &'static str,
    pub shapes: Vec<(CommunicatorShape, Vec<Size>)>,
}

impl Map {
    /// Adds the best choices for a collective on a shape.
    pub fn add(&mut self, name: &'static str, shape: CommunicatorShape, sizes: Vec<Size>) {
        if sizes.is_empty() {
            return;
        }
        match self.collectives.iter_mut().find(|one| one.name == name) {
            Some(one) => one.shapes.push((shape, sizes)),
            None => self.collectives.push(OfCollective { name, shapes: vec![(shape, sizes)] }),
        }
    }

    /// Writes a line for each size of each shape, and where there are several shapes, a table of
    /// the winners and their gains, size by ranks.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for OfCollective { name, shapes } in &self.collectives {
            for (shape, sizes) in shapes {
                if shapes.len() > 1 {
                    text += &format!("\n{}", column(shape));
                }
                text += &lines(name, sizes);
            }
            if shapes.len() > 1 {
                text += &grid(name, shapes);
            }
        }
        text
    }

    /// Draws the map as an SVG picture, with notes on the measurement under its title.
    pub fn svg(&self, notes: &[String]) -> String {
        picture::svg(self, notes)
    }
}

/// Returns the heading of a shape's column.
pub(super) fn column(shape: &CommunicatorShape) -> String {
    format!("{} ranks, {} nodes", shape.ranks, shape.nodes)
}

/// Returns how many times as fast as the MPI below the best choice is; `None` if the MPI itself is
/// the best, or a time is not known.
pub(super) fn gain(found: &Found) -> Option<f64> {
    let (time, stock) = found.time.zip(found.stock).filter(|_| found.best != Choice::Stock)?;
    Some(stock.median_us / time.median_us)
}

/// Returns the sizes of all shapes, in bytes, rising, each once.
pub(super) fn sizes(shapes: &[(CommunicatorShape, Vec<Size>)]) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        shapes.iter().flat_map(|(_, sizes)| sizes.iter().map(|size| size.bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A line for each size: what is best, its time, how many times faster than stock, and the best one besides. Fits 80 columns as long as
/// names are usual.
fn lines(name: &str, sizes: &[Size]) -> String {
    let mut text = format!("\n{name:>8}  {:<30} {:>8} {:>7}  next\n", "best", "time", "× stock");
    for Size { block_bytes, found, .. } in sizes {
        let time = found.time.map_or_else(|| "-".to_owned(), |time| nanoseconds(time.median_us * 1e3));
        let gain = gain(found).map_or_else(|| "-".to_owned(), |gain| format!("{gain:.2}"));
        let next = found.second.map_or_else(String::new, |(choice, time)| {
            let doubt = if found.separates { "" } else { " ?" };
            format!("{choice} {}{doubt}", nanoseconds(time.median_us * 1e3))
        });
        let size = Bytes(*block_bytes).to_string();
        let line = format!("{size:>8}  {:<30} {time:>8} {gain:>7}  {next}", found.best.to_string());
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Writes a table of sizes by shapes: the winner's algorithm, and how many times as fast as stock
/// it is.
fn grid(name: &str, shapes: &[(CommunicatorShape, Vec<Size>)]) -> String {
    const WIDTH: usize = 24;
    let mut text = format!("\n{name:>8}");
    shapes.iter().for_each(|(shape, _)| text += &format!("  {:<WIDTH$}", column(shape)));
    for bytes in sizes(shapes) {
        text = format!("{}\n{:>8}", text.trim_end(), Bytes(bytes).to_string());
        for (_, sizes) in shapes {
            let cell = sizes.iter().find(|size| size.bytes == bytes).map_or_else(String::new, |size| {
                let gain = gain(&size.found).map_or_else(String::new, |gain| format!(" {gain:.2}"));
                format!("{}{gain}", algorithm(size.found.best))
            });
            text += &format!("  {cell:<WIDTH$}");
        }
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// The name without segments and the like.
pub(super) fn algorithm(choice: Choice) -> String {
    let text = choice.to_string();
    text.split([':', ',']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use polycast_core::policy::Collective;
    use polycast_core::policy::tune::Measured;

    use super::*;
    use crate::picture::inside;

    fn size(bytes: u64, best: &str, separates: bool) -> Size {
        let time = |us: f64| Measured { median_us: us, low_us: us, high_us: us, samples: 9 };
        let found = Found {
            best: Choice::read(Collective::Broadcast, best).unwrap(),
            time: Some(time(1500.0)),
            stock: Some(time(3000.0)),
            second: Some((Choice::Stock, time(3000.0))),
            separates,
            measured: 2,
            all: Vec::new(),
        };
        Size { bytes, block_bytes: bytes, found }
    }

    fn map() -> Map {
        let mut map = Map::default();
        let sizes = || vec![size(1024, "stock", false), size(65536, "chain:segment=8KiB", true)];
        map.add("bcast", CommunicatorShape::new(4, 4, None).unwrap(), sizes());
        map.add("bcast", CommunicatorShape::new(16, 8, None).unwrap(), sizes()[1..].to_vec());
        map
    }

    #[test]
    fn what_does_not_separate_is_marked() {
        let map = map();
        let text = lines("bcast", &map.collectives[0].shapes[0].1);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "    1KiB  stock                           1.50 ms       -  stock 3.00 ms ?",
                "   64KiB  chain:segment=8KiB              1.50 ms    2.00  stock 3.00 ms",
            ]
        );
    }

    #[test]
    fn several_shapes_stand_beside_each_other() {
        let text = map().text();
        let end: Vec<&str> = text.lines().rev().take(3).collect();
        assert_eq!(
            end,
            [
                "   64KiB  chain 2.00                chain 2.00",
                "    1KiB  stock",
                "   bcast  4 ranks, 4 nodes          16 ranks, 8 nodes",
            ]
        );
    }

    #[test]
    fn the_picture_has_each_cell_and_a_legend() {
        let svg = map().svg(&["polycast 0.2.0, Open MPI 4.1.4".to_owned()]);
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 2, "the ground, the cells, the legend: {svg}");
        for text in [
            "16 ranks, 8 nodes",
            "chain:segment=8KiB: 1.50 ms",
            "What polycast tune found",
            "message",
            "Open MPI 4.1.4",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert_eq!(inside::cut_off(&svg), Vec::<String>::new());
    }
}
