//! A colour for each algorithm, the same in every picture and on every page.
//!
//! Those that are seen most have one of Okabe and Ito's colours, or of Tol's, which people with any colour vision tell apart; the others get one
//! by their name. What is not an algorithm but a variant of a measurement, such as `polycast`, counts as one.

use std::fmt;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// The colour of calls that are left to the MPI.
pub const STOCK: Colour = Colour(127, 127, 127);

/// The colours of algorithms by their names without parameters.
const KNOWN: [(&str, Colour); 24] = [
    ("stock", STOCK),
    ("polycast", Colour(0, 114, 178)),
    ("multicast-pull", Colour(86, 180, 233)),
    ("multicast-push", Colour(51, 34, 136)),
    ("binomial", Colour(213, 94, 0)),
    ("chain", Colour(0, 158, 115)),
    ("binary", Colour(230, 159, 0)),
    ("ring", Colour(17, 119, 51)),
    ("two-level", Colour(204, 121, 167)),
    ("cells", Colour(170, 68, 153)),
    ("direct", Colour(68, 170, 153)),
    ("pairwise", Colour(153, 153, 51)),
    ("recursive-doubling", Colour(136, 34, 85)),
    ("scatter-ring", Colour(140, 109, 49)),
    ("scatter-doubling", Colour(204, 102, 119)),
    ("contention-free-binary", Colour(221, 170, 51)),
    ("contention-free-chain", Colour(0, 119, 136)),
    // Of the figures of wormhole networks.
    ("U-Mesh", Colour(0, 114, 178)),
    ("U-Min", Colour(0, 114, 178)),
    ("OPT-Mesh", Colour(213, 94, 0)),
    ("OPT-Min", Colour(213, 94, 0)),
    ("DYN-Mesh", Colour(0, 158, 115)),
    ("DYN-Min", Colour(0, 158, 115)),
    ("OPT-Tree", Colour(204, 121, 167)),
];

impl Colour {
    /// Returns the colour of an algorithm, whatever its parameters.
    pub fn of(name: &str) -> Colour {
        let name = name.split([':', ',', ' ']).next().unwrap_or_default();
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Colour::by_name(name), |(_, colour)| *colour)
    }

    /// Returns a colour from the wheel by the name's hash (FNV-1a): dark enough for lines on white,
    /// and light enough for black.
    fn by_name(name: &str) -> Colour {
        let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = name.bytes().fold(0x811c_9dc5, mix);
        let sixths = f64::from(hash % 360) / 60.0;
        let part = |shift: f64| {
            let at = (sixths + shift) % 6.0;
            let height = (at.min(4.0 - at)).clamp(0.0, 1.0);
            (60.0 + 130.0 * height).round() as u8
        };
        Colour(part(2.0), part(0.0), part(4.0))
    }

    /// Returns the colour lighter, mixed with `part` of 1 white; or darker, for parts below 0.
    pub fn shade(self, part: f64) -> Colour {
        let to = if part < 0.0 { 0.0 } else { 255.0 };
        let one =
            |value: u8| (f64::from(value) + (to - f64::from(value)) * part.abs().min(1.0)).round() as u8;
        Colour(one(self.0), one(self.1), one(self.2))
    }

    /// Returns the shade for one of several things that have this colour: the first as it is, the
    /// others each darker or lighter.
    pub fn of_several(self, number: usize) -> Colour {
        const SHADES: [f64; 8] = [0.0, -0.35, 0.4, -0.6, 0.2, -0.2, 0.55, -0.48];
        self.shade(SHADES[number % SHADES.len()])
    }
}

/// The colour as SVG and CSS read it.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Colour(red, green, blue) = self;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use polycast_core::algorithm::Registry;
    use polycast_core::collective::Collective;

    use super::*;

    #[test]
    fn an_algorithm_has_one_colour_whatever_its_parameters() {
        assert_eq!(Colour::of("chain:segment=8KiB"), Colour::of("chain"));
        assert_eq!((Colour::of("stock"), Colour::of("stock").to_string()), (STOCK, "#7f7f7f".to_owned()));
        assert_eq!(Colour::of("bruck"), Colour::of("bruck"));
    }

    #[test]
    fn the_algorithms_of_a_collective_are_told_apart() {
        for collective in Collective::ALL {
            let mut names: Vec<String> =
                Registry::BUILT_IN.of(collective).map(|entry| entry.name.to_string()).collect();
            names.sort();
            names.dedup();
            for (at, name) in names.iter().enumerate() {
                let same = names[..at].iter().find(|other| Colour::of(other) == Colour::of(name));
                assert!(same.is_none(), "{collective}: {name} and {same:?}");
            }
        }
    }

    #[test]
    fn what_has_the_same_colour_has_another_shade() {
        let colour = Colour::of("chain");
        let shades: Vec<Colour> = (0..8).map(|number| colour.of_several(number)).collect();
        assert_eq!(shades[0], colour);
        assert!(shades.iter().enumerate().all(|(at, shade)| !shades[..at].contains(shade)), "{shades:?}");
        assert_eq!((colour.shade(1.0), colour.shade(-1.0)), (Colour(255, 255, 255), Colour(0, 0, 0)));
    }
}
