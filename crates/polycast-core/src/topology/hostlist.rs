//! Slurm's hostlists: `dev[0-2,7],login` stands for `dev0 dev1 dev2 dev7 login`.
//!
//! Brackets may come several times in a name (`rack[0-1]node[00-15]`) and keep leading zeros.

use super::MAX_NAME;

/// The most digits of a number that becomes part of a range.
const MAX_DIGITS: usize = 18;

/// The most bytes of a word outside of its brackets, which are in each of the word's names: room
/// for a name in the DNS, user and ranks.
const MAX_WORD: usize = 512;

/// Expands a hostlist into at most `limit` names, in the order in which they are written.
pub fn expand(list: &str, limit: usize) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for word in split_outside_brackets(list)? {
        // Each pair of brackets makes a name longer; without a limit their number would be the depth of the recursion.
        if word.matches('[').count() > MAX_NAME {
            return Err(format!(
                "expected names of at most {MAX_NAME} characters, found more brackets than that"
            ));
        }
        if outside_brackets(word) > MAX_WORD {
            let begin: String = word.chars().take(MAX_NAME).collect();
            return Err(format!("expected names of at most {MAX_WORD} characters, found {begin}…"));
        }
        names.extend(expand_word(word, limit.saturating_sub(names.len()))?);
    }
    Ok(names)
}

/// Splits at commas, but not at those between brackets.
fn split_outside_brackets(list: &str) -> Result<Vec<&str>, String> {
    let (mut words, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, c) in list.char_indices() {
        match c {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return Err(format!("brackets do not match in {list:?}")),
            ',' if !inside => {
                words.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&list[start..]);
    match inside {
        true => Err(format!("brackets do not match in {list:?}")),
        false if words.iter().any(|word| word.is_empty()) => {
            Err(format!("expected a name on both sides of a comma, found {list:?}"))
        }
        false => Ok(words),
    }
}

/// Counts the bytes of a word that are not between brackets; the word has no brackets within
/// brackets.
fn outside_brackets(word: &str) -> usize {
    word.split('[').map(|part| part.split_once(']').map_or(part, |(_, after)| after).len()).sum()
}

fn expand_word(word: &str, limit: usize) -> Result<Vec<String>, String> {
    let too_many = || format!("{word:?} stands for more names than are allowed");
    let Some((prefix, rest)) = word.split_once('[') else {
        return if limit == 0 { Err(too_many()) } else { Ok(vec![word.to_owned()]) };
    };
    let (ranges, suffix) =
        rest.split_once(']').ok_or_else(|| format!("brackets do not match in {word:?}"))?;
    let endings = expand_word(suffix, limit)?;
    let mut names = Vec::new();
    for number in numbers(ranges, limit)? {
        if names.len() + endings.len() > limit {
            return Err(too_many());
        }
        names.extend(endings.iter().map(|ending| format!("{prefix}{number}{ending}")));
    }
    Ok(names)
}

/// The numbers of `0-5,7,010-012`, as written.
fn numbers(ranges: &str, limit: usize) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let error = || format!("expected a number or a range such as 0-5 in brackets, found {range:?}");
        let (first_text, last_text) = range.split_once('-').unwrap_or((range, range));
        let digits =
            |text: &str| (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
        if !digits(first_text) || !digits(last_text) {
            return Err(error());
        }
        let first: u64 = first_text.parse().map_err(|_| error())?;
        let last: u64 = last_text.parse().map_err(|_| error())?;
        if first > last {
            return Err(format!("{error}: it runs backwards", error = error()));
        }
        if last - first >= limit.saturating_sub(numbers.len()) as u64 {
            return Err(format!("{range:?} stands for more names than are allowed"));
        }
        let width = first_text.len();
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// Writes names as a hostlist that expands to the same names in the same order: `dev[0-2,7],login`.
pub fn compress<S: AsRef<str>>(names: &[S]) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = names;
    while let Some(first) = rest.first() {
        let (prefix, digits) = split_number(first.as_ref());
        let same_prefix =
            |name: &S| matches!(split_number(name.as_ref()), (p, d) if p == prefix && !d.is_empty());
        let group =
            if digits.is_empty() { 1 } else { rest.iter().take_while(|name| same_prefix(name)).count() };
        let (now, later) = rest.split_at(group);
        rest = later;
        words.push(match now {
            [single] => single.as_ref().to_owned(),
            several => {
                let numbers: Vec<&str> = several.iter().map(|name| split_number(name.as_ref()).1).collect();
                format!("{prefix}[{}]", ranges(&numbers))
            }
        });
    }
    words.join(",")
}

/// Splits a name before the digits at its end, as many as fit a number.
fn split_number(name: &str) -> (&str, &str) {
    let digits = name.bytes().rev().take(MAX_DIGITS).take_while(u8::is_ascii_digit).count();
    name.split_at(name.len() - digits)
}

/// Writes numbers as ranges: `0-2,7` for 0, 1, 2, 7. A range keeps the width of its first number,
/// so `9,10` is no range but `09-10` is.
fn ranges(numbers: &[&str]) -> String {
    let value = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let follows = |one: &str, next: &str| {
        value(next).checked_sub(1) == Some(value(one))
            && format!("{:0w$}", value(next), w = one.len()) == next
    };
    let chunks = numbers.chunk_by(|one, next| follows(one, next));
    let words = chunks.map(|chunk| match chunk {
        [first, .., last] => format!("{first}-{last}"),
        _ => chunk.concat(),
    });
    words.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_the_slurm_manual() {
        for (list, names) in [
            ("dev0", "dev0"),
            ("dev[0-3]", "dev0 dev1 dev2 dev3"),
            ("dev[6-8,20]", "dev6 dev7 dev8 dev20"),
            ("a,b[08-11],c", "a b08 b09 b10 b11 c"),
            ("rack[0-1]node[1-2]x", "rack0node1x rack0node2x rack1node1x rack1node2x"),
            ("n[0-1,3]", "n0 n1 n3"),
            ("n[000-001]", "n000 n001"),
        ] {
            assert_eq!(expand(list, 100).unwrap().join(" "), names, "{list}");
        }
    }

    #[test]
    fn mistakes_are_refused() {
        for list in [
            "", "a,", ",a", "a[", "a]", "a[[0]]", "a[]", "a[1-]", "a[3-1]", "a[x]", "a[1-2-3]", "a[1,]",
            "a[-1]",
        ] {
            assert!(expand(list, 100).is_err(), "{list}");
        }
    }

    #[test]
    fn names_are_compressed() {
        for (names, list) in [
            ("", ""),
            ("login", "login"),
            ("dev7", "dev7"),
            ("dev0 dev1 dev2 dev7 login", "dev[0-2,7],login"),
            ("b08 b09 b10 b11", "b[08-11]"),
            ("b9 b10", "b[9-10]"),
            ("b09 b9 b10", "b[09,9-10]"),
            ("b2 b1 b0", "b[2,1,0]"),
            ("a1 b1 a2", "a1,b1,a2"),
        ] {
            assert_eq!(compress(&names.split_whitespace().collect::<Vec<_>>()), list);
        }
    }

    #[test]
    fn brackets_without_end_are_refused() {
        assert!(expand(&"a[0]".repeat(MAX_NAME), 10).is_ok());
        assert!(expand(&"a[0]".repeat(MAX_NAME + 1), 10).is_err());
        assert!(expand(&"[0]".repeat(1_000_000), 10).is_err());
    }

    /// Each of its names would be as long.
    #[test]
    fn a_long_word_is_refused_before_it_stands_for_many() {
        for (bytes, good) in [(MAX_WORD, true), (MAX_WORD + 1, false), (1 << 20, false)] {
            assert_eq!(expand(&format!("{}[0-9]x", "n".repeat(bytes - 1)), 65_536).is_ok(), good, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn what_is_compressed_expands_again(names in prop::collection::vec("[ab]{0,2}[0-9]{0,3}[0-9]{17}|[ab]{1,2}0{0,2}[0-9]{0,2}|c[8-9]|c1[0-2]", 1..20)) {
            prop_assert_eq!(expand(&compress(&names), 100), Ok(names));
        }
    }

    #[test]
    fn a_list_cannot_ask_for_more_than_the_limit() {
        for (list, good) in [
            ("a[1-9],b", true),
            ("a[1-10],b", false),
            ("a[1-10]", true),
            ("a[1-2]b[1-5]", true),
            ("a[1-2]b[1-6]", false),
        ] {
            assert_eq!(expand(list, 10).is_ok(), good, "{list}");
        }
        assert!(expand("a[0-999999999999999999]", 10).is_err());
        assert!(expand("a[0-9]b[0-9]c[0-9]d[0-9]e[0-9]f[0-9]g[0-9]", 1_000).is_err());
    }
}
