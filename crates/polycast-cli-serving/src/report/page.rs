//! One page without anything from outside: tables in HTML, and numbers that its script draws.

use polycast_core::units::Bytes;
use serde_json::Value;

use super::html::{Cell, bar, escaped, key, section, table};
use super::load::Traced;
use super::results::Charts;
use super::summary::{Group, Summary};
use super::timeline;
use crate::terminal::{nanoseconds, size as written};

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// The footer, which says where to read on. The page has nothing from outside, and no address but
/// these.
const FOOTER: &str = "<footer>Made by <code>polycast report</code>. What is recorded, and how to read this page: docs/trace.md of polycast, \
    <code>man polycast-report</code>; of a job's report: docs/report.md; of measurements: docs/benchmarking.md.</footer>";

/// The ranks that are named among those which came last.
const MAX_LAST: usize = 16;

/// The page of a job's traces, of results, or of both.
pub fn page(job: Option<(&Traced, &Summary)>, charts: &[Charts]) -> String {
    let mut body = String::new();
    let mut title = "polycast".to_owned();
    let mut data = Value::Null;
    if let Some((traced, summary)) = job {
        title = format!("{} on {} ranks", summary.program, summary.ranks);
        body += &heading(summary);
        body += &of_job(summary);
        data = timeline::data(traced);
    } else {
        body += "<header><h1>Measurements</h1></header>";
    }
    for of_file in charts {
        let drawings =
            of_file.drawings.iter().map(|svg| format!("<figure>{svg}</figure>")).collect::<String>();
        let content = drawings + &of_file.table;
        body += &section(&of_file.id, &of_file.title, &of_file.how, &content);
    }
    body += FOOTER;
    // `</script>` within the data would end it, and behind `<!--` and `<script` nothing would.
    let data = data.to_string().replace('<', "\\u003c");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\
         <title>{}</title>\n<style>\n{STYLE}</style></head>\n<body>\n<main>{body}</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body></html>\n",
        escaped(&title)
    )
}

fn heading(summary: &Summary) -> String {
    let Summary { program, command, ranks, traced_ranks, hosts, seconds, clock_error_us, calls, .. } =
        summary;
    let inside: f64 = summary.groups.iter().map(|group| group.rank_seconds).sum();
    let share = inside / (seconds * *traced_ranks as f64).max(f64::MIN_POSITIVE) * 100.0;
    let facts = [
        (ranks.to_string(), "ranks"),
        (hosts.to_string(), "hosts"),
        (nanoseconds(seconds * 1e9), "from the first beginning to the last end"),
        (calls.to_string(), "collective calls"),
        (format!("{share:.1} %"), "of the ranks' time within them"),
        (nanoseconds(clock_error_us * 1e3), "error of the common clock, at most"),
    ];
    let facts: String =
        facts.iter().map(|(value, what)| format!("<div><b>{}</b>{what}</div>", escaped(value))).collect();
    let notes: String = summary.notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<ul class=\"notes\">{notes}</ul>") };
    let command =
        if command.is_empty() { String::new() } else { format!("<code>{}</code>", escaped(command)) };
    format!(
        "<header><h1>{} <small>polycast report</small></h1><button id=\"theme\" type=\"button\">dark / light</button></header>\
         <p class=\"of\">{}{command}</p><div class=\"facts\">{facts}</div>{notes}\n",
        escaped(program),
        about(summary),
    )
}

/// Writes what the job ran with, and when.
fn about(summary: &Summary) -> String {
    let version = format!("polycast {}", summary.polycast);
    let mut said = vec![version, summary.mpi.clone()];
    said.extend(summary.began.as_deref().map(|began| began.replace('T', " ").replace('Z', " UTC")));
    said.extend(summary.networks.iter().cloned());
    said.iter()
        .filter(|text| !text.is_empty())
        .map(|text| format!("<span>{}</span>", escaped(text)))
        .collect()
}

fn of_job(summary: &Summary) -> String {
    let mut body = section(
        "calls",
        "Time by collective, size and choice",
        "Each row is for calls of a class of sizes, each twice the one before. Time is that of all ranks together within the calls; the bar is \
         its share. Click a heading to sort.",
        &(key(&[
            ("wait", "waited in polycast"),
            ("work", "the rest"),
            ("unknown", "in the MPI, where nobody sees who waits"),
        ]) + &of_groups(&summary.served)),
    );
    body += &section(
        "timeline",
        "Timeline",
        "A row for each rank, a bar for each call; darker: the rank waited. White dots mark roots, black ones who came last. Wheel or + and - zoom, drag or arrows \
         move, a click tells of a call; so do the keys n and p (the rank's next call, the one before) and r (the same call on the next rank). 0 shows all.",
        "<div class=\"tools\"><button type=\"button\" id=\"in\" aria-label=\"zoom in\">+</button>\
         <button type=\"button\" id=\"out\" aria-label=\"zoom out\">−</button>\
         <button type=\"button\" id=\"all\">all</button><span id=\"legend\"></span></div>\
         <canvas id=\"lanes\" tabindex=\"0\" role=\"application\" aria-label=\"timeline of all ranks: n, p and r tell of a call\"></canvas>\
         <pre id=\"told\" aria-live=\"polite\"></pre>",
    );
    body += &section(
        "phases",
        "Three phases of calls with a root",
        "Startup: from the first call to the root's. Intermediate: from the root's call to the last one. Final: from the last call to the last return, \
         which is what an algorithm can be faster in. Medians over calls of which all ranks are known.",
        &(key(&[("startup", "startup"), ("intermediate", "intermediate"), ("final", "final")])
            + &of_phases(&summary.served)),
    );
    body += &section("last", "Who is last", &how_last(summary), &of_last(summary));
    body += &section(
        "skew",
        "Skew in against skew out",
        "A point for each call: how far apart ranks came (across) and left (up). Below the diagonal a call brings ranks together, above it drives them apart.",
        &format!(
            "<div id=\"skews\" class=\"key\"></div><canvas id=\"scatter\" role=\"img\" aria-label=\"skews of all calls; the table has the medians\"></canvas>{}",
            of_skews(&summary.served)
        ),
    );
    body += &section(
        "losses",
        "Losses and repairs",
        "What the leaders of nodes saw of multicast: datagrams that went and came, fragments that were sent again or restored from the parity.",
        &of_losses(&summary.served),
    );
    body += &section(
        "choices",
        "The choice explained",
        "Who served which calls, and the reason that decided. The command polycast explain tells more of a rule.",
        &of_choices(summary),
    );
    body + &section(
        "trials",
        "What trials measured, and what was gained",
        "The first calls of each size try what polycast chooses and the MPI by turns. Saved is an estimate: the difference of the medians, times the calls that the \
         faster one then served.",
        &of_trials(summary),
    )
}

fn size(first_bytes: u64) -> String {
    match first_bytes {
        0 => "0".to_owned(),
        first => format!("{}..{}", Bytes(first), Bytes(first.saturating_mul(2))),
    }
}

fn time(us: f64) -> String {
    nanoseconds(us * 1e3)
}

fn time_or_dash(us: Option<f64>) -> String {
    us.map_or("–".to_owned(), time)
}

/// Texts as they stand in cells.
fn texts<const N: usize>(texts: [String; N]) -> Vec<Cell> {
    texts.map(Cell::from).into()
}

fn nothing(rows: Vec<Vec<Cell>>, header: &[&str], left: usize, otherwise: &str) -> String {
    if rows.is_empty() { format!("<p>{}</p>", escaped(otherwise)) } else { table(header, rows, left) }
}

fn of_groups(groups: &[Group]) -> String {
    let all: f64 = groups.iter().map(|group| group.rank_seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut sorted: Vec<&Group> = groups.iter().collect();
    sorted.sort_by(|a, b| b.rank_seconds.total_cmp(&a.rank_seconds));
    let row = |group: &&Group| {
        let waited = group.waited_seconds.map(|waited| waited.min(group.rank_seconds));
        let parts = match waited {
            Some(waited) => vec![
                ("wait", waited / all, format!("{} waiting", nanoseconds(waited * 1e9))),
                ("work", (group.rank_seconds - waited) / all, "the rest".to_owned()),
            ],
            None => vec![("unknown", group.rank_seconds / all, "in the MPI".to_owned())],
        };
        let mut cells = texts([
            group.collective.to_owned(),
            size(group.first_bytes),
            group.choice.clone(),
            group.calls.to_string(),
            written(group.bytes),
            nanoseconds(group.rank_seconds * 1e9),
        ]);
        cells.push(bar(&parts));
        cells.push(time_or_dash(waited.map(|seconds| seconds * 1e6)).into());
        cells.extend([group.median_us, group.p90_us, group.longest_us].map(|us| Cell::from(time(us))));
        cells
    };
    let rows = sorted.iter().map(row).collect();
    let header = [
        "collective",
        "size",
        "served by",
        "calls",
        "bytes",
        "time",
        "share",
        "waited",
        "median",
        "90 %",
        "longest",
    ];
    nothing(rows, &header, 3, "No call was recorded.")
}

fn of_phases(groups: &[Group]) -> String {
    let rows = groups
        .iter()
        .filter_map(|group| {
            let (startup, intermediate) = (group.startup_us?, group.intermediate_us?);
            let last = group.final_us?;
            let all = (startup + intermediate + last).max(f64::MIN_POSITIVE);
            let part = |class: &'static str, us: f64| (class, us / all, format!("{class} {}", time(us)));
            let parts = [part("startup", startup), part("intermediate", intermediate), part("final", last)];
            let mut cells = texts([
                group.collective.to_owned(),
                size(group.first_bytes),
                group.choice.clone(),
                group.whole_calls.to_string(),
                time(startup),
                time(intermediate),
                time(last),
            ]);
            cells.push(bar(&parts));
            Some(cells)
        })
        .collect();
    let header =
        ["collective", "size", "served by", "calls", "startup", "intermediate", "final", "their parts"];
    nothing(rows, &header, 3, "There was no call with a root of which all ranks are known.")
}

fn how_last(summary: &Summary) -> String {
    let rooted = match summary.rooted_calls {
        0 => String::new(),
        calls => format!(
            "The root was the last to call in {} of {calls} calls ({:.0} %). ",
            summary.root_was_last,
            summary.root_was_last as f64 * 100.0 / calls as f64
        ),
    };
    rooted + "Calls whose ranks came together as far as the clock tells are left out."
}

fn of_last(summary: &Summary) -> String {
    let all: u64 = summary.last.iter().map(|last| last.calls).sum();
    let row = |last: &super::summary::Last| {
        let share = last.calls as f64 / all.max(1) as f64;
        let mut cells = texts([format!("rank {}", last.rank), last.host.clone(), last.calls.to_string()]);
        cells.push(bar(&[("work", share, format!("{:.0} %", share * 100.0))]));
        cells.push(time(last.median_us).into());
        cells
    };
    let rows = summary.last.iter().take(MAX_LAST).map(row).collect();
    let more = summary.last.len().saturating_sub(MAX_LAST);
    let more =
        if more > 0 { format!("<p>… and {more} more ranks, less often.</p>") } else { String::new() };
    let header = ["rank", "host", "was last", "share", "behind the first (median)"];
    nothing(rows, &header, 2, "Nobody was last by more than clocks are wrong.") + &more
}

fn of_skews(groups: &[Group]) -> String {
    let row = |group: &Group| {
        let (skew_in, skew_out) = (group.skew_in_us?, group.skew_out_us?);
        let ratio = if skew_in > 0.0 { format!("{:.2}", skew_out / skew_in) } else { "–".to_owned() };
        let (collective, choice) = (group.collective.to_owned(), group.choice.clone());
        Some(texts([collective, size(group.first_bytes), choice, time(skew_in), time(skew_out), ratio]))
    };
    let rows = groups.iter().filter_map(row).collect();
    nothing(
        rows,
        &["collective", "size", "served by", "skew in", "skew out", "out / in"],
        3,
        "No whole call is known.",
    )
}

fn of_losses(groups: &[Group]) -> String {
    let such = groups.iter().filter(|group| group.datagrams.received.max(group.datagrams.sent) > 0);
    let row = |group: &Group| {
        let seen = &group.datagrams;
        let counts = [seen.sent, seen.received, seen.useful, seen.repaired, seen.restored, seen.requests];
        let names = [
            group.collective.to_owned(),
            size(group.first_bytes),
            group.choice.clone(),
            group.calls.to_string(),
        ];
        names.into_iter().chain(counts.iter().map(u64::to_string)).map(Cell::from).collect()
    };
    let rows = such.map(row).collect();
    let header = [
        "collective",
        "size",
        "served by",
        "calls",
        "sent",
        "received",
        "useful",
        "repaired",
        "restored",
        "requests",
    ];
    nothing(rows, &header, 3, "Nothing went by multicast.")
}

fn of_choices(summary: &Summary) -> String {
    let of_group = |group: &Group| {
        let (collective, choice, reason) =
            (group.collective.to_owned(), group.choice.clone(), group.reason.clone());
        texts([
            collective,
            size(group.first_bytes),
            choice,
            reason,
            group.calls.to_string(),
            time_or_dash(group.final_us),
        ])
    };
    let mut rows: Vec<Vec<Cell>> = summary.groups.iter().map(of_group).collect();
    rows.extend(summary.uncounted.iter().map(|of| {
        let calls = format!("{} (of all ranks)", of.calls);
        let bytes = written(of.bytes);
        texts(["", &bytes, of.kind, &of.name, &calls, "–"].map(str::to_owned))
    }));
    let header = ["collective", "size", "served by", "because", "calls", "after the last call (median)"];
    nothing(rows, &header, 4, "No call was recorded.")
}

fn of_trials(summary: &Summary) -> String {
    let row = |gain: &super::gains::Gain| {
        let times =
            gain.compared.iter().map(|time| format!("{} {}", time.choice, nanoseconds(time.seconds * 1e9)));
        texts([
            gain.collective.clone(),
            size(gain.first_bytes),
            format!("{} ranks", gain.ranks),
            times.collect::<Vec<_>>().join(", "),
            gain.stays.clone() + if gain.is_remembered { " (of an earlier job)" } else { "" },
            gain.times_as_fast.map_or("–".to_owned(), |times| format!("{times:.2} ×")),
            gain.calls.to_string(),
            gain.saved_seconds.map_or("–".to_owned(), |seconds| match seconds > 0.0 {
                true => nanoseconds(seconds * 1e9),
                false => "0".to_owned(),
            }),
        ])
    };
    let rows = summary.trials.iter().map(row).collect();
    let header = [
        "collective",
        "size",
        "communicator",
        "compared",
        "stays",
        "as fast as the MPI",
        "calls",
        "saved per rank",
    ];
    nothing(rows, &header, 5, "No trial was over before the job was.")
}
