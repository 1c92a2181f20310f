//! Containers and clouds: networks that carry no multicast, whatever the host does.

use crate::doctor::finding::{Finding, Topic};
use crate::doctor::system::System;

/// Clouds by what their firmware says in /sys/class/dmi/id.
const CLOUDS: [(&str, &str, &str, &str); 8] = [
    (
        "sys_vendor",
        "Amazon EC2",
        "Amazon EC2",
        "a VPC carries none between instances, unless a transit gateway has a multicast domain",
    ),
    (
        "bios_version",
        "amazon",
        "Amazon EC2",
        "a VPC carries none between instances, unless a transit gateway has a multicast domain",
    ),
    ("product_name", "Google Compute Engine", "Google Compute Engine", "its VPC carries none"),
    // The asset tag of all Azure machines; Hyper-V on premises has others.
    (
        "chassis_asset_tag",
        "7783-7084-3265-9085-8269-3286-77",
        "Microsoft Azure",
        "its virtual networks carry none",
    ),
    ("chassis_asset_tag", "OracleCloud.com", "Oracle Cloud", "its virtual networks carry none"),
    ("sys_vendor", "DigitalOcean", "DigitalOcean", "its VPC carries none"),
    ("sys_vendor", "Hetzner", "Hetzner Cloud", "its networks carry none"),
    ("product_name", "Alibaba Cloud ECS", "Alibaba Cloud", "its VPC carries none"),
];

/// Looks for signs of a container and of a cloud.
pub fn check(system: &System) -> Vec<Finding> {
    let mut findings: Vec<Finding> = cloud(system).into_iter().chain(container(system)).collect();
    if findings.is_empty() {
        findings
            .push(Finding::ok(Topic::Surroundings, "no sign of a container or of a cloud without multicast"));
    }
    findings
}

fn cloud(system: &System) -> Option<Finding> {
    let says = |file: &str, words: &str| {
        let text = system.read(&format!("/sys/class/dmi/id/{file}")).unwrap_or_default();
        text.contains(words)
    };
    let (_, _, cloud, why) = CLOUDS.iter().find(|(file, words, ..)| says(file, words))?;
    let found = format!("this is {cloud}, and for multicast: {why}");
    let remedy = "nothing needs to be done: polycast serves broadcasts with trees here";
    Some(Finding::warning(Topic::Surroundings, found, remedy))
}

fn container(system: &System) -> Option<Finding> {
    let kind = if system.exists("/var/run/secrets/kubernetes.io") {
        "a Kubernetes pod, and most pod networks carry no multicast"
    } else if system.exists("/.dockerenv") {
        "a Docker container, whose bridge reaches containers of this machine only"
    } else if system.exists("/run/.containerenv") {
        "a Podman container, whose bridge reaches containers of this machine only"
    } else {
        return None;
    };
    let remedy = "if other hosts are to be reached, use the host's network (docker and podman: --network host; pods: hostNetwork: true); \
                  no capability is needed";
    Some(Finding::note(Topic::Surroundings, format!("this is {kind}")).with_remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::checks::fake;
    use crate::doctor::finding::Level;

    #[test]
    fn clouds_and_containers_are_recognised() {
        for (files, level, word) in [
            (&[("sys/class/dmi/id/sys_vendor", "Amazon EC2\n")][..], Level::Warning, "transit gateway"),
            (&[("sys/class/dmi/id/bios_version", "4.11.amazon")], Level::Warning, "EC2"),
            (
                &[("sys/class/dmi/id/chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77")],
                Level::Warning,
                "Azure",
            ),
            (&[(".dockerenv", "")], Level::Note, "Docker"),
            (&[("sys/class/dmi/id/sys_vendor", "Dell Inc.")], Level::Ok, "no sign"),
        ] {
            let (_root, system) = fake::system(files);
            let finding = &check(&system)[0];
            assert!(finding.level == level && finding.found.contains(word), "{finding:?}");
        }
    }
}
