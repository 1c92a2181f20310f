//! Nodes that have DEST in common: it is written once, for all of them.

use super::*;

/// Of each host, the one that wrote for it.
fn in_common_with<'a>(report: &'a Value, hosts: &[&str]) -> Vec<Option<&'a str>> {
    hosts.iter().map(|host| node(report, host)["in_common_with"].as_str()).collect()
}

/// One of them has written, and the others say that it was that one.
fn assert_one_wrote(report: &Value, hosts: &[&str]) {
    let said = in_common_with(report, hosts);
    let writers: Vec<&str> =
        hosts.iter().zip(&said).filter(|(_, of)| of.is_none()).map(|(host, _)| *host).collect();
    assert_eq!(writers.len(), 1, "{report:#}");
    assert!(said.iter().flatten().all(|of| *of == writers[0]), "{report:#}");
    assert!(hosts.iter().all(|host| node(report, host)["has_all"] == true), "{report:#}");
}

#[test]
fn one_folder_that_all_nodes_share_is_written_once() {
    let site = Site::new(&["n0"]);
    fs::write(site.at("file"), contents(300_000)).unwrap();
    let tree = site.at("tree");
    fs::create_dir_all(tree.join("below")).unwrap();
    fs::write(tree.join("below/run"), lines(1_000)).unwrap();
    fs::set_permissions(tree.join("below/run"), fs::Permissions::from_mode(0o750)).unwrap();
    let hosts = ["n1", "n2", "n3"];
    for (words, from, to) in [
        (&["file", "out/name"][..], "file", "name"),
        (&["file", "out/"], "file", "file"),
        (&["-C", "-f", "file", "out"], "file", "file"),
        (&["-F", "2", "-r", "-p", "tree", "out/new"], "tree", "new"),
        (&["-r", "-p", "tree", "out/"], "tree", "tree"),
        (&["-r", "-f", "tree", "file", "out/"], "tree", "tree"),
    ] {
        let (code, said) = site.report(&[&["--hosts", "n[1-3]"], words].concat());
        assert_eq!(code, Some(0), "{words:?}: {said:#}");
        assert_same(&site.at(from), &site.out(to));
        assert_one_wrote(&said, &hosts);
        assert_eq!(site.leftovers(""), 0, "{words:?}");
    }
    let mode = |at: &Path| fs::metadata(at.join("below/run")).unwrap().mode();
    assert_eq!(mode(&site.out("new")), mode(&tree));
    let output = site.run(&["-f", "--hosts", "n[1-3]", "file", "out/name"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("on 3 of 3 nodes"), "{text}");
    assert!(text.ends_with("\nn1, n2, n3 have DEST in common (same file system): copied once\n"), "{text}");
    // What is refused is refused for all, and nobody has it.
    let (code, said) = site.report(&["--hosts", "n[1-3]", "file", "out/name"]);
    assert_eq!(code, Some(1), "{said:#}");
    assert!(hosts.iter().all(|host| node(&said, host)["has_all"] == false), "{said:#}");
    let reasons: Vec<&str> = hosts.iter().map(|host| node(&said, host)["reason"].as_str().unwrap()).collect();
    assert!(reasons.iter().any(|reason| reason.ends_with("exists; -f replaces it")), "{reasons:?}");
    assert_eq!(site.leftovers(""), 0);
}

/// Two file systems, each mounted on two of four nodes; a fifth node has its own.
#[test]
fn nodes_that_share_in_groups_write_once_in_each() {
    let site = Site::new(&["a", "b", "n4"]);
    fs::write(site.at("file"), contents(200_000)).unwrap();
    for (host, group) in [("n0", "a"), ("n1", "b"), ("n2", "a"), ("n3", "b")] {
        symlink(group, site.out(host)).unwrap();
    }
    for (words, to) in [(&["file", "out/%h/"][..], "file"), (&["file", "out/%h/name"], "name")] {
        let (code, said) = site.report(&[&["--hosts", "n[0-4]"], words].concat());
        assert_eq!(code, Some(0), "{said:#}");
        assert_one_wrote(&said, &["n0", "n2"]);
        assert_one_wrote(&said, &["n1", "n3"]);
        assert_eq!(in_common_with(&said, &["n4"]), [None]);
        for folder in ["a", "b", "n4"] {
            assert_same(&site.at("file"), &site.out(folder).join(to));
            assert_eq!(site.leftovers(folder), 0);
        }
    }
    let output = site.run(&["-f", "--hosts", "n[0-4]", "file", "out/%h/"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for names in ["n0, n2", "n1, n3"] {
        assert!(text.contains(&format!("\n{names} have DEST in common")), "{text}");
    }
    // In one folder, but by names of their own.
    let (code, said) = site.report(&["--hosts", "n[0-4]", "file", "out/a/%h.file"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert_eq!(in_common_with(&said, &["n0", "n1", "n2", "n3", "n4"]), [None; 5]);
    assert!(["n0", "n4"].iter().all(|host| site.out("a").join(format!("{host}.file")).exists()));
}

/// Whoever comes when the others have it finds it there.
#[test]
fn who_comes_late_to_a_shared_folder_has_what_is_there() {
    let site = Site::new(&["n0"]);
    fs::write(site.at("file"), contents(300_000)).unwrap();
    site.start_through("n2", "sh -c 'while ! test -e out/name; do sleep 0.1; done; exec \"$@\"' sh");
    let (code, said) = site.report(&["-t", "600", "--hosts", "n[0-2]", "file", "out/name"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert_one_wrote(&said, &["n0", "n1", "n2"]);
    assert!(in_common_with(&said, &["n2"])[0].is_some());
    assert_eq!(site.leftovers(""), 0);
}

/// The one that writes dies: the others have not got it either, and the same command goes on.
#[test]
fn a_shared_copy_goes_on_after_its_writer_was_killed() {
    let site = Site::new(&["n0"]);
    fs::write(site.at("first"), contents(600 << 10)).unwrap();
    fs::write(site.at("second"), contents(400 << 10)).unwrap();
    let second = hold(&site.at("second"));
    let words = ["-s", "4KiB", "--hosts", "n[0-1]", "first", "second", "out/"];
    let mut child = site.start(&[&["-t", "600"], &words[..]].concat());
    wait_for(&mut child, || site.journal("").is_some());
    let folder = site.journal("").unwrap().parent().unwrap().to_owned();
    let mark = || {
        fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("node-"))
    };
    let number: usize = fs::read_to_string(mark().unwrap().path()).unwrap().trim().parse().unwrap();
    let (writer, other) = if number == 1 { ("n0", "n1") } else { ("n1", "n0") };
    kill(site.process(writer), Signal::SIGKILL).unwrap();
    drop(second);
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{said:#}");
    let reason = node(&said, other)["reason"].as_str().unwrap();
    assert!(reason.contains(writer) && reason.contains("DEST in common"), "{said:#}");
    assert_eq!(site.leftovers(""), 1);
    let (code, said) = site.report(&words);
    assert_eq!(code, Some(0), "{said:#}");
    assert_one_wrote(&said, &["n0", "n1"]);
    let resumed = |host| node(&said, host)["resumed_bytes"].as_u64().unwrap();
    assert!(resumed("n0").max(resumed("n1")) > 0, "{said:#}");
    ["first", "second"].iter().for_each(|name| assert_same(&site.at(name), &site.out(name)));
    assert_eq!(site.leftovers(""), 0, "also the mark of the first run");
}
