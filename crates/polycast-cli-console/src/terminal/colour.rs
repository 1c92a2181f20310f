use std::env;
use std::io::IsTerminal;

use anstyle::Style;

/// True if a stream is a terminal that has colours, and nobody declined them: NO_COLOR set to
/// anything does (<https://no-color.org>).
pub fn is_colourful(stream: &impl IsTerminal) -> bool {
    let declined = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    stream.is_terminal() && !declined && !dumb
}

/// The manner of writing: with colours and weights, or plain letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Letters as they are.
    Plain,
    /// Letters with colours and weights, for a terminal.
    Styled,
}

impl Paint {
    /// Chooses styles if standard output is a terminal with colours, else plain letters.
    pub fn of_standard_output() -> Paint {
        if is_colourful(&std::io::stdout()) { Paint::Styled } else { Paint::Plain }
    }

    /// A text in a style.
    pub fn set(self, style: Style, text: &str) -> String {
        match self {
            Paint::Styled if !text.is_empty() => format!("{style}{text}{style:#}"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_means_plain() {
        let red = anstyle::AnsiColor::Red.on_default();
        assert_eq!(Paint::Plain.set(red, "problem"), "problem");
        assert_eq!(Paint::Styled.set(red, "problem"), "\u{1b}[31mproblem\u{1b}[0m");
        assert_eq!(Paint::Styled.set(red, ""), "");
    }
}
