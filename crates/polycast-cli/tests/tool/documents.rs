//! What the documents tell people to type is understood.

use std::collections::BTreeMap;
use std::fs;

use crate::common::checkout;
use crate::fake::{World, output};

/// The verb of a line, with the verb below it if it has one, and the options behind.
fn parts(line: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let line = line.split(" -- ").next()?.split(" #").next()?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "polycast").skip(1).peekable();
    let verb =
        words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))?;
    let mut verbs = vec![verb];
    if matches!(verb, "lab" | "topology" | "table") || matches!(words.peek(), Some(&("study" | "compare"))) {
        verbs.extend(words.next());
    }
    let options = words.filter(|word| word.starts_with("--") && word.len() > 2);
    Some((verbs, options.map(|word| word.split('=').next().unwrap_or(word)).collect()))
}

/// Lines of blocks of code that call the tool.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        is_code ^= line.starts_with("```");
        is_code && line.starts_with("polycast ")
    })
}

#[test]
fn every_option_in_a_document_exists() {
    let world = World::with_doors(&[]);
    let mut help: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut documents: Vec<_> =
        fs::read_dir(checkout().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    documents.push(checkout().join("README.md"));
    let verbs = output(&mut world.polycast(&["--help"]));
    // Other lines are what the tool prints.
    let is_verb = |verb: &str| {
        verbs
            .lines()
            .any(|line| line.strip_prefix("  ").is_some_and(|rest| rest.split(' ').next() == Some(verb)))
    };
    let mut count = 0;
    for file in documents.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(file).unwrap();
        let calls = calls(&text).filter_map(|line| Some((line, parts(line)?)));
        for (line, (verbs, options)) in calls.filter(|(_, (verbs, _))| is_verb(verbs[0])) {
            let verbs: Vec<String> = verbs.into_iter().map(str::to_owned).collect();
            let help = help.entry(verbs.clone()).or_insert_with(|| {
                let arguments: Vec<&str> = verbs.iter().map(String::as_str).chain(["--help"]).collect();
                output(&mut world.polycast(&arguments))
            });
            for option in options {
                let is_known =
                    help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == option);
                assert!(is_known, "{}: {option} in `{line}`", file.display());
                count += 1;
            }
        }
    }
    assert!(count > 50, "{count} options were looked at");
}
