//! The comments of a table's text, so that they stay with their rules when it is written again.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Lines of comment without their `#`, by what they stand above or beside.
#[derive(Debug)]
pub(super) struct Comments {
    /// Comments of the version.
    pub head: Vec<String>,
    /// Comments of each rule, in the rules' order.
    pub of_rules: Vec<Vec<String>>,
    /// Comments behind the last rule.
    pub end: Vec<String>,
}

/// Collects the comments of a text whose rules start at these offsets, in bytes.
pub(super) fn comments(text: &str, rule_starts: &[usize]) -> Comments {
    let mut sections = vec![Vec::new(); rule_starts.len() + 1];
    let (mut section, mut is_beside) = (0, false);
    // What stands above something that has not come yet.
    let mut above = Vec::new();
    for token in Source::new(text).lex() {
        let span = token.span();
        match token.kind() {
            TokenKind::Comment => {
                let line = line(text.get(span.start()..span.end()).unwrap_or_default());
                if is_beside { sections[section].push(line) } else { above.push(line) }
            }
            TokenKind::Newline => is_beside = false,
            TokenKind::Whitespace | TokenKind::Eof => {}
            _ => {
                section = rule_starts.partition_point(|start| *start <= span.start());
                sections[section].append(&mut above);
                is_beside = true;
            }
        }
    }
    let of_rules = sections.split_off(1);
    Comments { head: sections.pop().unwrap_or_default(), of_rules, end: above }
}

/// Returns a comment as it is kept: without its `#`, the space behind that, and spaces at the end.
fn line(comment: &str) -> String {
    let text = comment.strip_prefix('#').unwrap_or(comment);
    text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned()
}
