//! How control messages travel between nodes: over MPI in a job, through memory in tests and in the simulator; a program
//! without MPI brings a channel of its own, over TCP for example.

use super::data::Data;
use super::endpoint::{Action, Capacity, Delivery, Endpoint, Mismatch, Peer};
use polycast_units::Nanos;

/// The receives that a channel keeps for each neighbour if, like MPI, it takes a message only when
/// it has a receive for it. From when this node leaves a broadcast the channel keeps one more for
/// each of [`Endpoint::messages_to_come`] and [`Endpoint::messages_to_come_from_successor`], so
/// that no neighbour waits for its next broadcast. After a node has left a broadcast, there come an
/// end and a failed, or a done; a loss probe behind each; and a bye.
pub const RECEIVES_PER_NEIGHBOR: usize = 5;

/// A node's messages to and from other nodes. None is lost, and those of one sender to one [`Peer`] keep their order.
pub trait ControlChannel {
    /// The reason why the channel failed. A [`Mismatch`] passes through it.
    type Error: From<Mismatch>;

    /// True if a message may be sent now.
    fn has_capacity(&self) -> bool;

    /// Sends `message`, and leaves a buffer of any content in its place.
    fn send(&mut self, to: Peer, message: &mut Vec<u8>) -> Result<(), Self::Error>;

    /// Hands the messages that have arrived to `take`; true if there were any. A message for which
    /// `take` says [`Delivery::Early`] is kept, and so are later ones of the same sender.
    fn receive(&mut self, take: impl FnMut(&[u8]) -> Result<Delivery, Mismatch>)
    -> Result<bool, Self::Error>;
}

/// The outcome of [`Endpoint::act`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acted {
    /// No action: there was nothing to do, or no capacity for it.
    Nothing,
    /// A message has been sent.
    Message,
    /// The buffer holds datagrams to multicast: of this size each, the last may be shorter.
    Datagrams {
        /// Bytes of each datagram.
        datagram_bytes: usize,
    },
}

impl Endpoint {
    /// Does what is due next: sends a message through `channel`, or puts datagrams into `buffer` if
    /// `may_multicast`. `has_departed`: see [`Capacity`].
    ///
    /// # Errors
    /// Those of the channel.
    pub fn act<C: ControlChannel>(
        &mut self,
        now: Nanos,
        may_multicast: bool,
        has_departed: bool,
        data: &Data<'_>,
        buffer: &mut Vec<u8>,
        channel: &mut C,
    ) -> Result<Acted, C::Error> {
        let capacity = Capacity { datagrams: may_multicast, message: channel.has_capacity(), has_departed };
        Ok(match self.next_action(now, capacity, data, buffer) {
            None => Acted::Nothing,
            Some(Action::Message { to }) => {
                channel.send(to, buffer)?;
                Acted::Message
            }
            Some(Action::Datagrams { datagram_bytes }) => Acted::Datagrams { datagram_bytes },
        })
    }

    /// Takes the messages that have arrived; true if there were any.
    ///
    /// # Errors
    /// Those of the channel, and [`Mismatch`].
    pub fn receive_messages<C: ControlChannel>(
        &mut self,
        now: Nanos,
        data: &mut Data<'_>,
        channel: &mut C,
    ) -> Result<bool, C::Error> {
        channel.receive(|message| self.on_message(message, now, data))
    }
}
