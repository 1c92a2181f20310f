//! What stands below the options in a help text, for terminals that it is too wide for.

/// The indentation of what an example does, below its command.
const BELOW: &str = "      ";
/// The fewest spaces at the beginning of a line that goes on with what the example before it does.
const DEEP: usize = 20;

/// Returns a text of 80 columns for fewer: what an example does stands below its command, and the lines of a
/// paragraph are one, which clap breaks anew.
pub fn narrowed(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    // True behind a line of a paragraph, and behind one that says what an example does.
    let (mut is_prose, mut is_told) = (false, false);
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        let words = line.trim();
        let goes_on = (is_prose && indentation == 0) || (is_told && indentation >= DEEP);
        let is_wide = line.chars().count() > width;
        let (command, does) = if indentation == 2 { parted(words) } else { (words, "") };
        match lines.last_mut() {
            Some(last) if goes_on && !words.is_empty() => *last += &format!(" {words}"),
            _ if is_wide && !does.is_empty() => {
                lines.extend([format!("  {command}"), format!("{BELOW}{does}")]);
                is_told = true;
            }
            _ if is_wide && indentation >= DEEP => {
                lines.push(format!("{BELOW}{words}"));
                is_told = true;
            }
            _ => {
                lines.push(line.to_owned());
                // A heading stands for itself.
                is_prose = indentation == 0 && !words.is_empty() && !words.ends_with(':');
                is_told = false;
            }
        }
    }
    lines.join("\n")
}

/// Parts an example at the gap between its command and what it does.
fn parted(words: &str) -> (&str, &str) {
    words.split_once("  ").map_or((words, ""), |(command, does)| (command, does.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Examples:
  polycast doctor                            this machine
  polycast doctor --hosts a,b,c              hosts and the network between them;
                                             needs ssh without password
  polycast doctor --a-long-option-of-a-long-command-that-stands-alone \\
    --and-its-rest

Exit status: 0 if a job would use multicast, 1 if not, 2 if the command line is
wrong.

More in docs/doctor.md.";

    #[test]
    fn what_examples_do_stands_below_them_and_paragraphs_are_broken_anew() {
        assert_eq!(
            narrowed(TEXT, 40),
            "\
Examples:
  polycast doctor
      this machine
  polycast doctor --hosts a,b,c
      hosts and the network between them; needs ssh without password
  polycast doctor --a-long-option-of-a-long-command-that-stands-alone \\
    --and-its-rest

Exit status: 0 if a job would use multicast, 1 if not, 2 if the command line is wrong.

More in docs/doctor.md."
        );
    }

    #[test]
    fn what_fits_keeps_its_place() {
        let text = "Examples:\n  polycast info   what is installed here\n  polycast run\n\nEnd.";
        assert_eq!(narrowed(text, 60), text);
    }
}
