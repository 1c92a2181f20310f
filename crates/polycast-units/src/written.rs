//! A number with a unit, as people write it, and what is said where it cannot be read.

/// Splits `1.5MiB` into its number and its unit, in lower case. The number is not checked.
pub(super) fn split(text: &str) -> (&str, String) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim().to_lowercase())
}

/// A message on what is wrong with a number and its unit, for the end of a sentence; `units` lists
/// the valid ones.
pub(super) fn problem(text: &str, units: &str) -> String {
    let (number, unit) = split(text);
    match (number, unit.as_str()) {
        ("", _) => format!("it begins with no number (units: {units})"),
        (_, "") => format!("its unit is missing ({units})"),
        _ => format!("{unit:?} is no unit ({units})"),
    }
}
