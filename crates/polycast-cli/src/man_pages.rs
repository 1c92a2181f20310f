//! The manual pages, one for each verb, made from its help.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

/// Writes `polycast.1`, `polycast-run.1` and so on.
pub fn write(mut tool: Command, directory: &Path) -> io::Result<()> {
    tool = tool.disable_help_subcommand(true);
    tool.build();
    write_with_verbs(&tool, directory)
}

fn write_with_verbs(command: &Command, directory: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_with_verbs(verb, directory)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    // What stands below the options: sentences, then examples, whose lines stay as they are.
    let text = String::from_utf8_lossy(&text)
        .replace("\nExamples:\n", "\n.SH EXAMPLES\n.nf\n")
        .replace(".SH EXTRA\n.SH EXAMPLES", ".SH EXAMPLES")
        .replace(".SH EXTRA", ".SH NOTES");
    fs::write(directory.join(page.get_filename()), text)
}
