//! Chains of rules, and the walk of a datagram through them.
//!
//! ```text
//!   base chain (a hook of the kernel, with a policy)     a rule counts if its conditions hold:
//!     rule ── rule ── jump ──▶ chain ──┐                    yes    its verdict ends the walk
//!                      ▲───────────────┘                    maybe  its verdict is remembered, the walk goes on
//!     …  policy                                             no     the walk goes on
//! ```
//!
//! A datagram passes if no base chain of its way drops it: an `accept` ends one base chain, not the way.

use std::collections::HashMap;

use polycast_net::Family;

use super::packet::{Direction, Holds, Packet};

/// What a rule decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on: counters, logs, marks.
    Continue,
    /// The end of this base chain, alive.
    Accept,
    /// The end.
    Drop,
    /// Another chain, then the next rule.
    Jump(String),
    /// Another chain, then the policy.
    Goto(String),
    /// Back to the rule that jumped here.
    Return,
}

/// Whether a rule's conditions hold for a datagram.
pub type Conditions = Box<dyn Fn(&Packet<'_>) -> Holds>;

/// A rule.
pub struct Rule {
    /// In the words of its tool.
    pub text: String,
    /// When it counts.
    pub conditions: Conditions,
    /// What it then does.
    pub verdict: Verdict,
}

/// Where a base chain is hooked in.
pub struct Hook {
    /// The way it is on.
    pub direction: Direction,
    /// The only interface it sees, if it is bound to one.
    pub device: Option<String>,
    /// What happens at its end.
    pub drops_at_end: bool,
}

/// A chain.
pub struct Chain {
    /// As its tool names it: `chain inet filter input`.
    pub title: String,
    /// For base chains.
    pub hook: Option<Hook>,
    /// The only family that its packets have, if it is of one.
    pub family: Option<Family>,
    /// Its rules in their order.
    pub rules: Vec<Rule>,
    /// What inserts, at its beginning, a rule that lets multicast in or out.
    pub remedy: fn(title: &str, packet: &Packet<'_>) -> String,
}

/// All chains by their keys.
#[derive(Default)]
pub struct Ruleset {
    /// The chains. Jumps name keys.
    pub chains: HashMap<String, Chain>,
}

/// What becomes of a datagram in one base chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passes.
    Passes,
    /// It is dropped.
    Dropped(Dropper),
    /// It is dropped at times, or nobody can say.
    MayBeDropped(Dropper),
}

/// Who drops it.
#[derive(Clone, Debug)]
pub struct Dropper {
    /// The base chain.
    pub place: String,
    /// The rule, or the policy.
    pub rule: String,
    remedy: fn(&str, &Packet<'_>) -> String,
}

impl PartialEq for Dropper {
    fn eq(&self, other: &Dropper) -> bool {
        (&self.place, &self.rule) == (&other.place, &other.rule)
    }
}

impl Eq for Dropper {}

impl Dropper {
    /// A command that lets multicast pass.
    pub fn remedy(&self, packet: &Packet<'_>) -> String {
        (self.remedy)(&self.place, packet)
    }
}

/// Where a walk through one chain ends.
enum End {
    Accepted,
    Dropped(String),
    /// The last rule is behind it.
    Through,
}

/// What happened on the way, if a condition held that may not.
#[derive(Default)]
struct Doubts {
    drop: Option<String>,
    is_accepted_at_times: bool,
}

/// Kernels allow 16 jumps within jumps.
const MAX_DEPTH: usize = 16;

impl Ruleset {
    /// Whether there is no rule and no policy that drops.
    pub fn is_empty(&self) -> bool {
        let has_effect = |chain: &Chain| {
            !chain.rules.is_empty() || chain.hook.as_ref().is_some_and(|hook| hook.drops_at_end)
        };
        !self.chains.values().any(has_effect)
    }

    /// What becomes of a datagram in each base chain on its way, in the order of their titles.
    pub fn fates(&self, packet: &Packet<'_>) -> Vec<Fate> {
        let mut base: Vec<(&Chain, &Hook)> =
            self.chains.values().filter_map(|chain| Some((chain, chain.hook.as_ref()?))).collect();
        base.retain(|(chain, hook)| {
            hook.direction == packet.direction
                && chain.family.is_none_or(|family| family == packet.family)
                && hook.device.as_deref().is_none_or(|device| device == packet.interface)
        });
        base.sort_by(|(one, _), (other, _)| one.title.cmp(&other.title));
        base.into_iter().map(|(chain, hook)| self.fate(chain, hook, packet)).collect()
    }

    fn fate(&self, chain: &Chain, hook: &Hook, packet: &Packet<'_>) -> Fate {
        let mut doubts = Doubts::default();
        let end = self.walk(chain, packet, &mut doubts, 0);
        let dropper = |rule| Dropper { place: chain.title.clone(), rule, remedy: chain.remedy };
        let dropped_by = match end {
            End::Dropped(rule) => Some(rule),
            End::Through if hook.drops_at_end => Some("its policy drops what no rule accepts".to_owned()),
            End::Accepted | End::Through => None,
        };
        match (dropped_by, doubts.drop) {
            (Some(rule), _) if doubts.is_accepted_at_times => Fate::MayBeDropped(dropper(rule)),
            (Some(rule), _) => Fate::Dropped(dropper(rule)),
            (None, Some(rule)) => Fate::MayBeDropped(dropper(rule)),
            (None, None) => Fate::Passes,
        }
    }

    fn walk(&self, chain: &Chain, packet: &Packet<'_>, doubts: &mut Doubts, depth: usize) -> End {
        for rule in &chain.rules {
            let holds = (rule.conditions)(packet);
            match (&rule.verdict, holds) {
                (_, Holds::No) | (Verdict::Continue, _) => {}
                (Verdict::Accept, Holds::Yes) => return End::Accepted,
                (Verdict::Drop, Holds::Yes) => return End::Dropped(rule.text.clone()),
                (Verdict::Return, Holds::Yes) => return End::Through,
                (Verdict::Return, Holds::Maybe) => {}
                (Verdict::Accept, Holds::Maybe) => doubts.is_accepted_at_times = true,
                (Verdict::Drop, Holds::Maybe) => doubts.note_drop(&rule.text),
                (Verdict::Jump(target) | Verdict::Goto(target), _) => {
                    let Some(next) = self.chains.get(target).filter(|_| depth < MAX_DEPTH) else { continue };
                    let end = self.walk(next, packet, doubts, depth + 1);
                    let is_goto = matches!(rule.verdict, Verdict::Goto(_));
                    match (end, holds) {
                        (End::Through, Holds::Yes) if is_goto => return End::Through,
                        (End::Through, _) => {}
                        (end, Holds::Yes) => return end,
                        (End::Accepted, _) => doubts.is_accepted_at_times = true,
                        (End::Dropped(text), _) => doubts.note_drop(&text),
                    }
                }
            }
        }
        End::Through
    }
}

impl Doubts {
    /// Keeps the first: it is the one that is met first.
    fn note_drop(&mut self, text: &str) {
        self.drop.get_or_insert_with(|| text.to_owned());
    }
}
