//! Linux bridges of this host: virtual switches of containers and virtual machines snoop like any other.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

/// Looks at every bridge, and says which of them the interface is behind.
pub fn check(system: &System, interface: &str) -> Vec<Finding> {
    let is_bridge = |name: &String| system.exists(&format!("/sys/class/net/{name}/bridge"));
    let ours = system.link(&format!("/sys/class/net/{interface}/master"));
    let concerns = |bridge: &str| bridge == interface || ours.as_deref() == Some(bridge);
    let bridges = system.names("/sys/class/net").into_iter().filter(is_bridge);
    bridges.filter(|bridge| concerns(bridge)).map(|bridge| describe(system, &bridge)).collect()
}

fn describe(system: &System, bridge: &str) -> Finding {
    let setting = |name: &str| system.number(&format!("/sys/class/net/{bridge}/bridge/{name}"));
    match (setting("multicast_snooping"), setting("multicast_querier")) {
        (Some(0), _) => {
            Finding::ok(Topic::Snooping, format!("bridge {bridge} sends multicast to all of its ports"))
        }
        (Some(_), Some(0)) => {
            let found = format!(
                "bridge {bridge} snoops and asks nobody: if a switch beyond it stops asking as well, it forgets the members of \
                 groups after 260 s"
            );
            let remedy = format!("echo 1 > /sys/class/net/{bridge}/bridge/multicast_querier");
            Finding::note(Topic::Snooping, found).with_remedy(remedy)
        }
        (Some(_), _) => Finding::ok(Topic::Snooping, format!("bridge {bridge} snoops and asks for members")),
        (None, _) => Finding::note(
            Topic::Snooping,
            format!(
                "bridge {bridge}: the kernel does not say whether it snoops (CONFIG_BRIDGE_IGMP_SNOOPING)"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    #[test]
    fn a_bridge_that_snoops_without_a_querier_is_told() {
        for (snooping, querier, level) in
            [("1", "1", Level::Ok), ("1", "0", Level::Note), ("0", "0", Level::Ok)]
        {
            let (root, system) = fake::system(&[
                ("sys/class/net/br0/bridge/multicast_snooping", snooping),
                ("sys/class/net/br0/bridge/multicast_querier", querier),
                ("sys/class/net/docker0/bridge/multicast_snooping", "1"),
                ("sys/class/net/docker0/bridge/multicast_querier", "0"),
                ("sys/class/net/e0/mtu", "1500"),
            ]);
            std::os::unix::fs::symlink("../br0", root.path().join("sys/class/net/e0/master")).unwrap();
            let levels = |name| -> Vec<Level> { check(&system, name).iter().map(|f| f.level).collect() };
            assert_eq!(levels("e0"), [level], "{snooping} {querier}");
            assert_eq!(levels("br0"), [level]);
            assert_eq!(levels("e1"), []);
        }
    }
}
