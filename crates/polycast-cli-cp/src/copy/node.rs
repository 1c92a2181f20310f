//! A node of a copy as its coordinator has it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;

use super::crew::{Agent, News};
use super::multicast::Membership;
use super::request::Target;

/// A node of a copy; the source is the first.
pub(super) struct Node {
    pub host: String,
    pub destination: OsString,
    pub agent: Option<Agent>,
    pub has_said_hello: bool,
    pub addresses: Vec<SocketAddr>,
    pub resumed: u64,
    pub has_been_told_to_finish: bool,
    pub written: u64,
    pub membership: Membership,
    pub done_at: Option<f64>,
    /// The node that writes DEST, which this one has in common with it.
    pub in_common_with: Option<u32>,
    /// The reason why the node was lost before the source was ready; for an agent that did not
    /// start, with what to do about it.
    pub reason: Option<String>,
}

impl Node {
    /// Starts its agent; what that says goes to `news` with the node's number.
    pub fn start(number: u32, target: Target, news: Sender<(u32, News)>) -> Node {
        let (agent, reason) = match Agent::start(number, target.process, target.tool, news) {
            Ok(agent) => (Some(agent), None),
            Err(error) => (None, Some(format!("cannot be started: {error}"))),
        };
        Node {
            host: target.host,
            destination: target.destination,
            agent,
            has_said_hello: false,
            addresses: Vec::new(),
            resumed: 0,
            has_been_told_to_finish: false,
            written: 0,
            membership: Membership::None,
            done_at: None,
            in_common_with: None,
            reason,
        }
    }
}
