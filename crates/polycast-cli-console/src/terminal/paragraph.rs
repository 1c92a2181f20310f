//! Sentences that are broken between words.

use textwrap::Options;

use super::width;

/// `text` in lines of at most [`width`] columns. A word that is longer, a path for example, keeps a line of its own.
pub fn paragraph(text: &str) -> String {
    hanging("", "", text)
}

/// `first` and `text`, the following lines behind `rest`: for items of lists.
pub fn hanging(first: &str, rest: &str, text: &str) -> String {
    let options = Options::new(width())
        .initial_indent(first)
        .subsequent_indent(rest)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

#[cfg(test)]
mod tests {
    use super::super::WIDTH;
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let text = hanging("  -> ", "     ", &"twelve words ".repeat(12));
        assert!(
            text.lines().all(|line| line.chars().count() <= WIDTH && line.ends_with(['e', 's'])),
            "{text}"
        );
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("     words")), "{text}");
    }

    #[test]
    fn what_is_copied_is_not_broken() {
        let path = format!("/{}", "long-path/".repeat(12));
        assert_eq!(paragraph(&format!("see {path} there")), format!("see\n{path}\nthere"));
    }
}
