//! The first line of files of recorded arrivals, by which those who write, read and hand them on know them.

/// The first line of a file of recorded arrivals.
pub const HEADING: &str = "polycast-arrivals 1";

/// Accepts the text of a file of recorded arrivals.
///
/// # Errors
/// What was expected in its first line.
pub fn check_heading(text: &str) -> Result<(), String> {
    match text.lines().next() {
        Some(HEADING) => Ok(()),
        _ => Err(format!("expected {HEADING} in its first line, as `polycast report --arrivals` writes it")),
    }
}
