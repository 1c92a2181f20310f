//! What shells complete: scripts by clap for those that it knows, and one for tcsh.
//!
//! tcsh has no functions, and its patterns know the word before and the number of a word, not the verb. So its script asks the tool, which gets the line
//! in COMMAND_LINE and answers with the words that may stand at its end.

use clap::builder::PossibleValue;
use clap::{Arg, Command, ValueEnum};

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// A shell that clap writes scripts for.
    Clap(clap_complete::Shell),
    /// tcsh, and csh where it is tcsh.
    Tcsh,
}

impl ValueEnum for Shell {
    fn value_variants<'a>() -> &'a [Shell] {
        use clap_complete::Shell::{Bash, Elvish, Fish, PowerShell, Zsh};
        const ALL: [Shell; 6] = [
            Shell::Clap(Bash),
            Shell::Clap(Elvish),
            Shell::Clap(Fish),
            Shell::Clap(PowerShell),
            Shell::Tcsh,
            Shell::Clap(Zsh),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Shell::Clap(shell) => shell.to_possible_value(),
            Shell::Tcsh => Some(PossibleValue::new("tcsh")),
        }
    }
}

/// Returns the script that a shell reads to complete the command.
pub fn script(shell: Shell, command: &mut Command) -> String {
    match shell {
        Shell::Clap(shell) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, command, "polycast", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
        Shell::Tcsh => tcsh(command),
    }
}

/// Verbs and options by asking; values of options that are one of a few, by the option; files elsewhere.
fn tcsh(command: &Command) -> String {
    const ASK: &str = "`polycast complete-words`";
    let mut patterns = vec![format!("'c/-/{ASK}/'"), format!("'p/1/{ASK}/'")];
    let of_verbs = command.get_subcommands().filter(|verb| verb.has_subcommands() && !verb.is_hide_set());
    patterns.extend(of_verbs.map(|verb| format!("'n/{}/{ASK}/'", verb.get_name())));
    let mut options: Vec<String> = Vec::new();
    gather_options(command, &mut options);
    options.sort_unstable();
    options.dedup();
    patterns.extend(options.iter().map(|option| format!("'n/{option}/{ASK}/'")));
    patterns.push("'p/*/f/'".to_owned());
    format!(
        "# source this in ~/.tcshrc: polycast completions tcsh > ~/.polycast.tcsh\ncomplete polycast {}\n",
        patterns.join(" \\\n    ")
    )
}

/// Options whose values are one of a few.
fn gather_options(command: &Command, options: &mut Vec<String>) {
    let has_values = |arg: &&Arg| !arg.get_possible_values().is_empty() && arg.get_action().takes_values();
    let long = command.get_arguments().filter(has_values).filter_map(Arg::get_long);
    options.extend(long.map(|long| format!("--{long}")));
    command.get_subcommands().for_each(|verb| gather_options(verb, options));
}

/// The words that may stand at the end of a line, one a line of the answer: verbs, options, or values of the option before.
pub fn words(command: &Command, line: &str) -> String {
    let before: Vec<&str> = match line.rsplit_once(char::is_whitespace) {
        Some((before, _)) => before.split_whitespace().skip(1).collect(),
        None => Vec::new(),
    };
    let begun = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    let verb = before.iter().fold(command, |verb, word| verb.find_subcommand(word).unwrap_or(verb));
    let of_option = before.last().and_then(|word| word.strip_prefix("--")).and_then(|long| {
        let option = verb.get_arguments().find(|arg| arg.get_long() == Some(long))?;
        Some(option.get_possible_values()).filter(|values| !values.is_empty())
    });
    let words: Vec<String> = match of_option {
        Some(values) => values.iter().map(|value| value.get_name().to_owned()).collect(),
        None if begun.starts_with('-') => {
            let options = verb.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
            options.chain(["help"]).map(|long| format!("--{long}")).collect()
        }
        None => {
            let verbs = verb.get_subcommands().filter(|verb| !verb.is_hide_set());
            verbs.map(|verb| verb.get_name().to_owned()).collect()
        }
    };
    words.into_iter().map(|word| word + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line;

    fn command() -> Command {
        command_line::without_help(command_line::command::<crate::Cli>())
    }

    #[test]
    fn the_end_of_a_line_decides_which_words_there_are() {
        let words = |line: &str| words(&command(), line);
        let has = |line: &str, word: &str| words(line).lines().any(|other| other == word);
        assert!(has("polycast ex", "explain") && has("polycast ", "run") && !has("polycast ", "cp-agent"));
        assert!(has("polycast topology ", "check") && !has("polycast topology ", "run"));
        assert!(has("polycast explain --", "--earlier-calls") && has("polycast explain --r", "--help"));
        assert!(!has("polycast explain --", "--sizes") && has("polycast bench --", "--sizes"));
        assert!(has("polycast bench --format ", "osu") && !has("polycast bench --format ", "--format"));
        assert_eq!(words("polycast explain "), "");
    }

    #[test]
    fn tcsh_asks_for_every_verb_that_has_verbs() {
        let script = script(Shell::Tcsh, &mut command());
        for pattern in
            ["'p/1/`polycast complete-words`/'", "'n/topology/", "'n/--format/", "'c/-/", "'p/*/f/'"]
        {
            assert!(script.contains(pattern), "{pattern}: {script}");
        }
        assert!(!script.contains("agent"), "{script}");
    }
}
