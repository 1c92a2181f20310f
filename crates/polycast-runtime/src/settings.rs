//! What the user set: environment variables, and overrides by `polycast_set`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use polycast_core::select::{Choice, MAX_TEXT_BYTES, Table};
use polycast_net::{Family, InterfaceChoice};

/// Which algorithm to take, whatever the table says.
const FORCED: &str = "POLYCAST_BCAST";
/// A file with rules.
const TABLE: &str = "POLYCAST_TABLE";

/// Switches multicast off, or chooses the family.
const MULTICAST: &str = "POLYCAST_MULTICAST";
/// Which interface multicast uses.
const NET: &str = "POLYCAST_NET";
/// The MADCAP server to ask for a group.
const MADCAP: &str = "POLYCAST_MADCAP";

static OVERRIDES: Mutex<BTreeMap<&'static str, Option<String>>> = Mutex::new(BTreeMap::new());

/// Sets `name` for communicators attached from now on; false if there is no such setting.
pub fn configure(name: &str, value: Option<&str>) -> bool {
    let Some(name) = [FORCED, TABLE, MULTICAST, NET, MADCAP].into_iter().find(|known| *known == name) else {
        return false;
    };
    let value = value.filter(|value| !value.is_empty()).map(str::to_owned);
    OVERRIDES.lock().unwrap_or_else(PoisonError::into_inner).insert(name, value);
    true
}

fn lookup(name: &'static str) -> Option<String> {
    let overrides = OVERRIDES.lock().unwrap_or_else(PoisonError::into_inner);
    match overrides.get(name) {
        Some(value) => value.clone(),
        None => std::env::var(name).ok().filter(|value| !value.is_empty()),
    }
}

/// `POLYCAST=off` and its synonyms (the same words as in doors/pmpi/preload.c and in the tool's settings.rs).
pub fn is_enabled() -> bool {
    !is_off(&std::env::var("POLYCAST").unwrap_or_default())
}

fn is_off(value: &str) -> bool {
    ["off", "0", "no", "false"].contains(&value.to_ascii_lowercase().as_str())
}

/// What this process wants of multicast.
pub struct Multicast {
    /// `None`: nothing.
    pub family: Option<Family>,
    pub interface: InterfaceChoice,
    pub madcap_server: Option<String>,
}

impl Multicast {
    /// The settings in force, or what is wrong with them.
    pub fn current() -> Result<Multicast, String> {
        let family = match lookup(MULTICAST).unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "on" | "ipv4" => Some(Family::V4),
            "ipv6" => Some(Family::V6),
            off if is_off(off) => None,
            other => return Err(format!("{MULTICAST}={other}: expected ipv4, ipv6 or off")),
        };
        let interface = lookup(NET).map_or(Ok(InterfaceChoice::default()), |text| {
            text.parse().map_err(|error| format!("{NET}={text}: {error}"))
        });
        Ok(Multicast { family, interface: interface?, madcap_server: lookup(MADCAP) })
    }
}

/// `POLYCAST_REPORT` is set, and not to 0.
pub fn is_report_wanted() -> bool {
    std::env::var("POLYCAST_REPORT").is_ok_and(|value| !value.is_empty() && value != "0")
}

/// How a communicator's broadcasts are chosen, in a form that rank 0 can send to the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settings {
    /// By the table that is built in.
    Shipped,
    /// By a table, as text.
    Table(String),
    /// Always the same.
    Forced(Choice),
}

impl Settings {
    /// The settings in force in this process. A problem does not stop anybody: the default counts, and the second
    /// value says what was wrong.
    pub fn current() -> (Settings, Option<String>) {
        if let Some(text) = lookup(FORCED) {
            return match text.parse() {
                Ok(choice) => (Settings::Forced(choice), None),
                Err(error) => (Settings::Shipped, Some(format!("{FORCED}={text}: {error}"))),
            };
        }
        let Some(path) = lookup(TABLE) else { return (Settings::Shipped, None) };
        match read_table(&path) {
            Ok(text) => (Settings::Table(text), None),
            Err(error) => (Settings::Shipped, Some(error)),
        }
    }

    /// One line that names the kind, then the content.
    pub fn to_text(&self) -> String {
        match self {
            Settings::Shipped => "shipped\n".to_owned(),
            Settings::Table(text) => format!("table\n{text}"),
            Settings::Forced(choice) => format!("forced\n{choice}"),
        }
    }

    /// Undoes [`Settings::to_text`]; `None` for anything else.
    pub fn from_text(text: &str) -> Option<Settings> {
        let (kind, content) = text.split_once('\n')?;
        match kind {
            "shipped" => Some(Settings::Shipped),
            "table" => Some(Settings::Table(content.to_owned())),
            "forced" => content.parse().ok().map(Settings::Forced),
            _ => None,
        }
    }
}

fn read_table(path: &str) -> Result<String, String> {
    let describe = |error: std::io::Error| format!("{TABLE}={path}: {error}");
    let metadata = std::fs::metadata(path).map_err(describe)?;
    if !metadata.is_file() || metadata.len() > MAX_TEXT_BYTES as u64 {
        return Err(format!("{TABLE}={path}: expected a file of at most {MAX_TEXT_BYTES} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(describe)?;
    Table::parse(&text, path).map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rank_0_sends_is_what_the_others_get() {
        for settings in [
            Settings::Shipped,
            Settings::Table("version = 1\n".into()),
            Settings::Forced(Choice::Stock),
            Settings::Forced("chain:segment=8KiB".parse().unwrap()),
        ] {
            assert_eq!(Settings::from_text(&settings.to_text()), Some(settings));
        }
        assert_eq!(Settings::from_text("nonsense"), None);
        assert_eq!(Settings::from_text("forced\nnonsense"), None);
    }

    #[test]
    fn a_missing_table_is_a_warning_that_names_it() {
        let error = read_table("/no/such/table.toml").unwrap_err();
        assert!(error.contains("POLYCAST_TABLE=/no/such/table.toml"), "{error}");
    }
}
