//! Colours, where somebody looks and has not declined them.

use anstyle::{AnsiColor, Style};

use super::finding::Level;
use crate::terminal::is_colourful;

/// How findings are painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    is_coloured: bool,
}

impl Palette {
    /// Letters as they are.
    #[cfg(test)]
    pub const PLAIN: Palette = Palette { is_coloured: false };

    /// Colours where somebody sees them.
    pub fn of_standard_output() -> Palette {
        Palette { is_coloured: is_colourful(&std::io::stdout()) }
    }

    /// A word in the colour of a level.
    pub fn paint(self, level: Level, word: &str) -> String {
        let style = match level {
            Level::Ok => AnsiColor::Green.on_default(),
            Level::Note => AnsiColor::Cyan.on_default(),
            Level::Warning => AnsiColor::Yellow.on_default(),
            Level::Problem => AnsiColor::Red.on_default().bold(),
        };
        self.styled(style, word)
    }

    /// A heading.
    pub fn heading(self, word: &str) -> String {
        self.styled(Style::new().bold(), word)
    }

    fn styled(self, style: Style, word: &str) -> String {
        if self.is_coloured { format!("{style}{word}{style:#}") } else { word.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_means_plain() {
        assert_eq!(Palette::PLAIN.paint(Level::Problem, "problem"), "problem");
        let coloured = Palette { is_coloured: true }.paint(Level::Ok, "ok");
        assert_eq!(coloured, "\u{1b}[32mok\u{1b}[0m");
    }
}
