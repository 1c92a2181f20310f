//! Reduce-scatter by halving, allgather by doubling.
//!
//! ```text
//!   vector of rank 0 of 8    round 0, with 1   round 1, with 2   round 2, with 4      then back: 4, 2, 1
//!   ████████                 ████              ██                █                    ██   ████   ████████
//! ```
//!
//! In round k pairs at distance 2^k, whose parts are of neighbouring ranks, exchange halves of what they are responsible for, and combine the half that they
//! keep: so the order of ranks is kept, and the result is the same on all ranks. `2 log2 P` hops and `2 (P-1)/P` of the vector over each link: for
//! vectors of any length where the ranks are a power of two. Of other numbers the first ranks pair up, as in recursive doubling, and one of each goes on for both: whole
//! vectors more for these (Rabenseifner 2004; Thakur et al. 2005, §3.5).

use std::ops::Range;

use crate::algorithm::formulas::{doublings, others_share};
use crate::algorithm::shares::Shares;
use crate::algorithm::{Algorithm, Entry, Stages};
use crate::collective::{Call, Collective};
use crate::schedule::{Action, After, Buffer, Channel, Kind, Listed, Posting, Schedule, Slice, Stream};
use crate::units::Rank;

const COMBINE: Channel = 0;
const RESULT: Channel = 1;

pub(super) static ENTRIES: [Entry; 1] = [Entry::any(
    &[Collective::Allreduce],
    "halving-doubling",
    "pairs at doubling distances combine halves of what they have, and bring them together again on the way back",
    "Rabenseifner 2004",
    schedule,
)
.by_the_tree()
.in_stages(|ranks| { let share = others_share(ranks); ranks.is_power_of_two().then(|| Stages { rounds: 2.0 * doublings(ranks), carried: 2.0 * share, combined: share }) })];

fn schedule(_: &Algorithm, call: &Call, Rank(rank): Rank) -> Box<dyn Schedule> {
    let (ranks, bytes, mut list) = (call.ranks, call.bytes.0, Listed::default());
    if bytes == 0 {
        return Box::new(list);
    }
    let rounds = ranks.ilog2();
    let paired = 2 * (ranks - (1 << rounds));
    let all = || 0..bytes;
    let own = if call.is_in_place { Buffer::Output } else { Buffer::Input };
    let result = |stream: Stream| Stream { posting: Posting::InTurn, channel: RESULT, ..stream };
    if rank < paired && rank % 2 == 0 {
        let partner = Rank(rank + 1);
        let contribution = Action::Send(Slice { buffer: own, bytes: all() });
        let lane = list.single(Kind::Messages(Stream::send(partner, COMBINE)), contribution, After::Start);
        // Its output may be what it sends.
        let stream = result(Stream::receive(partner, RESULT));
        let after = After::Steps { lane, count: 1 };
        list.single(Kind::Messages(stream), Action::Receive(Slice::output(all())), after);
        return Box::new(list);
    }
    // Among those that go on.
    let place = if rank < paired { rank / 2 } else { rank - paired / 2 };
    let rank_at = |place: u32| Rank(if place < paired / 2 { 2 * place + 1 } else { place + paired / 2 });
    let shares = Shares::new(call, 1 << rounds, None);
    let partner = |round: u32| place ^ (1 << round);
    // What a place is responsible for after so many rounds: in each the lower one keeps the lower half.
    let kept = |place: u32, after: u32| {
        let halves = 0..after.min(rounds);
        let first = halves.fold(0, |first, round| first + ((place >> round & 1) << (rounds - 1 - round)));
        shares.bytes(first..first + (1 << (rounds - after)))
    };
    // Of each exchange what comes lies behind what came before.
    let mut scratch = 0;
    let mut come = |range: &Range<u64>| {
        let start = scratch;
        scratch += range.end - range.start;
        Slice::scratch(start..scratch)
    };
    let fold = (rank < paired).then(|| come(&all()));
    let halves: Vec<Slice> = (1..=rounds).map(|after| come(&kept(place, after))).collect();
    list.set_scratch_bytes(scratch);

    // All lanes of messages stand before the local one, by round, so that a combination can wait for an exchange as a whole.
    let has_partner = usize::from(fold.is_some());
    let local = has_partner + 2 * rounds as usize;
    let mut steps = Vec::new();
    // Where the bytes are that this rank is responsible for, and which.
    let mut mine = (Slice { buffer: own, bytes: all() }, all());
    if let Some(fold) = &fold {
        let stream = Stream::receive(Rank(rank - 1), COMBINE);
        list.single(Kind::Messages(stream), Action::Receive(fold.clone()), After::Start);
        combine(&mut steps, fold.clone(), &mut mine, all(), true, After::LanesBelow(1));
    }
    for round in 0..rounds {
        let (peer, is_lower) = (rank_at(partner(round)), partner(round) < place);
        let half = &halves[round as usize];
        list.single(
            Kind::Messages(Stream::receive(peer, COMBINE)),
            Action::Receive(half.clone()),
            After::Start,
        );
        let after = match steps.len() as u64 {
            0 => After::Start,
            count => After::Steps { lane: local, count },
        };
        let given = part(&mine, &kept(partner(round), round + 1));
        list.single(Kind::Messages(Stream::send(peer, COMBINE)), Action::Send(given), after);
        let exchanged = After::LanesBelow(has_partner + 2 * (round as usize + 1));
        combine(&mut steps, half.clone(), &mut mine, kept(place, round + 1), is_lower, exchanged);
    }
    if mine.0 != Slice::output(mine.1.clone()) {
        steps.push((Action::Copy { from: mine.0, to: Slice::output(mine.1) }, After::Start));
    }
    list.lane(Kind::Local);
    steps.into_iter().for_each(|(action, after)| {
        list.add(local, action, after);
    });

    // Nothing of the output is in use any more but what this rank has got so far.
    let mut below = local + 1;
    for round in (0..rounds).rev() {
        let peer = rank_at(partner(round));
        let (have, comes) = (kept(place, round + 1), kept(partner(round), round + 1));
        let receive = result(Stream::receive(peer, RESULT));
        let after = After::LanesBelow(local + 1);
        list.single(Kind::Messages(receive), Action::Receive(Slice::output(comes)), after);
        let send = result(Stream::send(peer, RESULT));
        list.single(Kind::Messages(send), Action::Send(Slice::output(have)), After::LanesBelow(below));
        below += 2;
    }
    if fold.is_some() {
        let send = result(Stream::send(Rank(rank - 1), RESULT));
        list.single(Kind::Messages(send), Action::Send(Slice::output(all())), After::LanesBelow(below));
    }
    Box::new(list)
}

/// Returns the place of `bytes`, which lie within the bytes `of` that stand at `place`.
fn part((place, of): &(Slice, Range<u64>), bytes: &Range<u64>) -> Slice {
    let start = place.bytes.start + (bytes.start - of.start);
    Slice { buffer: place.buffer, bytes: start..start + (bytes.end - bytes.start) }
}

/// Combines what has come for `kept` with this rank's, lower ranks first.
fn combine(
    steps: &mut Vec<(Action, After)>,
    come: Slice,
    mine: &mut (Slice, Range<u64>),
    kept: Range<u64>,
    is_lower: bool,
    after: After,
) {
    let own = part(mine, &kept);
    let (from, into) = match (is_lower, own.buffer) {
        (false, _) => (own, come),
        // The input is not written.
        (true, Buffer::Input) => {
            let to = Slice::output(kept.clone());
            steps.push((Action::Copy { from: own, to: to.clone() }, After::Start));
            (come, to)
        }
        (true, _) => (come, own),
    };
    *mine = (into.clone(), kept);
    steps.push((Action::Combine { from, into }, after));
}
