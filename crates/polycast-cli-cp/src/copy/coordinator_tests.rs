use std::ffi::OsString;

use super::*;

fn outcome(source: Process, patience: Duration) -> String {
    let request = Request {
        sources: vec!["a".into()],
        recursive: false,
        force: false,
        preserve: false,
        into_folder: false,
        block_bytes: None,
        bits_per_second: None,
        fanout: None,
        patience,
        compress: false,
    };
    let target = Target {
        host: "n0".to_owned(),
        destination: OsString::from("b"),
        process: Process::new("cat"),
        tool: None,
    };
    let remedy = |_: &str, _: Option<i32>, _: &str| String::new();
    let interrupted = AtomicBool::new(false);
    match run(&request, source, vec![target], &[1], &remedy, &interrupted, |_| ()) {
        Ok(_) => panic!("there is no source"),
        Err(error) => error.to_string(),
    }
}

/// All others wait for its word.
#[test]
fn without_a_source_there_is_no_copy() {
    let minute = Duration::from_secs(60);
    let said = outcome(Process::new("/nowhere/polycast"), minute);
    assert!(said.starts_with("the source cannot be started: No such file"), "{said}");
    let mut other = Process::new("sh");
    other.args(["-c", r#"echo '{"hello":{"version":"0.0.0"}}'; exec cat"#]);
    let said = outcome(other, minute);
    assert!(said.starts_with("the source: its polycast is version 0.0.0"), "{said}");
    let said = outcome(Process::new("cat"), Duration::from_secs(1));
    assert_eq!(said, "nothing was heard of the source for 1 s");
}
