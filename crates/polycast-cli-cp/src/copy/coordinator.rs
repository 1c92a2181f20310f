//! The coordinator of a copy: starts the agents, tells every node whom to take from, and collects the outcome.

use std::ffi::OsString;
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use polycast_copy::{Fleet, KEY_BYTES, Key, SOURCE, Standing, Stream};
use polycast_core::units::Nanos;

use super::address::Network;
use super::clock::Clock;
use super::crew::{Agent, News};
use super::message::{Command, Event, Spoiled};
use super::multicast::{Attempt, GroupTerms};
use super::node::Node;
use super::place::Place;
use super::report::{LeftOut, Report};
use super::request::{Progress, Request, Target};

/// The longest time that the first bytes wait for nodes that are not ready, once half of them are. Only time in which they were listened to counts.
const LATE: Nanos = Nanos::from_micros(3_000_000);
/// The longest time without news before the clock is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// The longest time that agents may take to end when all is done.
const END_LIMIT: Duration = Duration::from_secs(2);

pub(super) struct Source {
    pub(super) stream: Stream,
    pub(super) manifest: String,
    pub(super) files: u64,
    pub(super) folders: u64,
    pub(super) links: u64,
    pub(super) skipped: Vec<String>,
}

/// The totals that the source tells when it has read everything.
pub(super) struct Read {
    pub(super) digest: String,
    pub(super) spoiled: Vec<Spoiled>,
    /// The bytes of the source's blocks as they travel, compressed or not.
    pub(super) sent_bytes: u64,
}

/// A copy in progress.
pub(super) struct Copy<'a> {
    pub(super) request: &'a Request,
    pub(super) key: Key,
    pub(super) nodes: Vec<Node>,
    pub(super) source: Option<Source>,
    pub(super) fleet: Option<Fleet>,
    pub(super) read: Option<Read>,
    pub(super) place: Place,
    /// Files that changed after they were read.
    pub(super) unreadable: Vec<LeftOut>,
    pub(super) has_asked_to_read: bool,
    pub(super) clock: Clock,
    /// The end of the channel of news to which agents send; each agent gets a clone.
    pub(super) sender: Sender<(u32, News)>,
    pub(super) began: Instant,
    pub(super) begun_at: Option<f64>,
    pub(super) half_ready: Option<Nanos>,
    pub(super) attempt: Attempt,
    pub(super) terms: Option<GroupTerms>,
    pub(super) has_ring: bool,
    pub(super) order: &'a [u32],
    pub(super) remedy: &'a dyn Fn(&str, Option<i32>, &str) -> String,
}

/// Copies, in this order of the targets, which are counted from 1. `remedy` says what to do about a host whose agent ended with this code and these words before it was ready.
pub fn run(
    request: &Request,
    source: Process,
    targets: Vec<Target>,
    order: &[u32],
    remedy: &dyn Fn(&str, Option<i32>, &str) -> String,
    interrupted: &AtomicBool,
    mut show: impl FnMut(&Progress<'_>),
) -> Result<Report, Box<dyn std::error::Error>> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| format!("no random numbers: {error}"))?;
    let (sender, news) = channel();
    let own =
        Target { host: "the source".to_owned(), destination: OsString::new(), process: source, tool: None };
    let all = (0..).zip([own].into_iter().chain(targets));
    let nodes = all.map(|(number, target)| Node::start(number, target, sender.clone())).collect();
    let mut copy = Copy {
        request,
        key: Key::from_bytes(key),
        nodes,
        source: None,
        fleet: None,
        place: Place::default(),
        read: None,
        unreadable: Vec::new(),
        has_asked_to_read: false,
        clock: Clock::new(),
        sender,
        began: Instant::now(),
        begun_at: None,
        half_ready: None,
        attempt: Attempt::None,
        terms: None,
        has_ring: false,
        order,
        remedy,
    };
    let outcome = copy.go(&news, interrupted, &mut show);
    copy.end();
    outcome?;
    Ok(copy.report())
}

impl Copy<'_> {
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn go(
        &mut self,
        news: &Receiver<(u32, News)>,
        interrupted: &AtomicBool,
        show: &mut impl FnMut(&Progress<'_>),
    ) -> Result<(), String> {
        if let Some(reason) = self.nodes[SOURCE as usize].reason.take() {
            return Err(format!("the source {reason}"));
        }
        let patience = Nanos(self.request.patience.as_nanos() as u64);
        let mut shown = Instant::now();
        while !self.is_over() {
            if interrupted.load(Ordering::Relaxed) {
                return Err(
                    "interrupted; what has come stays where it is, and the same command goes on from there"
                        .into(),
                );
            }
            let first = match news.recv_timeout(LOOK) {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err("every agent is gone".into()),
            };
            self.clock.turn();
            // All that has come: nobody is silent whose word is here.
            for (node, news) in first.into_iter().chain(news.try_iter()) {
                self.take(node, news)?;
            }
            if !self.nodes[SOURCE as usize].has_said_hello && self.now() >= patience {
                return Err(format!(
                    "nothing was heard of the source for {} s",
                    self.request.patience.as_secs()
                ));
            }
            self.begin_if_due();
            self.carry_out();
            if shown.elapsed() >= Duration::from_millis(200) {
                shown = Instant::now();
                self.show(show);
            }
        }
        Ok(())
    }

    /// Ends all agents at the same time, however it went.
    fn end(&mut self) {
        let by = Instant::now() + END_LIMIT;
        self.nodes.iter_mut().filter_map(|node| node.agent.as_mut()).for_each(Agent::dismiss);
        for agent in self.nodes.iter_mut().filter_map(|node| node.agent.as_mut()) {
            agent.end(by);
        }
    }

    fn is_over(&self) -> bool {
        let is_out = |node: usize| {
            self.fleet.as_ref().is_some_and(|fleet| matches!(fleet.standing(node as u32), Standing::Out(_)))
        };
        self.fleet.is_some()
            && self
                .nodes
                .iter()
                .enumerate()
                .skip(1)
                .all(|(number, node)| node.done_at.is_some() || is_out(number))
    }

    fn take(&mut self, node: u32, news: News) -> Result<(), String> {
        let index = node as usize;
        match news {
            News::Gone => {
                // Its last words may be long in coming, and the others are not to wait for them.
                if let Some(mut agent) = self.nodes[index].agent.take() {
                    let news = self.sender.clone();
                    thread::spawn(move || {
                        let (code, said) = agent.last_words();
                        let _ = news.send((node, News::Ended(code, said)));
                    });
                }
            }
            News::Ended(code, said) => {
                if node == SOURCE {
                    return Err(format!("the source ended with {said}"));
                }
                let host = self.nodes[index].host.clone();
                let reason = match self.nodes[index].addresses.is_empty() {
                    true => format!("{said}; {}", (self.remedy)(&host, code, &said)),
                    false => format!("its agent ended with {said}"),
                };
                self.lose(node, reason);
            }
            News::Event(event) => self.heed(node, event)?,
        }
        Ok(())
    }

    fn heed(&mut self, node: u32, event: Event) -> Result<(), String> {
        let (index, now) = (node as usize, self.now());
        match event {
            Event::Hello { version } if version != env!("CARGO_PKG_VERSION") => {
                let reason =
                    format!("its polycast is version {version}, this is {}", env!("CARGO_PKG_VERSION"));
                if node == SOURCE {
                    return Err(format!("the source: {reason}"));
                }
                self.lose(node, reason);
            }
            Event::Hello { .. } => {
                self.nodes[index].has_said_hello = true;
                self.with_fleet(|fleet| fleet.heard(node, now));
                Network::for_agents().into_iter().for_each(|command| self.tell(node, &command));
                if node == SOURCE {
                    let Request { sources, recursive, block_bytes, bits_per_second, compress, .. } =
                        self.request;
                    let key = self.key.to_text();
                    self.tell(
                        node,
                        &Command::Send {
                            key,
                            sources: sources.clone(),
                            recursive: *recursive,
                            block_bytes: *block_bytes,
                            bits_per_second: *bits_per_second,
                            compress: *compress,
                        },
                    );
                } else if self.source.is_some() {
                    self.tell_to_receive(node);
                }
            }
            Event::Scanned { manifest, lengths, addresses, files, folders, links, skipped } => {
                let stream = Stream::from(lengths);
                self.source = Some(Source { stream, manifest, files, folders, links, skipped });
                self.nodes[index].addresses = addresses;
                let others = self.nodes.len() as u32 - 1;
                let fanout = self.fanout(&stream);
                let patience = Nanos(self.request.patience.as_nanos() as u64);
                let block_time = self
                    .request
                    .bits_per_second
                    .map_or(Nanos(0), |rate| Nanos::on_link(stream.block_bytes as usize, rate));
                let fleet = Fleet::new(others, stream.blocks(), fanout, patience);
                self.fleet = Some(fleet.limited(block_time));
                for other in 1..=others {
                    self.with_fleet(|fleet| fleet.heard(other, now));
                    if let Some(reason) = self.nodes[other as usize].reason.take() {
                        self.lose(other, reason);
                    } else if self.nodes[other as usize].has_said_hello {
                        self.tell_to_receive(other);
                    }
                }
            }
            Event::Read { digest, spoiled, sent_bytes } => {
                self.read = Some(Read { digest, spoiled, sent_bytes });
            }
            Event::Unreadable { file, reason } => {
                if self.unreadable.iter().all(|known| known.file != file) {
                    self.unreadable.push(LeftOut { file, reason });
                }
            }
            Event::Ready { have, addresses, into_folder } => {
                if self.request.recursive {
                    self.place.is_the_same(&self.nodes[index].host, into_folder)?;
                }
                self.nodes[index].addresses = addresses;
                self.nodes[index].resumed = have;
                self.with_fleet(|fleet| fleet.ready(node, have, now));
            }
            Event::InCommon { with } => self.leave_to(node, with),
            Event::Progress { have, written } => {
                self.nodes[index].written = written;
                self.with_fleet(|fleet| fleet.progress(node, have, now));
            }
            Event::ParentFailed { parent, reason } => {
                let reason = format!("{}: {reason}", self.nodes[parent as usize].host);
                self.with_fleet(|fleet| fleet.parent_failed(node, parent, &reason, now));
            }
            Event::Joined(joined) => self.nodes[index].membership.joined(joined),
            Event::Heard => self.nodes[index].membership.heard(),
            Event::RingFailed(number) => self.with_fleet(|fleet| fleet.ring_failed(number, now)),
            Event::Done => {
                let done_at = Some(self.began.elapsed().as_secs_f64());
                let is_for =
                    |(other, it): &(u32, &mut Node)| *other == node || it.in_common_with == Some(node);
                (0..).zip(&mut self.nodes).filter(is_for).for_each(|(_, it)| it.done_at = done_at);
            }
            Event::Failed { reason } if node == SOURCE => return Err(reason),
            Event::Failed { reason } => self.lose(node, reason),
        }
        Ok(())
    }

    /// Leaves the writing of `node`'s folder to the node `with`, which has the folder in common with it: the outcome there counts for both.
    fn leave_to(&mut self, node: u32, with: u32) {
        if with == SOURCE || with == node || with as usize >= self.nodes.len() {
            return self.lose(node, "its folder is marked by a node that there is not".to_owned());
        }
        self.nodes[node as usize].in_common_with = Some(with);
        let host = &self.nodes[with as usize].host;
        self.lose(node, format!("{host}, which has DEST in common with it, failed"));
        self.nodes[node as usize].done_at = self.nodes[with as usize].done_at;
    }

    fn with_fleet(&mut self, change: impl FnOnce(&mut Fleet)) {
        if let Some(fleet) = &mut self.fleet {
            change(fleet);
        }
    }

    fn lose(&mut self, node: u32, reason: String) {
        let now = self.now();
        if self.nodes[node as usize].done_at.is_some() {
            // It has what it needs; whoever takes from it notices.
            return;
        }
        match &mut self.fleet {
            Some(fleet) => {
                fleet.lost(node, reason, now);
                if let Some(agent) = &mut self.nodes[node as usize].agent {
                    agent.dismiss();
                }
            }
            None => self.nodes[node as usize].reason = Some(reason),
        }
    }

    pub(super) fn tell(&mut self, node: u32, command: &Command) {
        if let Some(agent) = &mut self.nodes[node as usize].agent {
            agent.tell(command);
        }
    }

    fn tell_to_receive(&mut self, node: u32) {
        let Some(source) = &self.source else { return };
        let command = Command::Receive {
            key: self.key.to_text(),
            node,
            destination: self.nodes[node as usize].destination.clone(),
            into_folder: self.request.into_folder,
            force: self.request.force,
            preserve: self.request.preserve,
            manifest: source.manifest.clone(),
            lengths: source.stream.into(),
            compress: self.request.compress,
        };
        self.tell(node, &command);
    }

    pub(super) fn fanout(&self, stream: &Stream) -> usize {
        let nodes = self.nodes.len() as u64 - 1;
        self.request.fanout.unwrap_or_else(|| polycast_copy::best_fanout(nodes, stream.blocks()))
    }

    /// The bytes begin to flow when all are ready, or those that are not have been waited for.
    fn begin_if_due(&mut self) {
        let Some(fleet) = &self.fleet else { return };
        if self.begun_at.is_some() {
            if self.attempt_is_over() {
                self.begin();
            }
            return;
        }
        let others = self.nodes.len() - 1;
        let away = fleet.away();
        if away * 2 <= others && self.half_ready.is_none() {
            self.half_ready = Some(self.now());
        }
        if away == 0 || self.half_ready.is_some_and(|since| self.now() - since >= LATE) {
            self.begun_at = Some(self.began.elapsed().as_secs_f64());
            if !self.try_multicast() {
                self.begin();
            }
        }
    }

    /// Does what follows from what is known.
    fn carry_out(&mut self) {
        let now = self.now();
        let Some(fleet) = &mut self.fleet else { return };
        // To whom the tool itself is still on its way cannot speak.
        let agents = (0..).zip(&mut self.nodes).filter_map(|(node, it)| Some((node, it.agent.as_mut()?)));
        let are_brought = agents.filter_map(|(node, agent)| agent.took_more().then_some(node));
        are_brought.for_each(|node| fleet.heard(node, now));
        fleet.tick(now);
        let orders: Vec<_> = std::iter::from_fn(|| fleet.next_order()).collect();
        let blocks = self.source.as_ref().map_or(0, |source| source.stream.blocks());
        for order in orders {
            self.tell(order.parent, &Command::Expect(self.nodes[order.node as usize].addresses.clone()));
            let addresses = self.nodes[order.parent as usize].addresses.clone();
            self.tell(order.node, &Command::Feed { parent: order.parent, addresses });
        }
        self.seat();
        let ready: Vec<u32> = (1..self.nodes.len() as u32)
            .filter(|node| {
                let it = &self.nodes[*node as usize];
                let is_complete =
                    self.fleet.as_ref().is_some_and(|fleet| *fleet.standing(*node) == Standing::Complete);
                is_complete && it.written >= blocks && !it.has_been_told_to_finish
            })
            .collect();
        // Whether they all have the same place is known when all have looked.
        let is_anybody_away =
            self.request.recursive && self.fleet.as_ref().is_some_and(|fleet| fleet.away() > 0);
        if ready.is_empty() || is_anybody_away {
            return;
        }
        let Some(Read { digest, spoiled, .. }) = &self.read else {
            // All may have everything from an earlier run, and then nobody asks the source.
            if !std::mem::replace(&mut self.has_asked_to_read, true) {
                self.tell(SOURCE, &Command::ReadAll);
            }
            return;
        };
        let finish = Command::Finish {
            digest: digest.clone(),
            spoiled: spoiled.iter().map(|spoiled| spoiled.entry).collect(),
            keeps_mark: self.fleet.as_ref().is_some_and(|fleet| fleet.away() > 0),
        };
        for node in ready {
            self.nodes[node as usize].has_been_told_to_finish = true;
            self.tell(node, &finish);
        }
    }
}

#[cfg(test)]
#[path = "coordinator_tests.rs"]
mod tests;
