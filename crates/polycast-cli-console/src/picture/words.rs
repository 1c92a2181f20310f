//! Texts of pictures: how much room they take, and lines that fit.

/// The mean width of a character over the size of its font: a generous one, since the font is known to whoever looks at the file only.
const CHARACTER: f64 = 0.6;

/// Returns the width of a text, in the unit of the font's size.
pub fn width(text: &str, font: f64) -> f64 {
    text.chars().count() as f64 * font * CHARACTER
}

/// The text in lines of this width at most, broken between words as far as there are any.
pub fn lines(text: &str, font: f64, most: f64) -> Vec<String> {
    let characters = (most / (font * CHARACTER)).max(1.0) as usize;
    let options = textwrap::Options::new(characters).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// A number with commas between thousands from five digits on: `8192`, `65,536`.
pub fn thousands(text: &str) -> String {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'-').count();
    let (whole, rest) = text.split_at(digits);
    if whole.trim_start_matches('-').len() < 5 {
        return text.to_owned();
    }
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_say_all() {
        let text = "orange messages share a link with one of another sender";
        let lines = lines(text, 13.0, 200.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| width(line, 13.0) <= 200.0), "{lines:?}");
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn thousands_are_told_apart_from_five_digits_on() {
        let of = ["8192", "65536", "-600000", "1000000.5", "0.25", "0"];
        assert_eq!(of.map(thousands), ["8192", "65,536", "-600,000", "1,000,000.5", "0.25", "0"]);
    }
}
