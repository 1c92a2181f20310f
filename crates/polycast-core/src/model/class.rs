use std::fmt;
use std::str::FromStr;

use super::Curve;
use crate::topology::Topology;

/// The kind of link between two ranks, as far as the times of messages are measured apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkClass {
    /// Both ranks are on the same host.
    SameNode,
    /// The ranks' hosts are joined to the same switch.
    SameSwitch,
    /// Several switches are on the way.
    AcrossSwitches,
}

/// A link class that was not recognised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown link class {found:?}, expected same-node, same-switch or across-switches")]
pub struct ParseLinkClassError {
    found: String,
}

impl LinkClass {
    /// All link classes, the nearest first.
    pub const ALL: [LinkClass; 3] = [LinkClass::SameNode, LinkClass::SameSwitch, LinkClass::AcrossSwitches];

    /// The name, as in parameter files.
    pub fn name(self) -> &'static str {
        match self {
            LinkClass::SameNode => "same-node",
            LinkClass::SameSwitch => "same-switch",
            LinkClass::AcrossSwitches => "across-switches",
        }
    }

    /// The class of the link between two hosts, which are indices into [`Topology::hosts`].
    pub fn between(topology: &Topology, a: usize, b: usize) -> LinkClass {
        if a == b {
            LinkClass::SameNode
        } else if topology.hosts[a].switch == topology.hosts[b].switch {
            LinkClass::SameSwitch
        } else {
            LinkClass::AcrossSwitches
        }
    }

    /// The classes whose parameters stand in for those of this one, the best first; itself is the
    /// first.
    pub(super) fn substitutes(self) -> [LinkClass; 3] {
        use LinkClass::{AcrossSwitches, SameNode, SameSwitch};
        match self {
            SameNode => [SameNode, SameSwitch, AcrossSwitches],
            SameSwitch => [SameSwitch, AcrossSwitches, SameNode],
            AcrossSwitches => [AcrossSwitches, SameSwitch, SameNode],
        }
    }
}

impl fmt::Display for LinkClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for LinkClass {
    type Err = ParseLinkClassError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = LinkClass::ALL.into_iter().find(|class| class.name() == text);
        known.ok_or_else(|| ParseLinkClassError { found: text.to_owned() })
    }
}

/// The names of the curves of a class, in the order of [`ClassParameters::curves`].
pub const CURVE_NAMES: [&str; 9] =
    ["latency", "send_overhead", "receive_overhead", "gap", "hold", "end", "send", "net", "receive"];

/// The names of the curves that are measured as a difference, so that a value may be negative.
pub(super) const DIFFERENCES: [&str; 3] = ["latency", "net", "receive"];

/// The parameters of one link class, each a function of the message size. The first four are the extended P-LogP model
/// (Patarasuk et al. 2008, §4.2), the others the parameterized model (Nupairoj 1998, chapter 2).
#[derive(Clone, Debug, PartialEq)]
pub struct ClassParameters {
    /// `L(m)`: `RTT(m)/2 - g(m)`.
    pub latency: Curve,
    /// `g(m)`: the time between two messages, sent one after the other.
    pub gap: Curve,
    /// `os(m)`: how long the send call keeps the processor.
    pub send_overhead: Option<Curve>,
    /// `or(m)`: how long the receive call keeps the processor, with the message already there.
    pub receive_overhead: Option<Curve>,
    /// `t_hold(m)`: from one send to the next.
    pub hold: Option<Curve>,
    /// `t_end(m)`: from the call of the send to the end of the receive.
    pub end: Option<Curve>,
    /// `t_send(m)`: what of `t_end` passes at the sender.
    pub send: Option<Curve>,
    /// `t_net(m)`: what of `t_end` passes on the network.
    pub net: Option<Curve>,
    /// `t_recv(m)`: what of `t_end` passes at the receiver.
    pub receive: Option<Curve>,
}

impl ClassParameters {
    /// The two curves that predictions cannot do without, and no others.
    pub fn new(latency: Curve, gap: Curve) -> ClassParameters {
        ClassParameters {
            latency,
            gap,
            send_overhead: None,
            receive_overhead: None,
            hold: None,
            end: None,
            send: None,
            net: None,
            receive: None,
        }
    }

    /// All curves, in the order of [`CURVE_NAMES`].
    pub fn curves(&self) -> [Option<&Curve>; 9] {
        [
            Some(&self.latency),
            self.send_overhead.as_ref(),
            self.receive_overhead.as_ref(),
            Some(&self.gap),
            self.hold.as_ref(),
            self.end.as_ref(),
            self.send.as_ref(),
            self.net.as_ref(),
            self.receive.as_ref(),
        ]
    }

    /// `t_hold(m)` in nanoseconds, or `g(m)` where it was not measured.
    pub fn hold_ns(&self, bytes: u64) -> f64 {
        self.hold.as_ref().unwrap_or(&self.gap).at(bytes)
    }

    /// `L(m) + g(m)` in nanoseconds: one message from rank to rank on an idle network, never negative.
    pub fn hop_ns(&self, bytes: u64) -> f64 {
        (self.latency.at(bytes) + self.gap.at(bytes)).max(0.0)
    }

    /// `t_end(m)` in nanoseconds, or `L(m) + g(m)` where it was not measured.
    pub fn end_ns(&self, bytes: u64) -> f64 {
        self.end.as_ref().map_or_else(|| self.hop_ns(bytes), |end| end.at(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Point;
    use crate::topology::{Host, Link, Switch};

    #[test]
    fn classes_by_host_and_switch() {
        let mut topology = Topology::flat(["a", "b"].map(str::to_owned));
        topology.switches.push(Switch { name: "s1".into(), parent: Some(0), uplink: Link::default() });
        topology.hosts.push(Host { name: "c".into(), switch: 1, link: Link::default() });
        let class = |a, b| LinkClass::between(&topology, a, b);
        assert_eq!(class(1, 1), LinkClass::SameNode);
        assert_eq!(class(0, 1), LinkClass::SameSwitch);
        assert_eq!(class(2, 1), LinkClass::AcrossSwitches);
    }

    #[test]
    fn names_are_read_back() {
        for class in LinkClass::ALL {
            assert_eq!(class.to_string().parse(), Ok(class));
        }
        assert!("switch".parse::<LinkClass>().unwrap_err().to_string().contains("expected same-node"));
    }

    #[test]
    fn what_was_not_measured_follows_from_latency_and_gap() {
        let constant = |ns| Curve::new(vec![Point::exact(1, ns)]).unwrap();
        let mut class = ClassParameters::new(constant(-3.0), constant(10.0));
        assert_eq!((class.hold_ns(8), class.end_ns(8), class.hop_ns(8)), (10.0, 7.0, 7.0));
        (class.hold, class.end) = (Some(constant(9.0)), Some(constant(11.0)));
        assert_eq!((class.hold_ns(8), class.end_ns(8), class.hop_ns(8)), (9.0, 11.0, 7.0));
    }
}
