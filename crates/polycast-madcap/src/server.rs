//! A small MADCAP server: which address is whose until when. Pure: packets and the time go in, replies come out.
//!
//! Invariants:
//! 1. An address is on at most one lease, and a lease has one address.
//! 2. `ends` has exactly one entry per lease: its end.
//! 3. There are never more leases than addresses in the pool, and the pool is bounded.
//! 4. A request that comes twice (its reply was lost) gets the same address.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use super::message::{DecodeError, Kind, LeaseId, Message, NakCode};
use super::scope::Scope;

/// The most addresses of a pool, which bounds the server's memory.
const MAX_POOL: u64 = 1 << 16;

/// The seconds that a server may grant leases for at most. A lease without end would never come
/// back from a client that was killed.
const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 1..=30 * 24 * 3600;

/// A MADCAP server: its pool of multicast addresses and the leases on them.
#[derive(Debug)]
pub struct Server {
    address: IpAddr,
    pool: Scope,
    lease_most: Duration,
    leases: HashMap<LeaseId, Held>,
    taken: HashSet<u32>,
    ends: BTreeSet<(Duration, LeaseId)>,
    /// The offset at which the search for a free address goes on, so that an address just released
    /// is not given to another client at once.
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    offset: u32,
    end: Duration,
}

/// The reason why a server with these settings would be of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServerError {
    /// A pool of more addresses than a server can hold.
    #[error("a pool of {0} addresses; expected at most {MAX_POOL} (239.192.0.0/16)")]
    Pool(u64),
    /// A lease that is too short or too long.
    #[error("leases of {0:?}; expected 1 s to 30 days")]
    Lease(Duration),
}

/// The outcome of a packet, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A new lease.
    Granted {
        /// The address that was given.
        address: IpAddr,
        /// The time that the lease lasts.
        lease: Duration,
    },
    /// A lease that was prolonged, or asked for twice.
    Renewed {
        /// The address that is leased.
        address: IpAddr,
        /// The time that the lease lasts from now on.
        lease: Duration,
    },
    /// A lease that its client ended.
    Released {
        /// The address that is free again.
        address: IpAddr,
    },
    /// A request that was refused, with the reason in the answer.
    Refused(NakCode),
    /// A packet that was not answered, because it is no message of MADCAP.
    Undecodable(DecodeError),
    /// A message that was not answered, because it is for another server, or itself an answer.
    NotForUs,
    /// A client was told what lease it could have.
    Offered,
}

impl Server {
    /// A server of the pool's addresses, reached at `address`, whose leases last at most `lease_most`.
    pub fn new(address: IpAddr, pool: Scope, lease_most: Duration) -> Result<Server, ServerError> {
        if pool.addresses() > MAX_POOL {
            return Err(ServerError::Pool(pool.addresses()));
        }
        if !LEASE_SECONDS.contains(&lease_most.as_secs()) {
            return Err(ServerError::Lease(lease_most));
        }
        Ok(Server {
            address,
            pool,
            lease_most,
            leases: HashMap::new(),
            taken: HashSet::new(),
            ends: BTreeSet::new(),
            next: 0,
        })
    }

    /// The number of leases that had not ended at the last packet.
    pub fn leases(&self) -> usize {
        self.leases.len()
    }

    /// The answer to a packet, if it gets one, and what happened. `now` is the time since any fixed moment; it does not go back.
    pub fn handle(&mut self, now: Duration, packet: &[u8]) -> (Option<Vec<u8>>, Event) {
        self.expire(now);
        let request = match Message::decode(packet) {
            Ok(request) => request,
            Err(error) => return (None, Event::Undecodable(error)),
        };
        if request.server.is_some_and(|server| server != self.address) {
            return (None, Event::NotForUs);
        }
        let outcome = match request.kind {
            Kind::Request => self.request(now, &request),
            Kind::Renew => self.renew(now, &request),
            Kind::Release => self.release(&request),
            Kind::Discover => self.discover(&request),
            Kind::GetInfo => Err(NakCode::UnsupportedFeature),
            // Answers: a server that answered them could be made to talk with another for ever.
            Kind::Offer | Kind::Ack | Kind::Nak => return (None, Event::NotForUs),
        };
        let mut reply = Message {
            server: Some(self.address),
            lease: request.lease,
            scope: request.scope,
            ..Message::new(Kind::Ack, request.family, request.xid)
        };
        let event = match outcome {
            Ok(event) => event,
            Err(code) => Event::Refused(code),
        };
        match event {
            Event::Granted { address, lease } | Event::Renewed { address, lease } => {
                reply.address = Some(address);
                reply.lease_seconds = Some(lease.as_secs() as u32);
            }
            Event::Offered => {
                reply.kind = Kind::Offer;
                reply.lease_seconds = Some(self.duration(&request).as_secs() as u32);
            }
            Event::Refused(code) => {
                reply.kind = Kind::Nak;
                reply.error = Some(code);
            }
            _ => {}
        }
        (Some(reply.encode()), event)
    }

    fn request(&mut self, now: Duration, request: &Message) -> Result<Event, NakCode> {
        let id = request.lease.ok_or(NakCode::Invalid)?;
        self.check(request)?;
        let lease = self.duration(request);
        if let Some(held) = self.leases.get(&id) {
            let address = self.pool.nth(held.offset);
            self.prolong(id, now + lease);
            return Ok(Event::Renewed { address, lease });
        }
        let offset = self.free_offset().ok_or(NakCode::NotCompleted)?;
        self.taken.insert(offset);
        self.leases.insert(id, Held { offset, end: now + lease });
        self.ends.insert((now + lease, id));
        self.next = offset + 1;
        Ok(Event::Granted { address: self.pool.nth(offset), lease })
    }

    fn renew(&mut self, now: Duration, request: &Message) -> Result<Event, NakCode> {
        let id = request.lease.ok_or(NakCode::Invalid)?;
        let held = self.leases.get(&id).ok_or(NakCode::UnknownLease)?;
        let address = self.pool.nth(held.offset);
        let lease = self.duration(request);
        self.prolong(id, now + lease);
        Ok(Event::Renewed { address, lease })
    }

    fn release(&mut self, request: &Message) -> Result<Event, NakCode> {
        let id = request.lease.ok_or(NakCode::Invalid)?;
        let held = self.remove(id).ok_or(NakCode::UnknownLease)?;
        Ok(Event::Released { address: self.pool.nth(held.offset) })
    }

    /// Answers a client that looks for servers. Nothing is reserved: the client's request decides.
    fn discover(&mut self, request: &Message) -> Result<Event, NakCode> {
        self.check(request)?;
        self.free_offset().map(|_| Event::Offered).ok_or(NakCode::NotCompleted)
    }

    /// Checks that the pool can serve the request: it is for one address, of the pool's family, in
    /// a scope that the pool goes by.
    fn check(&self, request: &Message) -> Result<(), NakCode> {
        let family = self.pool.family();
        let enclosing = Scope::of(family);
        let is_scope_ours = request.scope.is_none_or(|scope| {
            scope == self.pool.first() || scope == enclosing.first() && enclosing.contains(self.pool.first())
        });
        if request.family != family || !is_scope_ours {
            return Err(NakCode::Invalid);
        }
        if request.addresses_wanted.is_some_and(|least| least > 1) {
            return Err(NakCode::NotCompleted);
        }
        Ok(())
    }

    fn duration(&self, request: &Message) -> Duration {
        request.lease_seconds.map_or(self.lease_most, |seconds| {
            Duration::from_secs(seconds.max(1).into()).min(self.lease_most)
        })
    }

    fn free_offset(&self) -> Option<u32> {
        let addresses = self.pool.addresses() as u32;
        if self.taken.len() == addresses as usize {
            return None;
        }
        (0..addresses).map(|step| (self.next + step) % addresses).find(|offset| !self.taken.contains(offset))
    }

    fn prolong(&mut self, id: LeaseId, end: Duration) {
        if let Some(held) = self.leases.get_mut(&id) {
            self.ends.remove(&(held.end, id));
            held.end = end;
            self.ends.insert((end, id));
        }
    }

    fn remove(&mut self, id: LeaseId) -> Option<Held> {
        let held = self.leases.remove(&id)?;
        self.taken.remove(&held.offset);
        self.ends.remove(&(held.end, id));
        Some(held)
    }

    fn expire(&mut self, now: Duration) {
        while let Some(&(end, id)) = self.ends.first() {
            if end > now {
                break;
            }
            self.remove(id);
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
