//! The same command again, and a source that is read again.

use super::*;

/// What is named on the command line is followed, also when it is read from the disk a second time: who comes late needs what is no longer in memory.
#[test]
fn a_link_that_is_followed_is_read_again_for_late_nodes() {
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("file"), contents(40 << 20)).unwrap();
    symlink("file", site.at("link")).unwrap();
    site.start_through("n1", "sh -c 'sleep 2; exec \"$@\"' sh");
    let (code, said) = site.report(&["-F", "2", "-t", "60", "--hosts", "n0,n1", "link", "out/%h/"]);
    assert_eq!(code, Some(0), "{said:#}");
    ["n0", "n1"].iter().for_each(|host| assert_same(&site.at("file"), &site.out(host).join("link")));
}

/// To write on in a file that nobody may write takes its mode away, for that time.
#[test]
fn files_keep_their_modes_when_a_copy_goes_on() {
    if !nix::unistd::geteuid().is_root() {
        return cannot_run("capabilities are for root");
    }
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("first"), contents(600 << 10)).unwrap();
    fs::set_permissions(site.at("first"), fs::Permissions::from_mode(0o555)).unwrap();
    fs::write(site.at("second"), contents(400 << 10)).unwrap();
    let second = hold(&site.at("second"));
    let mut child =
        site.start(&["-t", "600", "-s", "4KiB", "--hosts", "n[0-1]", "first", "second", "out/%h/"]);
    wait_for(&mut child, || site.journal("n0").is_some());
    kill(site.process("n0"), Signal::SIGKILL).unwrap();
    drop(second);
    report(child.wait_with_output().unwrap());
    site.start_through("n0", "setpriv --bounding-set=-dac_override --inh-caps=-dac_override");
    let (code, said) = site.report(&["-s", "4KiB", "--hosts", "n0", "first", "second", "out/%h/"]);
    assert_eq!(code, Some(0), "{said:#}");
    assert!(node(&said, "n0")["resumed_bytes"].as_u64().unwrap() > 0, "{said:#}");
    let mode = |host: &str| fs::metadata(site.out(host).join("first")).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("n0"), mode("n1")), (0o555, 0o555));
}

/// Where a folder is there on some nodes, the files would go into it there, and become it elsewhere.
#[test]
fn a_folder_on_some_nodes_only_is_no_destination() {
    let site = Site::new(&["n0", "n1"]);
    fs::create_dir(site.at("tree")).unwrap();
    fs::write(site.at("tree/first"), contents(1000)).unwrap();
    let last = site.at("tree/last");
    fs::write(&last, contents(400 << 10)).unwrap();
    fs::create_dir(site.out("n0").join("new")).unwrap();
    // So that neither node is through before the other one is there.
    let held = hold(&last);
    let output = site.run(&["-r", "--hosts", "n0,n1", "tree", "out/%h/new"]);
    drop(held);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("DEST is a folder on n0 and not on n1"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert!(!site.out("n0").join("new/tree").exists() && !site.out("n1").join("new").exists());
    // Nobody would ask for what has another name with a slash.
    assert_eq!((site.leftovers("n0/new"), site.leftovers("n1")), (0, 0));
    let (code, said) = site.report(&["-r", "--hosts", "n0,n1", "tree", "out/%h/new/"]);
    assert_eq!(code, Some(0), "{said:#}");
    ["n0", "n1"].iter().for_each(|host| assert_same(&site.at("tree"), &site.out(host).join("new/tree")));
}

/// It stands in memory until all of it is there.
#[test]
fn a_list_of_files_may_be_longer_than_what_is_kept_in_memory() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let source = site.at("source");
    fs::create_dir(&source).unwrap();
    let target = "t".repeat(4_000);
    for link in 0..4_400 {
        symlink(&target, source.join(link.to_string())).unwrap();
    }
    fs::write(source.join("file"), contents(1_000)).unwrap();
    for (words, to) in [(&["-F", "1"][..], "chain"), (&[][..], "any")] {
        let to = format!("out/%h/{to}");
        let (code, said) = site.report(&[&["-r", "--hosts", "n[0-2]", "source", &to], words].concat());
        assert_eq!(code, Some(0), "{said:#}");
    }
    for to in ["n0/chain", "n2/chain", "n1/any"] {
        assert_same(&source, &site.out(to));
    }
}

/// Whoever started it is gone, and the same command is not to be told that it is under way.
#[test]
fn a_node_that_reads_what_was_left_ends_with_its_coordinator() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let (mut child, second) = halfway(&site);
    wait_for(&mut child, || site.journal("n0").is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    drop(second);
    // To be read for ever.
    let left = site.journal("n0").unwrap().with_file_name("tree").join("first");
    fs::rename(&left, site.at("kept")).unwrap();
    nix::unistd::mkfifo(&left, nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::remove_file(site.at("pids/n0")).unwrap();
    let words = ["-s", "4KiB", "--hosts", "n0", "first", "second", "out/%h/"];
    let mut child = site.start(&words);
    site.process("n0");
    thread::sleep(Duration::from_millis(500));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::rename(site.at("kept"), &left).unwrap();
    wait_until("the copy goes on", || site.report(&words).0 == Some(0));
    assert_both_same(&site, "n0");
}

#[test]
fn a_percent_sign_where_one_stands_is_no_pattern() {
    let site = Site::new(&["n0"]);
    let here = site.at("50% off");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("file"), contents(1000)).unwrap();
    let output = site.command(&["--hosts", "n0", "file", "../out/%h/"]).current_dir(&here).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_same(&here.join("file"), &site.out("n0").join("file"));
}
