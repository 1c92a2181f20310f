//! The identity of this build of polycast. Ranks choose alike, and speak the same messages, only if
//! they run the same one.

use std::sync::OnceLock;

use polycast_core::policy::SHIPPED_TEXT;
use polycast_core::protocol::wire;

use crate::abi::INTERFACE_VERSION;
use crate::digest::Digest;

/// Everything that makes a build another one.
struct Build<'a> {
    version: &'a str,
    /// Target of the build: predictions are made in floating point, which differs between machines.
    target: &'a str,
    interface: u64,
    /// Version of the multicast protocol's datagrams.
    protocol: u64,
    table: &'a str,
    /// Digest of the source files (`build.rs`).
    sources: &'a str,
}

const THIS: Build<'static> = Build {
    version: env!("CARGO_PKG_VERSION"),
    target: env!("POLYCAST_TARGET"),
    interface: INTERFACE_VERSION as u64,
    protocol: wire::VERSION as u64,
    table: SHIPPED_TEXT,
    sources: env!("POLYCAST_SOURCES"),
};

impl Build<'_> {
    /// The build's identity; never 0, which says that there is no library.
    fn identity(&self) -> u64 {
        let Build { version, target, interface, protocol, table, sources } = self;
        let begun = Digest::of("polycast build").bytes(version.as_bytes()).bytes(target.as_bytes());
        let begun = begun.number(*interface).number(*protocol);
        begun.bytes(table.as_bytes()).bytes(sources.as_bytes()).finish().max(1)
    }
}

/// Number that names this build: alike in all processes that run it, another one in those that run
/// another.
pub fn build_identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(|| THIS.identity())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_differs_makes_another_build() {
        let others = [
            Build { version: "0.1.1", ..THIS },
            Build { target: "riscv64", ..THIS },
            Build { interface: THIS.interface + 1, ..THIS },
            Build { protocol: THIS.protocol + 1, ..THIS },
            Build { table: "version = 1\n", ..THIS },
            Build { sources: "1", ..THIS },
        ];
        for other in others {
            assert_ne!(other.identity(), build_identity());
        }
        assert_ne!(THIS.sources, "0");
    }
}
