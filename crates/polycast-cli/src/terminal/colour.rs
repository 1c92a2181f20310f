use std::env;
use std::io::IsTerminal;

/// Whether a stream is a terminal that has colours, and nobody declined them: NO_COLOR set to anything does
/// (<https://no-color.org>).
pub fn is_colourful(stream: &impl IsTerminal) -> bool {
    let declined = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    stream.is_terminal() && !declined && !dumb
}
