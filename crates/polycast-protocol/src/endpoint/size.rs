//! The size of the message: what the root was called with, which this node may not have been.
//!
//! ```text
//!   its own ──a fragment behind that, which is not the last──▶ more than that ──the last one, an end, a word by MPI──▶ the root's
//!      └────────────────────────the last one, an end, a parity, a word by MPI────────────────────────────────────────────▲
//! ```
//! Each fragment but the last is a full datagram, and the last says that it is that; so nodes take, ask for and hand on whatever comes
//! before they know the size, and who has the last one knows it. Of MPI's messages those say it whose sender does.

use super::active::Active;
use super::left_behind::LeftBehind;
use crate::data::Data;
use crate::fragmentation::Fragmentation;
use crate::parity;
use crate::spec::{Form, Multicast};
use crate::wire::{FLAG_LAST, Header, Kind};

/// What a datagram says of the size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It fits what the node knows, now.
    Fits,
    /// It is of use only to those who know the size.
    SaysNothing,
    /// It contradicts what was said before.
    Contradicts,
}

impl Active {
    /// Datagrams that the root sends of a message, each once.
    pub fn datagrams_of(cut: Fragmentation, spec: Multicast) -> u64 {
        u64::from(cut.fragments()) + u64::from(spec.parity) + u64::from(spec.form == Form::Pull)
    }

    /// The bytes of the root's message, if this node knows them.
    pub fn known_bytes(&self) -> Option<u64> {
        self.knows_size.then(|| self.cut.message_bytes())
    }

    /// Takes what a datagram of the root's message, or an answer for it, says of the size.
    pub fn hears(&mut self, header: &Header, payload: &[u8], left_behind: &mut LeftBehind) -> Told {
        let fits = match header.kind {
            Kind::Data if header.flags & FLAG_LAST != 0 => {
                let payload_bytes = u64::from(self.cut.payload_bytes());
                let before = u64::from(header.fragment) * payload_bytes;
                let own = payload.len() as u64;
                (1..=payload_bytes).contains(&own) && self.learns_size(before + own, left_behind)
            }
            Kind::Data => {
                payload.len() == self.cut.payload_bytes() as usize && self.sees_more_than(header.fragment)
            }
            // Its length has 32 bits, which do not say another size than one that is known, or expected.
            Kind::Parity if header.fragment != parity::length(self.cut) => {
                return if self.knows_size { Told::Contradicts } else { Told::SaysNothing };
            }
            Kind::Parity => self.learns_size(self.cut.message_bytes(), left_behind),
            _ => {
                let bytes = match payload.try_into() {
                    Ok(bytes) => u64::from_le_bytes(bytes),
                    Err(_) => self.cut.message_bytes(),
                };
                self.learns_size(bytes, left_behind) && header.fragment == self.cut.fragments()
            }
        };
        if fits { Told::Fits } else { Told::Contradicts }
    }

    /// Learns the root's size; false if that cannot be.
    pub fn learns_size(&mut self, bytes: u64, left_behind: &mut LeftBehind) -> bool {
        if self.knows_size {
            return bytes == self.cut.message_bytes();
        }
        let Some(cut) = Fragmentation::new(bytes, self.cut.payload_bytes()) else { return false };
        // What has come is followed by others.
        if self.receiver.has_any_from(cut.fragments() - 1) {
            return false;
        }
        self.knows_size = true;
        self.recut(cut);
        if self.spec.form == Form::Push {
            left_behind.expect_in_all(cut.fragments());
        }
        true
    }

    /// True if there is room for what comes, for all of it once the size is known: it does not move
    /// then any more.
    pub fn has_room(&self, data: &mut Data<'_>) -> bool {
        self.known_bytes().is_none_or(|bytes| data.has_room(bytes as usize))
    }

    /// Learns that there are more fragments than this one and those before it; false if that cannot
    /// be.
    pub fn sees_more_than(&mut self, fragment: u32) -> bool {
        let has_more = |cut: Fragmentation| fragment < cut.fragments() - 1;
        if !self.knows_size && !has_more(self.cut) {
            let payload_bytes = self.cut.payload_bytes();
            let least = (u64::from(fragment) + 1) * u64::from(payload_bytes) + 1;
            Fragmentation::new(least, payload_bytes).into_iter().for_each(|cut| self.recut(cut));
        }
        has_more(self.cut)
    }

    fn recut(&mut self, cut: Fragmentation) {
        if cut != self.cut {
            self.receiver.recut(cut);
            self.repair.recut(cut);
            self.datagrams = Active::datagrams_of(cut, self.spec);
            self.cut = cut;
        }
        self.ring.recut(cut, self.knows_size, &self.receiver);
    }
}
