//! What the user set: environment variables, and overrides by `polycast_set`.

mod file_name;
mod job;
mod loaded;

pub use file_name::{can_be_written_in, expand};
pub use job::{Current, NetworkSetting, Rules, Settings, check_any_settings};
pub use loaded::Loaded;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use polycast_core::variables::{
    self, FORCED, MADCAP, MULTICAST, NET, PARAMETERS, REPORT, ReportTo, SHARED_MEMORY, SWITCH, TABLE,
    TOPOLOGY, TRACE, TRIALS, TUNE, WAIT, WAITING, WARNED, is_off, is_on,
};
use polycast_net::{Family, InterfaceChoice, Range};

use crate::machine;
use crate::of_process::{Shared, of_process};
use crate::say;

of_process! {
    static OVERRIDES: Mutex<BTreeMap<&'static str, Option<String>>> = Mutex::new(BTreeMap::new());
}

of_process! {
    /// How often something was set.
    static CHANGES: AtomicU64 = AtomicU64::new(0);
}

/// How often the program has set something: as long as it is the same, the settings are.
pub fn changes() -> u64 {
    CHANGES.with(|changes| changes.load(Ordering::Acquire))
}

/// Sets `name` for communicators attached from now on; false if there is no such setting. What was learned by the former settings is for the
/// caller to forget.
pub fn configure(name: &str, value: Option<&str>) -> bool {
    let known = [TABLE, TOPOLOGY, PARAMETERS, TRIALS, TUNE, SHARED_MEMORY, WAIT, MULTICAST, NET, MADCAP];
    let Some(name) = FORCED.into_iter().chain(known).find(|known| *known == name) else { return false };
    let value = value.filter(|value| !value.is_empty()).map(str::to_owned);
    OVERRIDES.change(|overrides| overrides.insert(name, value));
    CHANGES.with(|changes| changes.fetch_add(1, Ordering::Release));
    true
}

fn lookup(name: &'static str) -> Option<String> {
    match OVERRIDES.change(|overrides| overrides.get(name).cloned()) {
        Some(value) => value,
        None => machine::variable(name)?.into_string().ok().filter(|value| !value.is_empty()),
    }
}

/// Not `POLYCAST=off`, nor a synonym.
pub fn is_enabled() -> bool {
    !is_off(&variable(SWITCH))
}

fn variable(name: &str) -> String {
    machine::variable(name).unwrap_or_default().to_string_lossy().into_owned()
}

/// Where findings are kept for later jobs.
pub fn cache_folder() -> Option<PathBuf> {
    let set = |name: &str| machine::variable(name)?.into_string().ok().filter(|value| !value.is_empty());
    variables::cache_folder(set)
}

/// What is wrong with the variables of this process, but for files, which are read when they are needed.
pub fn problems() -> Vec<String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let environment = machine::variables().into_iter().map(|(name, value)| (text(name), text(value)));
    let mut problems = variables::problems(environment);
    if let Err(problem) = interface_choice() {
        problems.push(format!("{problem}; trees serve in place of multicast"));
    }
    problems
}

of_process! {
    /// Something was said about the variables.
    static IS_SAID: AtomicBool = AtomicBool::new(false);
}

/// Says once what is wrong with the variables, unless the tool has said it: on rank 0 of the job alone, for all ranks mostly have
/// the same.
pub fn warn_of_problems() {
    of_process! { static ONCE: Once = Once::new(); }
    ONCE.with(|once| {
        once.call_once(|| {
            let problems = problems();
            IS_SAID.with(|is_said| is_said.store(!problems.is_empty(), Ordering::Relaxed));
            if !problems.is_empty() && !is_on(&variable(WARNED)) {
                say::text(&format!("polycast: warning: {}\n", problems.join("; ")));
            }
        })
    });
}

/// Whether this process, or the tool for it, has said so.
pub fn is_warned_of() -> bool {
    IS_SAID.with(|is_said| is_said.load(Ordering::Relaxed))
}

/// Whether this process shares memory with others of its node.
pub fn is_memory_wanted() -> bool {
    !lookup(SHARED_MEMORY).is_some_and(|value| is_off(&value))
}

/// What ranks do that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    Spin,
    GiveWay,
    /// As where ranks outnumber processors.
    Sleep,
}

/// What this process wants, if it has said so.
pub fn waiting() -> Option<Waiting> {
    let value = lookup(WAIT)?;
    let at = WAITING.iter().position(|word| word.eq_ignore_ascii_case(&value))?;
    Some([Waiting::Spin, Waiting::GiveWay, Waiting::Sleep][at])
}

/// Whether datagrams may go over InfiniBand or RoCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    No,
    /// Where there is a device.
    IfPresent,
    /// Devices are asked for even where the kernel lists none.
    Wanted,
}

/// What this process wants of multicast.
pub struct Multicast {
    /// Of IP multicast, which serves where not all nodes have verbs; `None`: no multicast at all.
    pub family: Option<Family>,
    pub verbs: Verbs,
    /// Where groups are drawn from that no server gives.
    pub range: Range,
    pub interface: InterfaceChoice,
    pub madcap_server: Option<String>,
}

impl Multicast {
    /// The settings in force, or what is wrong with them.
    pub fn current() -> Result<Multicast, String> {
        let (family, range, verbs) = match lookup(MULTICAST).unwrap_or_default().to_ascii_lowercase().as_str()
        {
            "ipv4" => (Some(Family::V4), Range::OrganisationV4, Verbs::No),
            "ipv4-global" => (Some(Family::V4), Range::GlobalV4, Verbs::No),
            "ipv6" => (Some(Family::V6), Range::LinkV6, Verbs::No),
            "verbs" => (Some(Family::V4), Range::OrganisationV4, Verbs::Wanted),
            on if on.is_empty() || is_on(on) => (Some(Family::V4), Range::OrganisationV4, Verbs::IfPresent),
            off if is_off(off) => (None, Range::OrganisationV4, Verbs::No),
            other => {
                return Err(format!(
                    "{MULTICAST}={other}: expected on, off, verbs, ipv4, ipv4-global or ipv6"
                ));
            }
        };
        Ok(Multicast { family, range, verbs, interface: interface_choice()?, madcap_server: lookup(MADCAP) })
    }
}

fn interface_choice() -> Result<InterfaceChoice, String> {
    let Some(text) = lookup(NET) else { return Ok(InterfaceChoice::default()) };
    text.parse().map_err(|error| format!("{NET}={text}: {error}"))
}

/// Where the report of this process is to go.
pub fn report_to() -> ReportTo {
    // A word that nobody knows was meant to say something; there is a warning about it.
    ReportTo::parse(&variable(REPORT)).unwrap_or(ReportTo::StandardError)
}

/// Where the trace of this process is to go, if one is wanted.
pub fn trace_folder() -> Option<String> {
    Some(variable(TRACE)).filter(|value| !value.is_empty() && !is_off(value))
}

/// Whether calls are to be counted: for a report, or beside a trace.
pub fn is_report_wanted() -> bool {
    report_to() != ReportTo::Nowhere || trace_folder().is_some()
}
