use std::io;

use polycast_net::{Family, Group};

use crate::entropy::random;

/// A group and port at random. Others may have it, too: then binding fails on some host, or datagrams of others arrive and are
/// dropped for want of our key.
pub fn choose_group(family: Family) -> io::Result<Group> {
    let mut failure = Ok(());
    let group = Group::random(family, &mut || {
        random().unwrap_or_else(|error| {
            failure = Err(error);
            0
        })
    });
    failure.map(|()| group)
}
