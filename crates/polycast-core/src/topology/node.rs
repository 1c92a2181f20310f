//! YAML as a tree of nodes with their lines. JSON is YAML too (YAML 1.2 §1.3), so that both get line numbers here.

use saphyr_parser::{Event, Parser};

use super::draft::Draft;

/// The deepest nesting: formats of topologies need seven.
const MAX_DEPTH: usize = 32;

/// A value, with the line on which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) content: NodeContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeContent {
    Scalar(String),
    Sequence(Vec<Node>),
    /// Keys and values in the order of the file; keys may come several times.
    Mapping(Vec<(Node, Node)>),
}

/// A sequence or mapping whose end has not come yet; a mapping as keys and values in turn.
struct Begun {
    line: usize,
    is_mapping: bool,
    children: Vec<Node>,
}

impl Begun {
    fn end(self) -> Node {
        let content = match self.is_mapping {
            false => NodeContent::Sequence(self.children),
            true => {
                let mut children = self.children.into_iter();
                let pairs = std::iter::from_fn(|| Some((children.next()?, children.next()?)));
                NodeContent::Mapping(pairs.collect())
            }
        };
        Node { line: self.line, content }
    }
}

/// Reads the only document of a text; an error has its line. Anchors are refused: with them a short
/// text can stand for a very long one.
pub(super) fn read(text: &str) -> Result<Node, (usize, String)> {
    let mut begun: Vec<Begun> = Vec::new();
    let mut document: Option<Node> = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| (error.marker().line(), error.info().to_owned()))?;
        let line = span.start.line();
        let node = match event {
            Event::MappingStart(..) | Event::SequenceStart(..) if begun.len() >= MAX_DEPTH => {
                return Err((line, format!("expected at most {MAX_DEPTH} levels, found more")));
            }
            Event::MappingStart(..) => {
                begun.push(Begun { line, is_mapping: true, children: Vec::new() });
                continue;
            }
            Event::SequenceStart(..) => {
                begun.push(Begun { line, is_mapping: false, children: Vec::new() });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => match begun.pop() {
                Some(ended) => ended.end(),
                None => continue,
            },
            Event::Scalar(text, ..) => Node { line, content: NodeContent::Scalar(text.into_owned()) },
            Event::Alias(_) => return Err((line, "expected the value itself, found an alias".to_owned())),
            Event::DocumentStart(_) if document.is_some() => {
                return Err((line, "expected one document, found another one".to_owned()));
            }
            Event::DocumentStart(_) | Event::DocumentEnd => continue,
            Event::StreamStart | Event::StreamEnd | Event::Nothing => continue,
        };
        match begun.last_mut() {
            Some(parent) => parent.children.push(node),
            None => document = Some(node),
        }
    }
    document.ok_or_else(|| (0, "expected a document, found nothing".to_owned()))
}

/// Each function that takes a draft reports to it what is not as it should be; `what` names the
/// node in a sentence.
impl Node {
    /// The values of the known keys. Other keys and repeated ones are mistakes.
    pub(super) fn fields<const N: usize>(
        &self,
        draft: &mut Draft,
        what: &str,
        known: [&str; N],
    ) -> Option<[Option<&Node>; N]> {
        let NodeContent::Mapping(pairs) = &self.content else {
            draft.mistake(
                self.line,
                format!("expected {what} with {}, found {}", known.join(", "), self.kind()),
            );
            return None;
        };
        let mut fields = [None; N];
        for (key, value) in pairs {
            let place = known
                .iter()
                .position(|known| matches!(&key.content, NodeContent::Scalar(key) if key == known));
            match place {
                Some(place) if fields[place].replace(value).is_none() => {}
                Some(place) => draft.mistake(key.line, format!("{what} has {} twice", known[place])),
                None => {
                    let found = key.as_text().unwrap_or(key.kind());
                    let text = format!("expected {what} with {}, found the key {found:?}", known.join(", "));
                    draft.mistake(key.line, text);
                }
            }
        }
        Some(fields)
    }

    pub(super) fn has_key(&self, wanted: &str) -> bool {
        let NodeContent::Mapping(pairs) = &self.content else { return false };
        pairs.iter().any(|(key, _)| key.as_text() == Some(wanted))
    }

    pub(super) fn items(&self, draft: &mut Draft, what: &str) -> &[Node] {
        match &self.content {
            NodeContent::Sequence(items) => items,
            _ => {
                draft.mistake(self.line, format!("expected a list of {what}, found {}", self.kind()));
                &[]
            }
        }
    }

    pub(super) fn text(&self, draft: &mut Draft, what: &str) -> Option<&str> {
        if self.as_text().is_none() {
            draft.mistake(self.line, format!("expected {what}, found {}", self.kind()));
        }
        self.as_text()
    }

    pub(super) fn number(&self, draft: &mut Draft, what: &str) -> Option<u64> {
        let number = self.as_text().and_then(|text| text.parse().ok());
        if number.is_none() {
            let found = self.as_text().unwrap_or(self.kind());
            draft.mistake(self.line, format!("expected {what} as a whole number, found {found:?}"));
        }
        number
    }

    fn as_text(&self) -> Option<&str> {
        match &self.content {
            NodeContent::Scalar(text) => Some(text),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match self.content {
            NodeContent::Scalar(_) => "a single value",
            NodeContent::Sequence(_) => "a list",
            NodeContent::Mapping(_) => "keys with values",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_values() {
        let node = read("# comment\n- a: b\n  c: [d,\n      e]\n").unwrap();
        let NodeContent::Sequence(items) = node.content else { panic!("a list") };
        let NodeContent::Mapping(pairs) = &items[0].content else { panic!("a mapping") };
        assert_eq!(items[0].line, 2);
        let NodeContent::Sequence(list) = &pairs[1].1.content else { panic!("a list") };
        assert_eq!((pairs[1].0.line, list[1].line, list[1].as_text()), (3, 4, Some("e")));
    }

    #[test]
    fn what_is_not_read() {
        for (text, line, words) in [
            ("", 0, "nothing"),
            ("a: &x b\nc: *x\n", 2, "alias"),
            ("a: b\n---\nc: d\n", 2, "another"),
            ("{\"a\": [1, 2}", 1, ""),
            ("a: b\n c\n  d: e", 3, ""),
        ] {
            let (found_line, problem) = read(text).unwrap_err();
            assert!(found_line == line && problem.contains(words), "{text:?}: {found_line}: {problem}");
        }
    }

    #[test]
    fn the_depth_is_limited() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(MAX_DEPTH)).is_ok());
        assert!(read(&nested(MAX_DEPTH + 1)).unwrap_err().1.contains("levels"));
        assert!(read(&"[".repeat(100_000)).is_err());
        assert!(read(&"- ".repeat(100_000)).is_err());
    }
}
