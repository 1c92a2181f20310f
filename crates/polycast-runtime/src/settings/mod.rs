//! What the user set: environment variables, files, and overrides by `polycast_set`.

mod file_name;
mod job;
mod loaded;
mod site;

pub use file_name::{can_be_written_in, expand};
pub use job::{Current, NetworkSetting, ServiceRules, Settings, check_any_settings};
pub use loaded::Loaded;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, Once};

use polycast_core::variables::{
    self, FORCED, GROUPS, HOPS, MADCAP, MULTICAST, NET, PARAMETERS, PORTS, REPORT, ReportTo, SHARED_MEMORY,
    SUMS, SWITCH, TABLE, TOPOLOGY, TRACE, TRIALS, TUNE, WAIT, WAITING, WARNED, is_off, is_on,
};
use polycast_net::{Family, GroupBlock, Hops, InterfaceChoice, Ports, Range};

use crate::machine;
use crate::of_process::{Shared, of_process};
use crate::say;

of_process! {
    static OVERRIDES: Mutex<BTreeMap<&'static str, Option<String>>> = Mutex::new(BTreeMap::new());
}

of_process! {
    /// Number of times that the program has set something.
    static CHANGES: AtomicU64 = AtomicU64::new(0);
}

/// Number of times that the program has set something: as long as it is the same, the settings are.
pub fn changes() -> u64 {
    CHANGES.with(|changes| changes.load(Ordering::Acquire))
}

/// Sets `name` for communicators attached from now on; false if there is no such setting. The
/// caller has to forget what was learned by the former settings.
pub fn configure(name: &str, value: Option<&str>) -> bool {
    let known = [
        TABLE,
        TOPOLOGY,
        PARAMETERS,
        SUMS,
        TRIALS,
        TUNE,
        SHARED_MEMORY,
        WAIT,
        MULTICAST,
        NET,
        MADCAP,
        PORTS,
        GROUPS,
        HOPS,
    ];
    let Some(name) = FORCED.into_iter().chain(known).find(|known| *known == name) else { return false };
    let value = value.filter(|value| !value.is_empty()).map(str::to_owned);
    OVERRIDES.change(|overrides| overrides.insert(name, value));
    CHANGES.with(|changes| changes.fetch_add(1, Ordering::Release));
    true
}

fn lookup(name: &'static str) -> Option<String> {
    match OVERRIDES.change(|overrides| overrides.get(name).cloned()) {
        Some(value) => value,
        None => site::value(name),
    }
}

/// True unless `POLYCAST=off`, or a synonym, is set.
pub fn is_enabled() -> bool {
    !is_off(&variable(SWITCH))
}

fn variable(name: &str) -> String {
    site::value(name).unwrap_or_default()
}

/// The folder in which findings are kept for later jobs.
pub fn cache_folder() -> Option<PathBuf> {
    variables::cache_folder(site::value)
}

/// Problems with the variables of this process, but for files, which are read when they are needed.
pub fn problems() -> Vec<String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let environment = machine::variables().into_iter().map(|(name, value)| (text(name), text(value)));
    let environment: Vec<(String, String)> = environment.collect();
    let mut problems = variables::problems(environment.clone());
    problems.extend(site::site().problems(environment));
    // A wrong protocol is among those above.
    if let Err(problem) = Multicast::current()
        && !problem.starts_with(&format!("{MULTICAST}="))
    {
        problems.push(format!("{problem}; trees serve in place of multicast"));
    }
    problems
}

of_process! {
    /// True if a problem with the variables was reported.
    static IS_SAID: AtomicBool = AtomicBool::new(false);
}

/// Warns once of problems with the variables, unless the tool has: on rank 0 of the job alone, for
/// all ranks mostly have the same.
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

/// True if this process found problems with the variables, of which it or the tool has warned.
pub fn is_warned_of() -> bool {
    IS_SAID.with(|is_said| is_said.load(Ordering::Relaxed))
}

/// True if this process shares memory with others of its node.
pub fn is_memory_wanted() -> bool {
    !lookup(SHARED_MEMORY).is_some_and(|value| is_off(&value))
}

/// Behaviour of ranks that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    Spin,
    GiveWay,
    /// Sleep, as ranks do where they outnumber processors.
    Sleep,
}

/// The behaviour that this process's settings ask for, if they do.
pub fn waiting() -> Option<Waiting> {
    let value = lookup(WAIT)?;
    let at = WAITING.iter().position(|word| word.eq_ignore_ascii_case(&value))?;
    Some([Waiting::Spin, Waiting::GiveWay, Waiting::Sleep][at])
}

/// Use of InfiniBand or RoCE for datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbs {
    No,
    /// Use a device if there is one.
    IfPresent,
    /// Ask for devices even where the kernel lists none.
    Wanted,
}

/// Settings of this process for multicast.
pub struct Multicast {
    /// Family of IP multicast, which serves where not all nodes have verbs; `None`: no multicast at
    /// all.
    pub family: Option<Family>,
    pub verbs: Verbs,
    /// Range from which groups are drawn that no server gives.
    pub range: Range,
    pub interface: InterfaceChoice,
    pub madcap_server: Option<String>,
    pub ports: Ports,
    pub hops: Hops,
}

impl Multicast {
    /// The settings in force, or the problem with them.
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
        let block = set::<GroupBlock>(GROUPS)?;
        let range = match block {
            None => range,
            Some(block) if family.is_none_or(|family| family == block.family()) => Range::Block(block),
            Some(block) => {
                return Err(format!(
                    "{GROUPS}: expected a block of the family of {MULTICAST}, found {}",
                    block.family()
                ));
            }
        };
        Ok(Multicast {
            family,
            range,
            verbs,
            interface: interface_choice()?,
            madcap_server: lookup(MADCAP),
            ports: set::<Ports>(PORTS)?.unwrap_or_default(),
            hops: set::<Hops>(HOPS)?.unwrap_or_default(),
        })
    }
}

fn interface_choice() -> Result<InterfaceChoice, String> {
    Ok(set::<InterfaceChoice>(NET)?.unwrap_or_default())
}

/// The value of a variable, if it is set.
fn set<T: FromStr<Err: Display>>(name: &'static str) -> Result<Option<T>, String> {
    let parse = |text: String| text.parse().map_err(|error| format!("{name}={text}: {error}"));
    lookup(name).map(parse).transpose()
}

/// The place to which the report of this process goes.
pub fn report_to() -> ReportTo {
    // A word that nobody knows was meant to say something; there is a warning about it.
    ReportTo::parse(&variable(REPORT)).unwrap_or(ReportTo::StandardError)
}

/// The folder to which the trace of this process goes, if one is wanted.
pub fn trace_folder() -> Option<String> {
    Some(variable(TRACE)).filter(|value| !value.is_empty() && !is_off(value))
}

/// True if calls are to be counted: for a report, or beside a trace.
pub fn is_report_wanted() -> bool {
    report_to() != ReportTo::Nowhere || trace_folder().is_some()
}
