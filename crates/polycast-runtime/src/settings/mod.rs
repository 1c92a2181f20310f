//! What the user set: environment variables, and overrides by `polycast_set`.

mod job;
mod loaded;

pub use job::{Network, Rules, Settings};
pub use loaded::Loaded;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use polycast_net::{Family, InterfaceChoice};

/// Which algorithm to take, whatever the table says.
const FORCED: &str = "POLYCAST_BCAST";
/// A file with rules.
const TABLE: &str = "POLYCAST_TABLE";
/// A file with switches and hosts, or `off`.
const TOPOLOGY: &str = "POLYCAST_TOPOLOGY";
/// A file with measured parameters.
const PARAMETERS: &str = "POLYCAST_PARAMS";

/// Switches multicast off, or chooses the family.
const MULTICAST: &str = "POLYCAST_MULTICAST";
/// Which interface multicast uses.
const NET: &str = "POLYCAST_NET";
/// The MADCAP server to ask for a group.
const MADCAP: &str = "POLYCAST_MADCAP";

static OVERRIDES: Mutex<BTreeMap<&'static str, Option<String>>> = Mutex::new(BTreeMap::new());

/// Sets `name` for communicators attached from now on; false if there is no such setting.
pub fn configure(name: &str, value: Option<&str>) -> bool {
    let known = [FORCED, TABLE, TOPOLOGY, PARAMETERS, MULTICAST, NET, MADCAP];
    let Some(name) = known.into_iter().find(|known| *known == name) else { return false };
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
