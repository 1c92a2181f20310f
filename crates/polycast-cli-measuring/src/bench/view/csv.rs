//! All fields of a point, comma-separated; lists are left to JSON.

use std::fmt;
use std::io::{self, Write};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::View;
use crate::bench::environment::Environment;
use crate::bench::point::Point;

/// A view that prints one line per point.
#[derive(Default)]
pub struct Csv {
    has_heading: bool,
}

impl View for Csv {
    fn begin(&mut self, _environment: &Environment, out: &mut dyn Write) -> io::Result<()> {
        if self.has_heading {
            return Ok(());
        }
        self.has_heading = true;
        let names: Vec<String> = fields(&Point::default())?.into_iter().map(|(name, _)| name).collect();
        writeln!(out, "{}", names.join(","))
    }

    fn size(&mut self, points: &[Point], out: &mut dyn Write) -> io::Result<()> {
        for point in points {
            let values: Vec<String> = fields(point)?.into_iter().map(|(_, value)| value).collect();
            writeln!(out, "{}", values.join(","))?;
        }
        Ok(())
    }
}

/// Returns names and values as in JSON, so that the two formats cannot drift apart.
fn fields(point: &Point) -> io::Result<Vec<(String, String)>> {
    let Members(members) = serde_json::from_str(&serde_json::to_string(point)?)?;
    let single = members.into_iter().filter(|(_, value)| !value.is_array());
    Ok(single.map(|(name, value)| (name, cell(&value))).collect())
}

/// The members of a JSON object in the order in which they are written; `serde_json`'s own map sorts them.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members(Vec::new()))
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Members, A::Error> {
        while let Some(member) = map.next_entry()? {
            self.0.push(member);
        }
        Ok(self)
    }
}

/// Writes a cell by RFC 4180: with quotes if it has a comma or a quote.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_with_a_comma_stays_one_cell() {
        assert_eq!(cell(&Value::from("chain:segment=8KiB,ready")), "\"chain:segment=8KiB,ready\"");
        assert_eq!(cell(&Value::from("a\"b")), "\"a\"\"b\"");
        assert_eq!((cell(&Value::Null), cell(&Value::from(1.5))), (String::new(), "1.5".into()));
    }

    #[test]
    fn every_row_has_the_columns_of_the_header() {
        let columns = fields(&Point::default()).unwrap().len();
        assert_eq!(fields(&Point::default()).unwrap()[1].0, "variant");
        assert!(super::super::shown(Csv::default()).lines().all(|line| line.split(',').count() == columns));
    }
}
