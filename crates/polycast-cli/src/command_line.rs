//! The command line as clap reads it, with errors in the words of all others of polycast.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command, CommandFactory, Error, FromArgMatches};

use crate::terminal::{WIDTH, is_colourful};

/// What the user wants; or, where that was help or could not be read, the status to end with after it was said.
pub fn read<C: CommandFactory + FromArgMatches>() -> Result<C, ExitCode> {
    let command = command::<C>();
    let matches = command.clone().try_get_matches_from(env::args_os());
    matches.and_then(|matches| C::from_arg_matches(&matches)).map_err(|error| say(error, &command))
}

/// The command with everything below it: help that fits, and negative numbers that reach the one who refuses them.
pub fn command<C: CommandFactory>() -> Command {
    prepared(C::command()).max_term_width(WIDTH)
}

/// clap takes -1 for an unknown option, and proposes to write it behind `--`, where it is of no use.
fn prepared(command: Command) -> Command {
    let takes_value = |arg: &Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    command
        .mut_args(|arg| if takes_value(&arg) { arg.allow_negative_numbers(true) } else { arg })
        .mut_subcommands(prepared)
}

/// What shells complete: all but `help`, which has every verb again.
pub fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// What this program was called with; what is not UTF-8 is replaced, for it is only shown.
pub fn words() -> Vec<String> {
    env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Nothing is to be done where nobody reads any more; help that is lost for another reason is a failure.
fn say(mut error: Error, command: &Command) -> ExitCode {
    let status = ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
    if !error.use_stderr() || error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    {
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
    let text = error.render();
    let text = if is_colourful(&io::stderr()) { text.ansi().to_string() } else { text.to_string() };
    let _ = io::stderr().write_all(text.replacen("error:", "polycast:", 1).as_bytes());
    status
}

/// `-n, --ranks <N>` of `--ranks <N>`: who wrote the short form looks for it in the message.
fn with_short(verb: &Command, found: &str) -> Option<String> {
    let long = found.split_whitespace().next()?.strip_prefix("--")?;
    let short = verb.get_arguments().find(|arg| arg.get_long() == Some(long))?.get_short()?;
    Some(format!("-{short}, {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that clap would break, each with its verb.
    fn long_lines(command: &Command) -> Vec<String> {
        let text = [command.get_before_help(), command.get_after_help(), command.get_after_long_help()];
        let text = text.into_iter().flatten().map(|text| text.to_string()).collect::<Vec<_>>().join("\n");
        let long = text.lines().filter(|line| line.chars().count() > WIDTH);
        let own = long.map(|line| format!("{}: {line}", command.get_name()));
        own.chain(command.get_subcommands().flat_map(long_lines)).collect()
    }

    #[test]
    fn examples_can_be_copied_line_by_line() {
        let command = command::<crate::Cli>();
        assert!(command.get_after_help().is_some_and(|text| text.to_string().contains("Examples:")));
        let long = long_lines(&command);
        assert!(long.is_empty(), "broken by clap:\n{}", long.join("\n"));
    }
}
