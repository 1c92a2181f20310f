//! A finding of the doctor: what is said about one thing.

use serde::{Deserialize, Serialize};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// All is well.
    Ok,
    /// Worth knowing; polycast does not mind.
    Note,
    /// Multicast works, but slower or not for long.
    Warning,
    /// Multicast would not be used.
    Problem,
}

/// The subject of a finding, in the order in which findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// POLYCAST_ variables.
    Settings,
    /// Whether the host could be examined at all.
    Reach,
    /// Containers and clouds.
    Surroundings,
    /// The network interface.
    Interface,
    /// InfiniBand and RoCE.
    Verbs,
    /// Largest datagram.
    Mtu,
    /// The interface that other programs' multicast leaves by.
    Route,
    /// Strict reverse-path filtering.
    ReversePath,
    /// Packet filters.
    Firewall,
    /// Socket buffers.
    Buffers,
    /// Segmentation and coalescing by the kernel.
    Offload,
    /// Linux bridges that snoop.
    Snooping,
    /// The querier: whoever asks hosts on the network for the groups that they are members of.
    Querier,
    /// The socket of the probe.
    Socket,
    /// Datagrams between hosts.
    Probe,
    /// The rates at which hosts send to each other.
    Rate,
}

impl Topic {
    /// The topic's name as it is shown to people; the same words as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Topic::Settings => "settings",
            Topic::Reach => "reach",
            Topic::Surroundings => "surroundings",
            Topic::Interface => "interface",
            Topic::Verbs => "verbs",
            Topic::Mtu => "mtu",
            Topic::Route => "route",
            Topic::ReversePath => "reverse-path",
            Topic::Firewall => "firewall",
            Topic::Buffers => "buffers",
            Topic::Offload => "offload",
            Topic::Snooping => "snooping",
            Topic::Querier => "querier",
            Topic::Socket => "socket",
            Topic::Probe => "probe",
            Topic::Rate => "rate",
        }
    }
}

/// A fact that was found, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject.
    pub topic: Topic,
    /// The severity.
    pub level: Level,
    /// The fact, in a sentence. Hosts with equal sentences are shown together, so the sentence
    /// names no host.
    pub found: String,
    /// A command, or whom to ask for what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding that asks for nothing to be done.
    pub fn ok(topic: Topic, found: impl Into<String>) -> Finding {
        Finding { topic, level: Level::Ok, found: found.into(), remedy: None }
    }

    /// A finding that is worth knowing.
    pub fn note(topic: Topic, found: impl Into<String>) -> Finding {
        Finding { level: Level::Note, ..Finding::ok(topic, found) }
    }

    /// A finding about something that works, but not well or not for long.
    pub fn warning(topic: Topic, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, remedy: Some(remedy.into()), ..Finding::ok(topic, found) }
    }

    /// A finding that keeps multicast from being used.
    pub fn problem(topic: Topic, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Problem, ..Finding::warning(topic, found, remedy) }
    }

    /// A problem in the words of an error that ends with its remedy, after a semicolon, as errors of polycast do.
    pub fn of_error(topic: Topic, error: &impl ToString) -> Finding {
        let text = error.to_string();
        match text.rsplit_once("; ") {
            Some((found, remedy)) => Finding::problem(topic, found, remedy),
            None => Finding { level: Level::Problem, ..Finding::ok(topic, text) },
        }
    }

    /// Adds to the finding what to do about it.
    pub fn with_remedy(self, remedy: impl Into<String>) -> Finding {
        Finding { remedy: Some(remedy.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_json() {
        for topic in [Topic::Settings, Topic::ReversePath, Topic::Mtu, Topic::Probe, Topic::Rate] {
            assert_eq!(serde_json::to_value(topic).unwrap(), topic.name());
        }
    }

    #[test]
    fn the_end_of_an_error_is_its_remedy() {
        let finding = Finding::of_error(Topic::Socket, &"cannot join: no; such; take another");
        assert_eq!(
            (finding.found.as_str(), finding.remedy.as_deref()),
            ("cannot join: no; such", Some("take another"))
        );
        assert_eq!(
            Finding::of_error(Topic::Socket, &"no"),
            Finding { level: Level::Problem, ..Finding::ok(Topic::Socket, "no") }
        );
    }

    #[test]
    fn levels_are_ordered_by_badness() {
        assert!(Level::Ok < Level::Note && Level::Note < Level::Warning && Level::Warning < Level::Problem);
    }
}
