//! Who says nothing is gone around, and who was not listened to is not.

use super::*;

#[test]
fn a_stopped_node_delays_nobody_and_catches_up() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let (mut child, second) = halfway(&site);
    wait_for(&mut child, || site.journal("n1").is_some());
    let stopped = site.process("n1");
    kill(stopped, Signal::SIGSTOP).unwrap();
    drop(second);
    wait_for(&mut child, || has_both(&site, "n0") && has_both(&site, "n2"));
    assert!(!site.out("n1").join("second").exists());
    kill(stopped, Signal::SIGCONT).unwrap();
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{said:#}");
    assert_eq!(node(&said, "n1")["set_aside"], "silent");
    for host in ["n0", "n1", "n2"] {
        assert_same(&site.at("first"), &site.out(host).join("first"));
        assert_same(&site.at("second"), &site.out(host).join("second"));
    }
}

/// The one that all tell how far they are gets no turn for a while; their words wait for it.
#[test]
fn who_did_not_listen_takes_nobody_for_silent() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let (mut child, second) = halfway(&site);
    wait_for(&mut child, || ["n0", "n1", "n2"].iter().all(|node| site.journal(node).is_some()));
    let coordinator = Pid::from_raw(child.id() as i32);
    kill(coordinator, Signal::SIGSTOP).unwrap();
    // Longer than nodes may be silent.
    thread::sleep(Duration::from_secs(1));
    kill(coordinator, Signal::SIGCONT).unwrap();
    drop(second);
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{said:#}");
    for host in ["n0", "n1", "n2"] {
        assert!(node(&said, host)["set_aside"].is_null(), "{said:#}");
    }
}

/// Nor for late: while it had no turn, nobody could tell it that he was ready.
#[test]
fn who_did_not_listen_takes_nobody_for_late() {
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("file"), contents(100_000)).unwrap();
    let gate = site.at("gate").display().to_string();
    site.start_through("n1", &format!("sh -c 'until [ -e {gate} ]; do sleep 0.05; done; exec \"$@\"' sh"));
    let mut child = site.start(&["-t", "600", "--hosts", "n[0-1]", "file", "out/%h/"]);
    wait_for(&mut child, || site.leftovers("n0") == 1);
    let coordinator = Pid::from_raw(child.id() as i32);
    // It has heard that n0 is ready, and stands still for longer than the others wait for who is late.
    thread::sleep(Duration::from_millis(300));
    kill(coordinator, Signal::SIGSTOP).unwrap();
    thread::sleep(Duration::from_millis(3_300));
    fs::write(&gate, "").unwrap();
    kill(coordinator, Signal::SIGCONT).unwrap();
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(0), "{said:#}");
    assert!(node(&said, "n1")["set_aside"].is_null(), "{said:#}");
}

/// What a node's agent has started outlives it, and holds its standard error open: as the connection that ssh shares may do.
#[test]
fn last_words_that_do_not_come_delay_nobody() {
    let site = Site::new(&["n0", "n1", "n2"]);
    let noted = site.at("pids/n1").display().to_string();
    site.start_through("n1", &format!("sh -c 'sleep 5 > /dev/null & echo $$ > {noted}; exec \"$@\"' sh"));
    let (mut child, second) = halfway(&site);
    wait_for(&mut child, || ["n0", "n2"].iter().all(|node| site.journal(node).is_some()));
    kill(site.process("n1"), Signal::SIGKILL).unwrap();
    // Time to notice that.
    thread::sleep(Duration::from_millis(500));
    drop(second);
    let (code, said) = report(child.wait_with_output().unwrap());
    assert_eq!(code, Some(1), "{said:#}");
    assert!(node(&said, "n1")["reason"].as_str().unwrap().contains("signal: 9"), "{said:#}");
    for host in ["n0", "n2"] {
        assert!(node(&said, host)["set_aside"].is_null(), "{said:#}");
    }
}

/// The tool has gone to it, and that is the last of it.
#[test]
fn who_takes_the_tool_and_never_speaks_is_given_up() {
    let site = Site::new(&["n0", "n1"]);
    fs::write(site.at("file"), contents(100_000)).unwrap();
    let script = "#!/bin/sh\n[ $1 = n0 ] || exec cat 3>&1 > /dev/null\nshift\nexec sh -c \"$*\"\n";
    fs::write(site.at("launcher"), script).unwrap();
    let (code, said) = site.report(&["-t", "3", "--bootstrap", "--hosts", "n[0-1]", "file", "out/%h/"]);
    assert_eq!(code, Some(1), "{said:#}");
    assert_eq!(node(&said, "n1")["reason"], "nothing was heard of it for 3 s");
    assert_same(&site.at("file"), &site.out("n0").join("file"));
}

/// Its agent hangs, as a login does whose home folder is away.
#[test]
fn who_never_gets_ready_is_given_up() {
    let site = Site::new(&["n0", "n1", "n2"]);
    fs::write(site.at("file"), contents(100_000)).unwrap();
    site.start_through("n1", "sleep 600 #");
    let (code, said) = site.report(&["-t", "3", "--hosts", "n[0-2]", "file", "out/%h/"]);
    assert_eq!(code, Some(1), "{said:#}");
    assert_eq!(node(&said, "n1")["reason"], "nothing was heard of it for 3 s");
    for host in ["n0", "n2"] {
        assert_same(&site.at("file"), &site.out(host).join("file"));
    }
}
