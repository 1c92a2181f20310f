//! One node of a communicator in a job: drives the endpoint with datagrams, messages and the time.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use polycast_core::protocol::{Action, Capacity, Counters, Data, Endpoint, Mismatch, Multicast, Peer};
use polycast_core::units::{Nanos, Rank};
use rustix::event::PollFlags;

use super::group::Group;
use super::mail::{Mail, To};
use super::stream::Stream;
use crate::door::Door;
use crate::idle::Idle;
use crate::machine;
use crate::slots::Slots;
use crate::transport::Failure;

/// Open MPI's MPI_Testsome first looks and then lets messages in: two polls that find nothing mean that nothing is there.
const POLLS_UNTIL_NOTHING: u32 = 2;

/// What has come.
struct Received {
    datagrams: bool,
    messages: bool,
}

/// What a ring needs of its communicator.
pub struct Resources<'a> {
    pub door: &'a Door,
    pub slots: &'a mut Slots,
    pub idle: &'a mut Idle,
}

/// This process's place in the ring of nodes of a communicator.
pub struct Ring {
    endpoint: Endpoint,
    communicator: u32,
    group: Arc<Group>,
    mail: Mail,
    /// The leader of each node.
    leaders: Box<[Rank]>,
    epoch: Instant,
    /// Datagrams that the socket had no room for: the size of each, and where the rest begins.
    unsent: Vec<u8>,
    unsent_from: usize,
    datagram_bytes: usize,
    buffer: Vec<u8>,
    /// Datagrams that could not be sent for another reason than lack of room; the ring brings what they had.
    send_errors: u64,
}

impl Ring {
    pub fn new(
        endpoint: Endpoint,
        communicator: u32,
        group: Arc<Group>,
        node: u32,
        leaders: &[Rank],
    ) -> Ring {
        let nodes = leaders.len();
        let at = |index: usize| leaders[index % nodes];
        Ring {
            endpoint,
            communicator,
            group,
            mail: Mail::new(at(node as usize + nodes - 1), at(node as usize + 1)),
            leaders: leaders.into(),
            epoch: machine::now(),
            unsent: Vec::new(),
            unsent_from: 0,
            datagram_bytes: 0,
            buffer: Vec::new(),
            send_errors: 0,
        }
    }

    pub fn counters(&self) -> Counters {
        *self.endpoint.counters()
    }

    pub fn send_errors(&self) -> u64 {
        self.send_errors
    }

    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Takes part in one broadcast from node `root`, until this node owes nobody anything. `is_spoiled`: this node is the root, and
    /// has nothing to send.
    pub fn run(
        &mut self,
        spec: Multicast,
        root: u32,
        is_spoiled: bool,
        data: &mut Data<'_>,
        with: &mut Resources<'_>,
    ) -> Result<(), Failure> {
        self.mail.post_receives(with.door, with.slots)?;
        while self.mail.awaits_too_many_arrivals() {
            // Nothing has begun, so messages and datagrams only wait for their turn.
            with.slots.poll(with.door)?;
            if !self.receive(data, with)?.messages {
                with.idle.wait(true, self.mail.is_sending());
            }
        }
        let begun = self.endpoint.begin(spec, root, self.now(), data).map_err(size);
        if let Some(node) = self.endpoint.expects_arrival_from() {
            self.mail.expect_arrival(self.leaders[node as usize], with.door, with.slots)?;
        }
        let mut outcome = if is_spoiled { Err(Failure::Size) } else { begun };
        if outcome.is_err() {
            self.endpoint.fail();
        }
        // Asking MPI costs system calls: it is asked when one of its sockets has something, not for every datagram.
        let mut polls_due = 0;
        let mut stream = Stream::new(self.group.receive_buffer_bytes());
        loop {
            if polls_due > 0 {
                polls_due -= 1;
                with.slots.poll(with.door)?;
            }
            let received = match self.receive(data, with) {
                Err(Failure::Size) => {
                    self.endpoint.fail();
                    outcome = Err(Failure::Size);
                    Received { datagrams: true, messages: true }
                }
                received => received?,
            };
            let has_sent = self.send(root, data, with)?;
            // What MPI has not sent yet would wait for the program's next call, and the neighbour with it.
            let has_sent_all = self.unsent.is_empty() && !self.mail.is_sending();
            if self.endpoint.is_finished() && has_sent_all {
                self.endpoint.end();
                return outcome;
            }
            if received.messages || has_sent {
                polls_due = POLLS_UNTIL_NOTHING;
                with.idle.progress();
            } else if received.datagrams {
                with.idle.progress_elsewhere();
            } else if polls_due == 0 && self.rest(&mut stream, with) {
                polls_due = POLLS_UNTIL_NOTHING;
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos((machine::now() - self.epoch).as_nanos() as u64)
    }

    /// Takes what is there. Datagrams before messages: an end that has come by MPI must not overtake what is in the socket.
    fn receive(&mut self, data: &mut Data<'_>, with: &mut Resources<'_>) -> Result<Received, Failure> {
        let now = self.now();
        let Ring { endpoint, group, mail, communicator, .. } = self;
        let mut outcome = Ok(());
        let datagrams = group.receive(*communicator, |header, payload| {
            let used = endpoint.on_datagram(header, payload, now, data);
            outcome = outcome.and(used);
        });
        outcome.map_err(size)?;
        // A socket that fails brings nothing; the ring brings everything.
        let datagrams = datagrams.unwrap_or(false);
        let messages = mail.sort(with.slots, |message| endpoint.on_message(message, now, data))?;
        mail.deliver(with.door, with.slots, |message| endpoint.on_message(message, now, data))?;
        Ok(Received { datagrams, messages })
    }

    fn send(&mut self, root: u32, data: &Data<'_>, with: &mut Resources<'_>) -> Result<bool, Failure> {
        let mut has_sent = self.send_rest();
        loop {
            let capacity = Capacity { datagrams: self.unsent.is_empty(), message: self.mail.has_room() };
            match self.endpoint.next_action(self.now(), capacity, data, &mut self.buffer) {
                None => return Ok(has_sent),
                Some(Action::Message { to }) => {
                    let to = match to {
                        Peer::Successor => To::Successor,
                        Peer::Predecessor => To::Predecessor,
                        Peer::Drawn(_) => To::Root(self.leaders[root as usize]),
                    };
                    self.mail.send(to, &mut self.buffer, with.door, with.slots)?;
                }
                Some(Action::Datagrams { datagram_bytes }) => {
                    std::mem::swap(&mut self.buffer, &mut self.unsent);
                    self.datagram_bytes = datagram_bytes;
                    self.send_rest();
                    // What arrives meanwhile, a request for example, is looked at between batches.
                    return Ok(true);
                }
            }
            has_sent = true;
        }
    }

    /// Sends what the socket has room for.
    fn send_rest(&mut self) -> bool {
        if self.unsent.is_empty() {
            return false;
        }
        match self.group.send(&self.unsent[self.unsent_from..], self.datagram_bytes) {
            Ok(bytes) => self.unsent_from += bytes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => {
                self.send_errors += 1;
                self.unsent_from = self.unsent.len();
            }
        }
        if self.unsent_from >= self.unsent.len() {
            self.unsent.clear();
            self.unsent_from = 0;
        }
        true
    }

    /// False if only datagrams are there.
    fn rest(&self, stream: &mut Stream, with: &mut Resources<'_>) -> bool {
        if with.idle.is_crowded()
            && let Some((received, missing)) = self.endpoint.bytes_by_multicast()
            && let Some(nap) = stream.nap(machine::now(), received, missing)
        {
            machine::sleep(nap);
            return true;
        }
        let events = if self.unsent.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let until = self.endpoint.deadline().map(|at| Duration::from_nanos((at - self.now()).0));
        with.idle.rest(Some((self.group.as_fd(), events)), until, self.mail.is_sending())
    }

    /// The communicator goes: says so to both neighbours. What may still come is for the mail that is returned; the group is
    /// left.
    pub fn say_bye(mut self, with: &mut Resources<'_>) -> Result<Mail, Failure> {
        self.mail.post_receives(with.door, with.slots)?;
        for to in [To::Successor, To::Predecessor] {
            self.endpoint.bye(&mut self.buffer);
            self.mail.send(to, &mut self.buffer, with.door, with.slots)?;
        }
        // A ring leaves its group when it is dropped, so it cannot be taken apart.
        Ok(std::mem::replace(&mut self.mail, Mail::new(Rank(0), Rank(0))))
    }

    /// After an error: the door has abandoned all messages.
    pub fn forget(&mut self) {
        self.endpoint.end();
        self.mail.forget();
        self.unsent.clear();
        self.unsent_from = 0;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.group.leave(self.communicator);
    }
}

fn size(_: Mismatch) -> Failure {
    Failure::Size
}
