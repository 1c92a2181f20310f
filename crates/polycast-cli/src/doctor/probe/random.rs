//! A group and a number that no other run has, but by chance.

use polycast_net::{Family, Group};

/// Draws a group to send to and the number of a run.
///
/// # Errors
/// The system has no entropy to give.
pub fn group_and_run(family: Family) -> Result<(Group, u64), getrandom::Error> {
    let run = getrandom::u64()?;
    let mut state = getrandom::u64()?;
    // SplitMix64 (Steele, Lea, Flood 2014): a group is no secret, and the source of its bits cannot fail any more.
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    Ok((Group::random(family, &mut next), run))
}
