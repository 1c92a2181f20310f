//! One file per check. What a check needs of the system it reads through [`System`], so that a folder can stand for it.

pub mod buffers;
pub mod firewall;
pub mod interface;
pub mod mtu;
pub mod offload;
pub mod querier;
pub mod reverse_path;
pub mod route;
pub mod settings;
pub mod snooping;
pub mod surroundings;
pub mod verbs;

use polycast_net::{Family, Interface};

use super::finding::Finding;
use super::system::System;

/// Everything that a host can tell about its chosen interface without a socket.
pub fn of_host(system: &System, interface: &Interface, family: Family) -> Vec<Finding> {
    [
        route::check(system, &interface.name, family),
        reverse_path::check(system, &interface.name, family),
        firewall::check(system, &interface.name, family),
        snooping::check(system, &interface.name),
    ]
    .concat()
}

/// A folder that looks like a system to a [`System`].
#[cfg(test)]
pub mod fake {
    use super::System;

    /// Files by their paths.
    pub fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let system = System::below(root.path());
        (root, system)
    }
}
