//! `polycast report` of traces and results that only look like those of jobs.

use std::fs;

use serde_json::Value;

use crate::fake::{World, error, output, traces};

fn world() -> World {
    let world = World::with_doors(&[]);
    traces::leave(&world.path().join("traces"), 4);
    world
}

fn json(world: &World) -> Value {
    serde_json::from_str(&output(&mut world.polycast(&["report", "traces", "--json"]))).unwrap()
}

#[test]
fn what_ranks_have_recorded_is_summed_up() {
    let summary = json(&world());
    assert_eq!((&summary["ranks"], &summary["hosts"], &summary["calls"]), (&4.into(), &2.into(), &6.into()));
    assert_eq!((&summary["clock_error_us"], &summary["notes"]), (&3.0.into(), &Value::Array(vec![])));
    let groups = summary["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 6, "{groups:#?}");
    let stock = &groups[0];
    assert_eq!((&stock["choice"], &stock["reason"]), (&"stock".into(), &"it is small".into()));
    let group = &groups[1];
    assert_eq!((&group["first_bytes"], &group["choice"]), (&2048.into(), &"multicast-pull".into()));
    // The ranks of both hosts are on one clock.
    let phases = ["startup_us", "intermediate_us", "final_us", "skew_in_us", "skew_out_us"];
    assert_eq!(phases.map(|key| group[key].as_f64().unwrap()), [0.0, 40.0, 103.0, 40.0, 3.0]);
    let datagrams = ["sent", "received", "useful", "repaired", "restored", "requests"];
    assert_eq!(datagrams.map(|key| group["datagrams"][key].as_u64().unwrap()), [9, 27, 24, 2, 1, 1]);
    assert_eq!((&summary["last"][0]["rank"], &summary["last"][0]["calls"]), (&1.into(), &6.into()));
    assert_eq!((&summary["rooted_calls"], &summary["root_was_last"]), (&6.into(), &0.into()));
    let trial = &summary["trials"][0];
    assert_eq!((trial["times_as_fast"].as_f64().unwrap().round(), &trial["calls"]), (3.0, &1.into()));
    assert_eq!(summary["uncounted"][0]["calls"], 4);
}

#[test]
fn what_is_wrong_with_a_file_is_a_note_with_its_name() {
    let world = world();
    let file = |rank: u32| world.path().join(format!("traces/rank-{rank:06}.trace"));
    let mut damaged = fs::read(file(1)).unwrap();
    damaged[1000] ^= 4;
    fs::write(file(1), damaged).unwrap();
    let whole = fs::read(file(3)).unwrap();
    fs::write(file(3), &whole[..whole.len() / 2]).unwrap();
    let notes = json(&world)["notes"].to_string();
    for said in ["rank-000001.trace: damaged", "rank-000003.trace: ", "it was cut off", "ranks 1, 3"] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let text = output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
    assert!(text.contains("2 traced") && text.contains("wrote page.html"), "{text}");
    for rank in [0, 2] {
        fs::remove_file(file(rank)).unwrap();
    }
    let failed = world.polycast(&["report", "traces"]).output().unwrap();
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("no trace that can be read"), "{said}");
    assert!(said.contains("rank-000001.trace: damaged"), "{said}");
}

/// It would wait for whoever writes into them.
#[test]
fn pipes_that_are_called_traces_are_not_opened() {
    let world = world();
    for name in ["rank-000009.trace", "report.json"] {
        let pipe = world.path().join("traces").join(name);
        let _ = fs::remove_file(&pipe);
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let summary = json(&world);
    assert_eq!(summary["traced_ranks"], 4);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("rank-000009.trace: it is no regular file"), "{notes}");
}

#[test]
fn numbers_that_no_clock_shows_do_no_harm() {
    let world = World::with_doors(&[]);
    traces::leave_absurd(&world.path().join("traces"));
    assert_eq!(json(&world)["groups"][0]["waited_seconds"].as_f64(), Some(u64::MAX as f64 / 1e9));
    output(&mut world.polycast(&["report", "traces", "-o", "page.html", "--perfetto", "events.json"]));
}

/// Every section is there, nothing is loaded, and what programs and hosts are called stays text.
#[test]
fn the_page_needs_nothing_from_outside() {
    let world = world();
    output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    for id in ["calls", "timeline", "phases", "last", "skew", "losses", "choices", "trials"] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
    }
    for text in ["a solver &amp; more on 4 ranks", "2KiB..4KiB", "it is large", "3.00 ×", "rank 1"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(
        !page.contains("http:") && !page.contains("https:") && !page.contains("src="),
        "it loads something"
    );
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert!(!data.contains('<'), "a browser would look for the end of it elsewhere");
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&data["bars"], &data["left_out"], &data["ranks"]), (&24.into(), &0.into(), &4.into()));
    assert_eq!(data["hosts"][3][1], "far</script>");
    // 24 numbers of 4 bytes each.
    assert_eq!(data["bar"]["rank"].as_str().unwrap().len(), 128);
    assert!(page.len() < 64 << 10, "{} bytes", page.len());
}

#[test]
fn trace_viewers_get_every_call() {
    let world = world();
    output(&mut world.polycast(&["report", "traces", "--perfetto", "events.json"]));
    let file = fs::read_to_string(world.path().join("events.json")).unwrap();
    let events: Value = serde_json::from_str(&file).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let of = |key: &str, value: &str| events.iter().filter(|event| event[key] == value).count();
    assert_eq!((of("name", "MPI_Bcast"), of("name", "waits"), of("name", "first datagram")), (24, 20, 20));
    assert_eq!((of("name", "process_name"), of("name", "thread_name")), (2, 4));
    let call = events.iter().find(|event| event["name"] == "MPI_Bcast" && event["tid"] == 1).unwrap();
    assert_eq!((call["ts"].as_f64(), call["dur"].as_f64()), (Some(1040.0), Some(101.0)));
    assert_eq!((&call["args"]["bytes"], &call["args"]["served by"]), (&1024.into(), &"stock".into()));
}

#[test]
fn arrivals_are_rows_of_delays() {
    let world = world();
    output(&mut world.polycast(&["report", "traces", "--arrivals", "a.txt"]));
    let text = fs::read_to_string(world.path().join("a.txt")).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(&lines[..3], ["polycast-arrivals 1", "ranks 4", "0 0 40000 0 0"]);
    assert_eq!(lines.len(), 2 + traces::CALLS as usize);
}

#[test]
fn times_on_clocks_that_were_not_compared_are_not_held_against_each_other() {
    let world = World::with_doors(&[]);
    traces::leave_uncompared(&world.path().join("traces"), 4);
    let summary = json(&world);
    assert!(summary["notes"][0].as_str().unwrap().contains("ranks 2, 3"), "{summary:#}");
    assert_eq!((&summary["last"], &summary["rooted_calls"]), (&Value::Array(vec![]), &0.into()));
    assert_eq!(
        (&summary["groups"][0]["whole_calls"], &summary["groups"][0]["skew_in_us"]),
        (&0.into(), &Value::Null)
    );
    assert!(summary["seconds"].as_f64().unwrap() < 0.1, "{summary:#}");
    let failed = world.polycast(&["report", "traces", "--arrivals", "a.txt"]).output().unwrap();
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && said.contains("clocks that were compared"), "{said}");
}

#[test]
fn a_dash_is_standard_output_and_nothing_else_goes_there() {
    let world = world();
    for (option, start) in [("-o", "<!DOCTYPE"), ("--perfetto", "{"), ("--arrivals", "polycast-arrivals")] {
        let text = output(&mut world.polycast(&["report", "traces", option, "-"]));
        assert!(text.starts_with(start) && !text.contains("wrote"), "{option}: {text}");
    }
    assert!(!world.path().join("-").exists());
    let failed = world.polycast(&["report", "traces", "-o", "-", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&failed.stderr).contains("one thing for standard output"));
}

#[test]
fn the_share_of_calls_is_that_of_the_ranks_whose_traces_are_there() {
    let share = |world: &World| {
        output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
        let page = fs::read_to_string(world.path().join("page.html")).unwrap();
        let (before, _) = page.split_once(" %</b>of the ranks' time").unwrap();
        before.rsplit_once('>').unwrap().1.parse::<f64>().unwrap()
    };
    let world = world();
    let all = share(&world);
    for rank in 1..4 {
        fs::remove_file(world.path().join(format!("traces/rank-{rank:06}.trace"))).unwrap();
    }
    assert!((share(&world) - all).abs() < 0.2, "{all} % and {} %", share(&world));
}

#[test]
fn a_size_that_was_given_twice_is_one_picture() {
    let world = World::with_doors(&[]);
    let one = |bytes: u32| {
        format!(
            r#"{{"algorithm":"chain","bytes":{bytes},"nodes":4,"mean_us":9.0,"interval_us":1.0,"percentile_99_us":12.0}}"#
        )
    };
    let file = format!(r#"{{"completions":[{},{},{}]}}"#, one(8192), one(65536), one(8192));
    fs::write(world.path().join("scaling.json"), file).unwrap();
    output(&mut world.polycast(&["report", "scaling.json", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    assert_eq!(page.matches("<figure>").count(), 2);
}

#[test]
fn results_become_pictures() {
    let world = World::with_doors(&[]);
    let point = |variant: &str, bytes: u32, us: f64| {
        format!(
            r#"{{"collective":"bcast","variant":"{variant}","bytes":{bytes},"ranks":4,"nodes":4,"median_us":{us},"ci_low_us":{us},"ci_high_us":{us}}}"#
        )
    };
    let lines = [
        r#"{"environment":{}}"#.to_owned(),
        point("stock", 1024, 90.0),
        point("polycast", 1024, 30.0),
        point("polycast", 4096, 50.0),
    ];
    fs::write(world.path().join("bench.json"), lines.join("\n")).unwrap();
    let scaling = world.polycast(&[
        "simulate",
        "--scaling",
        "--nodes",
        "4,8",
        "--broadcasts",
        "2",
        "--seed",
        "1",
        "--json",
    ]);
    let scaling = { scaling }.output().unwrap().stdout;
    fs::write(world.path().join("scaling.json"), scaling).unwrap();
    output(&mut world.polycast(&["report", "bench.json", "scaling.json", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    assert!(page.matches("<svg").count() >= 2, "{page}");
    for text in ["polycast bench: bench.json", "polycast simulate --scaling: scaling.json", "90.0 µs"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("<?xml"));
}

/// They have no sizes to draw anything over.
#[test]
fn of_barriers_alone_there_is_a_table() {
    let world = World::with_doors(&[]);
    let point = r#"{"collective":"barrier","variant":"stock","bytes":0,"ranks":4,"nodes":4,"median_us":9}"#;
    fs::write(world.path().join("bench.json"), format!("{{\"environment\":{{}}}}\n{point}")).unwrap();
    output(&mut world.polycast(&["report", "bench.json", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    assert!(page.contains("<td>barrier stock</td>") && !page.contains("<svg"), "{page}");
}

/// Whatever else there is to sum up.
#[test]
fn results_that_no_page_would_show_are_refused() {
    let world = world();
    let point = r#"{"collective":"barrier","variant":"stock","bytes":0,"ranks":4,"nodes":4,"median_us":9}"#;
    fs::write(world.path().join("bench.json"), format!("{{\"environment\":{{}}}}\n{point}")).unwrap();
    for more in [&["bench.json"][..], &["traces", "bench.json"], &["traces", "bench.json", "--json"]] {
        let said = error(&mut world.polycast(&[&["report"], more].concat()), 1);
        assert!(said.contains("expected -o FILE.html: of results there is only a page"), "{said}");
    }
}

/// As rank 0 of a job writes it, with what does not matter here left out.
pub fn job_report(program: &str, began: u64) -> String {
    format!(
        r#"{{"schema":"polycast-report","schema_version":1,"polycast":"0.2.0","summary":"served 90 of 100 broadcasts",
        "job":{{"program":"{program}","command":"./{program} -n 7","mpi":"Open MPI v4.1.4","began_unix_seconds":{began},"seconds":20.0,
            "ranks":64,"nodes":16}},
        "rank_0":{{"collectives":[{{"collective":"bcast","served":{{"calls":90,"bytes":9000,"seconds":2.0}},
            "left_to_mpi":{{"calls":10,"bytes":100,"seconds":1.0}},"algorithms":[{{"algorithm":"chain","calls":90,"bytes":9000,"seconds":2.0}}],
            "reasons":[{{"reason":"it is short (the rule in line 7)","calls":10,"bytes":100,"seconds":1.0}}],
            "sizes":[{{"first_bytes":64,"above_bytes":256,"by":"polycast","calls":90,"seconds":2.0}}]}}],
        "unserved":[{{"operation":"MPI_Ibcast","calls":3,"bytes":9}}],
        "trials":[{{"collective":"bcast","first_bytes":128,"ranks":64,"stays":"chain","times":[{{"choice":"chain","median_seconds":0.001}},
            {{"choice":"stock","median_seconds":0.003}}]}}]}}}}"#
    )
}

#[test]
fn the_report_of_a_job_is_shown() {
    let world = World::with_doors(&[]);
    fs::write(world.path().join("out.json"), job_report("solver", 1_700_000_000)).unwrap();
    let text = output(&mut world.polycast(&["report", "out.json"]));
    for said in [
        "solver: 2023-11-14 22:13 UTC, 64 ranks on 16 nodes, Open MPI v4.1.4, polycast 0.2.0, 20.0 s",
        "./solver -n 7",
        "served 90 of 100 broadcasts",
        "15.0 % of rank 0's time was in collectives; about 4.00 s less than by the MPI",
        "10 calls of bcast: it is short (the rule in line 7)",
        "3 calls of MPI_Ibcast: cannot be served",
    ] {
        assert!(text.replace('\n', " ").contains(said), "{said}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn several_reports_are_a_table_of_jobs() {
    let world = World::with_doors(&[]);
    for (file, program, began) in [("b.json", "later", 1_700_000_900), ("a.json", "first", 1_700_000_000)] {
        fs::write(world.path().join(file), job_report(program, began)).unwrap();
    }
    // Of before reports told of their jobs.
    let old = r#"{"schema":"polycast-report","schema_version":1,"summary":"x","rank_0":{"collectives":[]}}"#;
    fs::write(world.path().join("old.json"), old).unwrap();
    let text = output(&mut world.polycast(&["report", "b.json", "old.json", "a.json"]));
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
    assert!(at("first") < at("later") && text.contains("old.json"), "{text}");
    for said in ["64 × 16", "15%", "90/10", "4.00 s", "RANKS", "0/0"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json = output(&mut world.polycast(&["report", "b.json", "a.json", "--json"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["jobs"][0]["served"], &json["jobs"][0]["gained_seconds"]), (&90.into(), &4.0.into()));
}

#[test]
fn reports_that_cannot_be_shown_so_are_refused() {
    let world = world();
    fs::write(world.path().join("out.json"), job_report("solver", 1)).unwrap();
    let newer = job_report("solver", 1).replace(r#""schema_version":1"#, r#""schema_version":2"#);
    fs::write(world.path().join("newer.json"), newer).unwrap();
    let said = |arguments: &[&str]| error(&mut world.polycast(&[&["report"], arguments].concat()), 1);
    assert!(said(&["newer.json"]).contains("newer.json: a report of version 2, expected version 1"));
    assert!(said(&["out.json", "-o", "x.html"]).contains("of reports of jobs there is text"));
    assert!(said(&["out.json", "traces"]).contains("they are not shown together"));
}

/// What stands in every page, and what the MPI below does, which nobody sees.
#[test]
fn the_page_says_what_it_is_of_and_what_is_not_known() {
    let world = world();
    output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    for text in [
        "polycast 0.2.0",
        "Open MPI v4.1.4",
        "2023-11-14 22:13:20 UTC",
        "&#39;a solver&#39; --steps &lt;7&gt;",
        "4 nodes, 1gbit",
        "in the MPI, where nobody sees who waits",
        "<i class=\"intermediate\"></i>intermediate",
        "docs/trace.md",
        "@media print",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let summary = json(&world);
    assert_eq!(
        (&summary["groups"][0]["choice"], &summary["groups"][0]["waited_seconds"]),
        (&"stock".into(), &Value::Null)
    );
    let text = output(&mut world.polycast(&["report", "traces"]));
    let stock = text.lines().find(|line| line.contains("stock")).unwrap();
    assert!(!stock.contains("0 ns"), "{text}");
}

/// The colour of an algorithm on this page, and in a picture of measurements.
#[test]
fn an_algorithm_has_the_same_colour_everywhere() {
    let world = world();
    output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    assert!(page.contains(r##"["bcast","stock","#7f7f7f"]"##), "{page}");
    for (algorithms, picture) in [("binomial,chain", "a.svg"), ("chain", "b.svg")] {
        let of = ["simulate", "--collective", "bcast", "--nodes", "2,4", "--algorithms", algorithms];
        output(&mut world.polycast(&[&of[..], &["--svg", picture]].concat()));
    }
    let colour = |file: &str| {
        let svg = fs::read_to_string(world.path().join(file)).unwrap();
        let (before, _) = svg.split_once(">chain, ").or_else(|| svg.split_once("chain, 2:")).unwrap();
        before.rsplit_once("stroke=\"#").unwrap().1[..6].to_owned()
    };
    assert_eq!(colour("a.svg"), colour("b.svg"));
}

/// Results come from others.
#[test]
fn what_results_call_things_stays_text() {
    let world = World::with_doors(&[]);
    let point = r#"{"collective":"<img src=x onerror=alert(1)>","variant":"<b>","bytes":1024,"ranks":4,"nodes":4,"median_us":9}"#;
    fs::write(world.path().join("bench.json"), format!("{{\"environment\":{{}}}}\n{point}")).unwrap();
    output(&mut world.polycast(&["report", "bench.json", "-o", "page.html"]));
    let page = fs::read_to_string(world.path().join("page.html")).unwrap();
    assert!(page.contains("<td>&lt;img src=x onerror=alert(1)&gt; &lt;b&gt;</td>"), "{page}");
    assert!(!page.contains("<img") && !page.contains("<b>"));
}

#[test]
fn what_is_neither_is_said() {
    let world = world();
    fs::write(world.path().join("other.txt"), "hello").unwrap();
    fs::write(world.path().join("binary"), b"\x7fELF\xff\xfe").unwrap();
    fs::create_dir(world.path().join("empty")).unwrap();
    let said = |arguments: &[&str]| {
        let output = world.polycast(arguments).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["report", "other.txt", "-o", "x.html"]).contains("neither a folder of traces nor"));
    assert!(said(&["report", "binary", "-o", "x.html"]).contains("neither a folder of traces nor"));
    assert!(said(&["report", "empty"]).contains("no trace that can be read (looked at 0 files)"));
    assert!(said(&["report", "nowhere"]).contains("cannot read nowhere"));
    assert!(said(&["report", "other.txt", "--perfetto", "x"]).contains("neither"));
}
