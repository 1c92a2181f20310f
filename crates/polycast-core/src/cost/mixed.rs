//! The mixed-mode model: a message between nodes in segments, of each of which the nodes share a part among their ranks while the next
//! one comes (Wu 2005, §4.5).
//!
//! ```text
//!   root's node    ┃ os ┃ smcc(m_s) ┃ os ┃ smcc(m_s) ┃ os ┃ smcc(m_s) ┃ smcc(m_r) ┃
//!   between        ├──── g(m_i) ────┤├─── g(m_i) ────┤├─── g(m_i) ────┤            𝓛: until the last segment is everywhere
//!   next node          L            ┃ smcc(m_s) ┃     ┃ smcc(m_s) ┃   ┃ smcc(m_s) ┃ smcc(m_r) ┃
//! ```
//!
//! Of M bytes in k segments of m_i each, m_s of every segment are shared at once, and the m_r that are left when all has come. The forms say
//! what that adds to 𝓛, which is what the nodes take among themselves; which of them holds is not known before something is
//! measured (§4.5.4). They are of chains; other trees differ by how often a node sends and how far the last one is ("derived
//! via a similar approach", §4.5.2).

use std::fmt;

mod collectives;
mod predictor;

pub use predictor::{MixedCost, MixedPredictor, NotMixed};

/// The forms of the model: how sharing on nodes and messages between nodes overlap, and so what a
/// message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MixedForm {
    /// No overlap: everything is shared when everything has come: `𝓛 + smcc(M)`.
    NoOverlap,
    /// All sharing but the last is hidden; the lower bound: `𝓛 + smcc(m_s) + smcc(m_r)`, f2.
    Complete,
    /// Sharing takes longer than the next segment needs to come, `smcc(m_s) > g(m_i) - os(m_i)`, and delays it:
    /// `𝓛 + (os(m_i) + smcc(m_s) - g(m_i)) (k - 1) + smcc(m_s) + smcc(m_r)`, f1.
    Overlapping,
    /// Sharing and messages slow each other down: `𝓛 + ovp(m_s) (k + (k - 1) + (p - 2)) + smcc(m_s) + smcc(m_r)`, f3.
    Penalty,
    /// Like [`MixedForm::Penalty`], with the largest penalty there is, `ovp(m_s) = smcc(m_s)`: the
    /// upper bound.
    LargestPenalty,
}

impl MixedForm {
    /// All forms, the mildest first.
    pub const ALL: [MixedForm; 5] = [
        MixedForm::NoOverlap,
        MixedForm::Complete,
        MixedForm::Overlapping,
        MixedForm::Penalty,
        MixedForm::LargestPenalty,
    ];

    /// The name of the form.
    pub fn name(self) -> &'static str {
        match self {
            MixedForm::NoOverlap => "no overlap",
            MixedForm::Complete => "complete overlap",
            MixedForm::Overlapping => "overlapping",
            MixedForm::Penalty => "penalty",
            MixedForm::LargestPenalty => "largest penalty",
        }
    }

    /// The place of the form in Wu 2005: a section or an equation.
    pub fn equation(self) -> &'static str {
        match self {
            MixedForm::NoOverlap => "4.3.3",
            MixedForm::Complete => "4.4",
            MixedForm::Overlapping => "4.3",
            MixedForm::Penalty => "4.5",
            MixedForm::LargestPenalty => "4.6",
        }
    }
}

impl fmt::Display for MixedForm {
    /// `complete overlap (4.4)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{} ({})", self.name(), self.equation()))
    }
}

/// The way between nodes for one size of segments. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BetweenNodes {
    /// Bytes of a segment, m_i, at least 1.
    pub segment: u64,
    /// The time of the whole message between nodes alone, 𝓛.
    pub whole_ns: f64,
    /// The time from one segment to the next: `g(m_i)` down a chain.
    pub interval_ns: f64,
    /// The part of the interval in which the sender is busy: `os(m_i)` down a chain.
    pub busy_ns: f64,
    /// Messages that follow each other until the last node has a segment: `p - 1` down a chain of p nodes.
    pub hops: u32,
}

/// The times of a message over one hop, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// L
    pub latency_ns: f64,
    /// `g(m_i)`: the time from the beginning of a send until the sender's next one.
    pub gap_ns: f64,
    /// `os(m_i)`
    pub send_ns: f64,
}

/// A message of two levels, and the times that its nodes take to share; times in nanoseconds.
#[derive(Clone, Copy)]
pub struct MixedMessage<'a> {
    /// M
    pub bytes: u64,
    /// `smcc(m)`: the time to share so many bytes on the fullest node. Not asked for 0, which takes
    /// none.
    pub shared_ns: &'a dyn Fn(u64) -> f64,
    /// `ovp(m)`, the penalty of sharing beside messages, where it is known; at most `smcc(m)` of it
    /// counts.
    pub penalty_ns: Option<&'a dyn Fn(u64) -> f64>,
}

impl MixedMessage<'_> {
    fn shared(&self, bytes: u64) -> f64 {
        if bytes == 0 { 0.0 } else { (self.shared_ns)(bytes) }
    }

    fn penalty(&self, bytes: u64) -> Option<f64> {
        let penalty_ns = self.penalty_ns?;
        Some(if bytes == 0 { 0.0 } else { penalty_ns(bytes).clamp(0.0, self.shared(bytes)) })
    }

    /// k, and m_r for an overlap of m_s. The last segment may be shorter.
    fn cut(&self, segment: u64, overlap: u64) -> (u64, u64) {
        let overlap = overlap.min(segment);
        let early = self.bytes / segment * overlap + (self.bytes % segment).min(overlap);
        (self.bytes.div_ceil(segment).max(1), self.bytes - early)
    }

    /// The time of the message by a form, in nanoseconds, if of each segment `overlap` bytes, m_s,
    /// are shared at once; `None` where the form needs a penalty that is not known. With an
    /// `overlap` of 0 every form is that without overlap.
    pub fn time_ns(&self, form: MixedForm, between: &BetweenNodes, overlap: u64) -> Option<f64> {
        let overlap = overlap.min(between.segment).min(self.bytes);
        let (segments, rest) = self.cut(between.segment, overlap);
        let once_more = segments.saturating_sub(1) as f64;
        let hidden_ns = between.whole_ns + self.shared(overlap) + self.shared(rest);
        let places = segments as f64 + once_more + f64::from(between.hops.saturating_sub(1));
        Some(match form {
            MixedForm::NoOverlap => between.whole_ns + self.shared(self.bytes),
            MixedForm::Complete => hidden_ns,
            MixedForm::Overlapping if overlap == 0 => hidden_ns,
            MixedForm::Overlapping => {
                let late_ns = between.busy_ns + self.shared(overlap) - between.interval_ns;
                hidden_ns + late_ns.max(0.0) * once_more
            }
            MixedForm::Penalty => hidden_ns + self.penalty(overlap)? * places,
            MixedForm::LargestPenalty => hidden_ns + self.shared(overlap) * places,
        })
    }

    /// The form that measured parameters speak for, and the time by it: no overlap if `overlap` is
    /// 0; else the slowest of the forms that are no bounds, because sharing that does not fit
    /// between two segments, and a penalty, do not go away. Of forms with equal times the mildest.
    pub fn likely(&self, between: &BetweenNodes, overlap: u64) -> (MixedForm, f64) {
        let time = |form| Some((form, self.time_ns(form, between, overlap)?));
        if overlap == 0 {
            return (MixedForm::NoOverlap, between.whole_ns + self.shared(self.bytes));
        }
        let forms =
            [MixedForm::Complete, MixedForm::Overlapping, MixedForm::Penalty].into_iter().filter_map(time);
        forms.reduce(|mild, next| if next.1 > mild.1 { next } else { mild }).expect("two are always known")
    }

    /// The form whose time is nearest to a measured one, among those whose time is known; of forms
    /// with equal times the mildest.
    pub fn nearest(&self, between: &BetweenNodes, overlap: u64, measured_ns: f64) -> MixedForm {
        let off = |form: &MixedForm| {
            self.time_ns(*form, between, overlap).map_or(f64::INFINITY, |ns| (ns - measured_ns).abs())
        };
        let forms = match overlap {
            0 => [MixedForm::NoOverlap].to_vec(),
            _ => [MixedForm::Complete, MixedForm::Overlapping, MixedForm::LargestPenalty].to_vec(),
        };
        forms.into_iter().min_by(|one, other| off(one).total_cmp(&off(other))).expect("one at least")
    }

    /// The time of a segment (all of `bytes`) over one hop, at the receiver, in nanoseconds: (4.1),
    /// or with a penalty (4.2), which is `None` where the penalty is not known. `overlap` bytes are
    /// shared at once, and then the rest.
    pub fn received_ns(&self, hop: Hop, overlap: u64, with_penalty: bool) -> Option<f64> {
        let overlap = overlap.min(self.bytes);
        let penalty_ns = if with_penalty { self.penalty(overlap)? } else { 0.0 };
        let shared_ns = self.shared(overlap) + self.shared(self.bytes - overlap);
        Some(hop.latency_ns + hop.gap_ns + penalty_ns + shared_ns)
    }

    /// The time of a segment (all of `bytes`) over one hop, at the sender, in nanoseconds; the
    /// sender shares while the message is on its way (Figure 4.10).
    pub fn sent_ns(&self, hop: Hop, overlap: u64) -> f64 {
        let overlap = overlap.min(self.bytes);
        hop.gap_ns.max(hop.send_ns + self.shared(overlap)) + self.shared(self.bytes - overlap)
    }
}

#[cfg(test)]
mod tests;
