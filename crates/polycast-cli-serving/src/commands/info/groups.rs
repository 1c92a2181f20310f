//! The probability that jobs share a multicast group, which each of them draws at random.

use polycast_net::Range;

use crate::terminal::table;

/// The numbers of groups in use at a time that the table is for.
const IN_USE: [u32; 4] = [2, 10, 200, 5000];

/// The probability that of `in_use` groups drawn from `groups` two or more are the same: the
/// complement of `(1 - 1/m) (1 - 2/m) … (1 - (n-1)/m)` (Siebert 2006, §1.7.2).
pub fn collision_probability(groups: u64, in_use: u32) -> f64 {
    let none: f64 = (1..in_use).map(|drawn| (-f64::from(drawn) / groups as f64).ln_1p()).sum();
    -none.exp_m1()
}

/// The table of these probabilities by ranges of addresses, within 80 columns.
pub fn text() -> String {
    let ranges = [
        (Range::OrganisationV4, "ipv4", "239.192.0.0/14"),
        (Range::GlobalV4, "ipv4-global", "225.0.1.0 to 238.255.255.255"),
        (Range::LinkV6, "ipv6", "ff12::8000:0/97"),
    ];
    let rows = ranges.map(|(range, setting, addresses)| {
        let groups = range.groups();
        let mut row = vec![setting.to_owned(), addresses.to_owned(), format!("{:.1e}", groups as f64)];
        row.extend(IN_USE.map(|in_use| format!("{:.1e}", collision_probability(groups, in_use))));
        row
    });
    let in_use = IN_USE.map(|in_use| in_use.to_string());
    let mut header = vec!["SETTING", "ADDRESSES", "GROUPS"];
    header.extend(in_use.iter().map(String::as_str));
    let header: [&str; 7] = header.try_into().expect("seven columns");
    format!(
        "Probability that of so many groups in use at a time two are the same; a job's\n\
         key tells its datagrams apart all the same:\n\n{}",
        table(header, rows.into_iter().collect(), 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Siebert 2006, Table 1, in percent. It is made for 255 of 256 parts of twelve /8, and for ports 5000 to 32768.
    #[test]
    fn the_papers_collisions() {
        let groups = 12 * 255 * (1 << 16) * 27_769;
        let published = [
            (1, 0.0),
            (2, 0.000_000_000_017_9),
            (3, 0.000_000_000_053_8),
            (4, 0.000_000_000_107_7),
            (5, 0.000_000_000_179_5),
            (6, 0.000_000_000_269_3),
            (7, 0.000_000_000_377_1),
            (8, 0.000_000_000_502_8),
            (9, 0.000_000_000_646_4),
            (10, 0.000_000_000_808_0),
            (11, 0.000_000_000_987_6),
            (20, 0.000_000_003_411_8),
            (30, 0.000_000_007_811_3),
            (40, 0.000_000_014_006_6),
            (50, 0.000_000_021_997_5),
            (100, 0.000_000_088_888_1),
            (200, 0.000_000_357_348_1),
        ];
        for (in_use, percent) in published {
            let found = 100.0 * collision_probability(groups, in_use);
            // 13 decimals; of some the rest is cut off, others are rounded.
            assert!((found - percent).abs() < 1.01e-13, "{in_use}: {found:e} {percent:e}");
        }
        assert_eq!(collision_probability(1, 2), 1.0);
    }

    #[test]
    fn the_page_fits() {
        let text = text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("5.6e12"), "{text}");
    }
}
