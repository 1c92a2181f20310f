//! The command line as clap reads it, with errors in the words of all others of polycast.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, CommandFactory, Error, FromArgMatches};

use crate::narrow_help::narrowed;
use crate::terminal::{WIDTH, is_colourful, width};

/// Reads the command line. An error is the exit status to end with: help was asked for, or the line
/// could not be read, and the user has been told.
pub fn read<C: CommandFactory + FromArgMatches>() -> Result<C, ExitCode> {
    let command = command::<C>();
    let matches = command.clone().try_get_matches_from(env::args_os());
    matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| say(error, &command))
}

/// Returns the command with everything below it, its help fitted to the terminal; negative numbers
/// reach the code that refuses them.
pub fn command<C: CommandFactory>() -> Command {
    let command = prepared(C::command()).term_width(width());
    if width() < WIDTH { fitted(command) } else { command }
}

/// Fits what stands below the options, in every verb.
fn fitted(command: Command) -> Command {
    let below = command.get_after_help().map(|text| narrowed(&text.to_string(), width()));
    let command = match below {
        Some(text) => command.after_help(text),
        None => command,
    };
    command.mut_subcommands(fitted)
}

/// Prepares a command for negative numbers: clap takes -1 for an unknown option, and proposes to
/// write it behind `--`, where it is of no use.
fn prepared(command: Command) -> Command {
    let takes_value = |arg: &Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    command
        .mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(prepared)
}

/// Returns the command as shells complete it: without `help`, which repeats every verb.
pub fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Returns the words that this program was called with. Bytes that are not UTF-8 are replaced, for
/// the words are only shown.
pub fn words() -> Vec<String> {
    env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Prints a message of clap, help or an error, and returns the exit status. A closed pipe is no
/// failure, for nobody reads any more; help that is lost for another reason is.
fn say(mut error: Error, command: &Command) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let written = error.print().and_then(|()| io::stdout().flush());
        return match written.map_err(|problem| (problem.kind(), problem)) {
            Ok(()) | Err((io::ErrorKind::BrokenPipe, _)) => status,
            Err((_, problem)) => {
                let _ = writeln!(io::stderr(), "polycast: {problem}");
                ExitCode::FAILURE
            }
        };
    }
    let verb = words().iter().fold(command, |verb, word| verb.find_subcommand(word).unwrap_or(verb));
    let name = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(found)) => with_short(verb, found),
        _ => None,
    };
    if let Some(name) = name {
        error.insert(ContextKind::InvalidArg, ContextValue::String(name));
    }
    name_what_was_given(&mut error, &words());
    suggest(&mut error, verb);
    let text = error.render();
    let text = if is_colourful(&io::stderr()) { text.ansi().to_string() } else { text.to_string() };
    let _ = io::stderr().write_all(text.replacen("error:", "polycast:", 1).as_bytes());
    status
}

/// Reduces the options that an error of clap names as conflicting to those that the user gave.
fn name_what_was_given(error: &mut Error, words: &[String]) {
    let Some(ContextValue::Strings(all)) = error.get(ContextKind::PriorArg) else { return };
    let is_given = |shown: &&String| {
        let name = shown.split([' ', '=']).next().unwrap_or_default();
        words.iter().any(|word| word.split('=').next() == Some(name))
    };
    let given: Vec<String> = all.iter().filter(is_given).cloned().collect();
    match &given[..] {
        [] => {}
        [one] => drop(error.insert(ContextKind::PriorArg, ContextValue::String(one.clone()))),
        _ => drop(error.insert(ContextKind::PriorArg, ContextValue::Strings(given))),
    }
}

/// Suggests the verb, option or value that was meant by a word in which two letters stand the other
/// way round, or one is wrong; clap misses such slips in short words.
fn suggest(error: &mut Error, verb: &Command) {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let has = |kind| error.get(kind).is_some();
    let (kind, meant) = match error.kind() {
        ErrorKind::InvalidSubcommand if !has(ContextKind::SuggestedSubcommand) => {
            let names = verb.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
            let meant = text(ContextKind::InvalidSubcommand).and_then(|found| nearest(&found, names));
            (ContextKind::SuggestedSubcommand, meant.map(|meant| ContextValue::Strings(vec![meant])))
        }
        ErrorKind::UnknownArgument if !has(ContextKind::SuggestedArg) => {
            let names = verb.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(Arg::get_long);
            let found = text(ContextKind::InvalidArg);
            let found = found.as_deref().and_then(|found| found.strip_prefix("--"));
            let meant = found.and_then(|found| nearest(found, names));
            (ContextKind::SuggestedArg, meant.map(|meant| ContextValue::String(format!("--{meant}"))))
        }
        ErrorKind::InvalidValue if !has(ContextKind::SuggestedValue) => {
            let values = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(values)) => &values[..],
                _ => &[],
            };
            let values = values.iter().map(String::as_str);
            let meant = text(ContextKind::InvalidValue).and_then(|found| nearest(&found, values));
            (ContextKind::SuggestedValue, meant.map(ContextValue::String))
        }
        _ => return,
    };
    if let Some(meant) = meant {
        error.insert(kind, meant);
    }
}

/// Returns the name that is one slip of the finger away from the word that was found.
fn nearest<'a>(found: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut near = names.filter(|name| strsim::osa_distance(found, name) == 1);
    near.next().map(str::to_owned)
}

/// Returns `-n, --ranks <N>` for `--ranks <N>`: a user who wrote the short form looks for it in the
/// message.
fn with_short(verb: &Command, found: &str) -> Option<String> {
    let long = found.split_whitespace().next()?.strip_prefix("--")?;
    let short = verb.get_arguments().find(|arg| arg.get_long() == Some(long))?.get_short()?;
    Some(format!("-{short}, {found}"))
}
