//! Who wins where, for people.

use polycast_core::policy::Choice;
use polycast_core::policy::tune::Found;
use polycast_core::units::Bytes;

use crate::terminal::nanoseconds;

/// A line for each size: what is best, its time, how many times faster than stock, and the best one besides. Fits 80 columns as long as
/// names are usual.
pub fn map(collective: &str, found: &[(u64, Found)]) -> String {
    let mut text = format!("\n{collective:>8}  {:<30} {:>8} {:>7}  next\n", "best", "time", "× stock");
    for (bytes, one) in found {
        let time = one.time.map_or_else(|| "-".to_owned(), |time| nanoseconds(time.median_us * 1e3));
        let gain = one.time.zip(one.stock).filter(|_| one.best != Choice::Stock);
        let gain = gain.map_or_else(
            || "-".to_owned(),
            |(time, stock)| format!("{:.2}", stock.median_us / time.median_us),
        );
        let next = one.second.map_or_else(String::new, |(choice, time)| {
            let doubt = if one.separates { "" } else { " ?" };
            format!("{choice} {}{doubt}", nanoseconds(time.median_us * 1e3))
        });
        let line = format!(
            "{:>8}  {:<30} {time:>8} {gain:>7}  {next}",
            Bytes(*bytes).to_string(),
            one.best.to_string()
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use polycast_core::policy::Collective;
    use polycast_core::policy::tune::Measured;

    use super::*;

    #[test]
    fn what_does_not_separate_is_marked() {
        let time = |us: f64| Measured { median_us: us, low_us: us, high_us: us, samples: 9 };
        let chain = Choice::read(Collective::Broadcast, "chain:segment=8KiB").unwrap();
        let found = |best, separates| Found {
            best,
            time: Some(time(1500.0)),
            stock: Some(time(3000.0)),
            second: Some((Choice::Stock, time(3000.0))),
            separates,
            measured: 2,
        };
        let text = map("bcast", &[(1024, found(Choice::Stock, false)), (65536, found(chain, true))]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "    1KiB  stock                           1.50 ms       -  stock 3.00 ms ?",
                "   64KiB  chain:segment=8KiB              1.50 ms    2.00  stock 3.00 ms",
            ]
        );
    }
}
