/// Many short texts in two allocations: a process keeps one of each rank.
#[derive(Default)]
pub struct Texts {
    all: Box<str>,
    /// End of each text in bytes; the next begins there.
    ends: Box<[u32]>,
}

impl Texts {
    pub fn new(texts: &[String]) -> Texts {
        let end = |end: &mut usize, text: &String| {
            *end += text.len();
            Some(*end as u32)
        };
        Texts { all: texts.concat().into(), ends: texts.iter().scan(0, end).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The text of this index; empty if there are not so many.
    pub fn get(&self, index: usize) -> &str {
        let end = |index: usize| self.ends.get(index).map(|end| *end as usize);
        let begin = index.checked_sub(1).map_or(Some(0), end);
        let range = begin.zip(end(index)).map(|(begin, end)| begin..end);
        range.map_or("", |range| &self.all[range])
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back() {
        let texts = ["host0", "", "hôte", "x"].map(str::to_owned);
        let kept = Texts::new(&texts);
        assert_eq!(kept.iter().collect::<Vec<_>>(), texts);
        assert_eq!((kept.get(2), kept.get(4), kept.get(99)), ("hôte", "", ""));
        assert!(!kept.is_empty() && Texts::new(&[]).is_empty());
    }
}
