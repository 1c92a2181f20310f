//! Multicast between nodes, repaired by a ring. It has no schedule: `polycast-protocol` is its state machine.

use polycast_protocol::{Form, Multicast};

use crate::algorithm::parameter::{value_of_wait, wait_of_value};
use crate::algorithm::{Algorithm, Domain, Entry, Parameter, Raced};

const SOURCE: &str = "Siebert 2006; Hoefler et al. 2007";

const SYNC: Parameter = Parameter {
    name: "sync",
    about: "whom the root waits for: nobody, one receiver (another one each time), one where that has spared losses before, or so long",
    domain: Domain::Wait,
    default: "adaptive",
    typical: 2,
    ..PARITY
};
const PARITY: Parameter =
    Parameter::switch("parity", "one more datagram, from which each node restores any one that it misses");

/// The number of nodes from which on the shipped table has parity, by simulations.
const PARITY_FROM_NODES: u32 = 32;

pub(super) static ENTRIES: [Entry; 2] = [
    Entry::multicast(
        "multicast-push",
        "by IP multicast from node to node; each node forwards everything to the next one, in case that was lost. For short messages",
        SOURCE,
        Form::Push,
    )
    .with(&[SYNC, PARITY])
    .raced(&[Raced { parameters: PARITY.name, least_nodes: PARITY_FROM_NODES }]),
    Entry::multicast(
        "multicast-pull",
        "by IP multicast from node to node; each node asks the one before for what was lost. For longer ones",
        SOURCE,
        Form::Pull,
    )
    .with(&[SYNC, PARITY]),
];

impl Algorithm {
    /// Returns the multicast that the algorithm is, if it is one.
    pub fn multicast(&self) -> Option<Multicast> {
        let form = self.entry.multicast_form()?;
        let sync = wait_of_value(self.given(SYNC.name).unwrap_or(0));
        Some(Multicast { form, sync, parity: self.given(PARITY.name).is_some() })
    }
}

impl From<Multicast> for Algorithm {
    fn from(Multicast { form, sync, parity }: Multicast) -> Algorithm {
        let entry = match form {
            Form::Push => &ENTRIES[0],
            Form::Pull => &ENTRIES[1],
        };
        Algorithm::new(entry, [value_of_wait(sync), parity.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Nanos;
    use polycast_protocol::RootSync;

    #[test]
    fn it_is_written_as_it_is() {
        let delay = RootSync::Delay(Nanos::from_micros(50));
        for (text, form, sync, parity) in [
            ("multicast-push", Form::Push, RootSync::Adaptive, false),
            ("multicast-pull:sync=none", Form::Pull, RootSync::None, false),
            ("multicast-pull:sync=50us,parity", Form::Pull, delay, true),
            ("multicast-push:sync=random", Form::Push, RootSync::Random, false),
            ("multicast-push:parity", Form::Push, RootSync::Adaptive, true),
        ] {
            let multicast = Multicast { form, sync, parity };
            let algorithm = text.parse::<Algorithm>().unwrap();
            assert_eq!((algorithm.multicast(), algorithm), (Some(multicast), multicast.into()));
            assert_eq!(algorithm.to_string(), text);
        }
        let longest = "multicast-pull:sync=adaptive,parity=no".parse::<Algorithm>().unwrap();
        assert_eq!(longest.to_string(), "multicast-pull", "defaults are not written");
    }

    #[test]
    fn errors_say_what_was_expected() {
        let error = |text: &str| text.parse::<Algorithm>().unwrap_err().to_string();
        assert!(error("multicast").contains("multicast-push, multicast-pull"));
        assert!(error("multicast-pull:sync=late").contains("none, random, adaptive or a delay such as 50us"));
        assert!(error("multicast-pull:segment=8KiB").contains("expected sync or parity"));
    }
}
