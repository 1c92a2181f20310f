//! What `bench`, `tune` and `simulate` wrote, as charts with their intervals.

use serde_json::Value;

use super::html::{Cell, table};
use crate::chart;
use crate::plot::{self, Axis, Chart, Curve, PlotError};
use crate::point::Point;
use crate::scaling;
use crate::suite::Measured;
use crate::terminal::nanoseconds;
use crate::tune::Record;
use polycast_core::units::Bytes;

/// The charts and the table of a results file.
pub struct Charts {
    /// The name of the section in the page.
    pub id: String,
    /// The file's name, and the subject of its results.
    pub title: String,
    /// The instructions for reading the charts.
    pub how: String,
    /// The charts as SVG documents.
    pub drawings: Vec<String>,
    /// The table in HTML.
    pub table: String,
}

const WITH_INTERVALS: &str = "Medians, with their 95 % intervals as bars; both axes are logarithmic.";

/// Reads a file; `name` is its name, `number` tells files apart.
pub fn charts(text: &str, name: &str, number: usize) -> Result<Charts, String> {
    let unknown = || {
        format!(
            "{name}: neither a folder of traces nor a job's report nor what bench, tune or simulate write as JSON"
        )
    };
    let (drawings, rows, header, what): (Vec<String>, Vec<Vec<String>>, &[&str], &str) =
        if let Ok(whole) = serde_json::from_str::<Value>(text) {
            match (whole["completions"].as_array(), whole.get("environment")) {
                (Some(completions), _) => of_scaling(completions, name)?,
                (None, Some(_)) => return Err(format!("{name}: nothing has been measured yet")),
                (None, None) => of_lines(text, name)?.ok_or_else(unknown)?,
            }
        } else {
            of_lines(text, name)?.ok_or_else(unknown)?
        };
    Ok(Charts {
        id: format!("file{number}"),
        title: format!("{what}: {name}"),
        how: WITH_INTERVALS.to_owned(),
        drawings: drawings.into_iter().map(embedded).collect(),
        table: table(
            header,
            rows.into_iter().map(|row| row.into_iter().map(Cell::from).collect()).collect(),
            2,
        ),
    })
}

/// Fits an SVG document into HTML, where it has no declaration and scales by its view box.
fn embedded(svg: String) -> String {
    svg.find("<svg").map_or(String::new(), |at| svg[at..].to_owned())
}

type Parts = (Vec<String>, Vec<Vec<String>>, &'static [&'static str], &'static str);

/// Lines of JSON: of bench, its suites, or tune.
fn of_lines(text: &str, name: &str) -> Result<Option<Parts>, String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let Some(first) = lines.first().and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
        return Ok(None);
    };
    if first.get("environment").is_some() {
        let read = |(at, line): (usize, &&str)| {
            serde_json::from_str(line)
                .map_err(|error| format!("{name}:{}: expected a measurement: {error}", at + 1))
        };
        let notes = chart::notes(&first["environment"]);
        let points: Vec<Point> = lines.iter().enumerate().skip(1).map(read).collect::<Result<_, String>>()?;
        return of_points(&points, name, notes)
            .map(|(drawing, rows)| Some((drawing, rows, POINT_HEADER, "polycast bench")));
    }
    if first.get("cell").is_some() {
        let measured = lines.iter().filter_map(|line| serde_json::from_str::<Measured>(line).ok());
        let (mut drawings, mut rows) = (Vec::new(), Vec::new());
        for job in measured.filter(|job| !job.points.is_empty()) {
            let (drawing, of_job) = of_points(&job.points, name, Vec::new())?;
            drawings.extend(drawing);
            rows.extend(of_job);
        }
        return Ok(Some((drawings, rows, POINT_HEADER, "polycast bench --suite")));
    }
    let records: Vec<Record> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    (!records.is_empty()).then(|| of_tune(&records)).transpose()
}

const POINT_HEADER: &[&str] =
    &["variant", "served by", "bytes", "median", "from", "to", "99 %", "times as fast as stock"];

fn of_points(
    points: &[Point],
    name: &str,
    notes: Vec<String>,
) -> Result<(Vec<String>, Vec<Vec<String>>), String> {
    let time = |us: Option<f64>| us.map_or("–".to_owned(), |us| nanoseconds(us * 1e3));
    let row = |point: &Point| {
        vec![
            format!("{} {}", point.collective, point.variant),
            point.algorithm.clone().unwrap_or_default(),
            Bytes(point.bytes).to_string(),
            point
                .mark()
                .map_or_else(|| time(point.median_us), |mark| format!("{} {mark}", time(point.median_us))),
            time(point.ci_low_us),
            time(point.ci_high_us),
            time(point.p99_us),
            point.speedup_vs_stock.map_or("–".to_owned(), |times| format!("{times:.2}")),
        ]
    };
    let drawing = unless_empty(chart::of_times(points, notes)).map_err(|error| format!("{name}: {error}"))?;
    Ok((drawing, points.iter().map(row).collect()))
}

/// Drops a drawing without points: barriers alone have no sizes, so they have only a table.
fn unless_empty(drawing: Result<String, PlotError>) -> Result<Vec<String>, PlotError> {
    match drawing {
        Err(PlotError::Empty { .. }) => Ok(Vec::new()),
        drawing => drawing.map(|drawing| vec![drawing]),
    }
}

fn of_tune(records: &[Record]) -> Result<Parts, String> {
    let mut chart = Chart::new(
        "What tune found",
        Axis::bytes("message"),
        Axis::nanoseconds("time (median, 95 % interval)"),
    );
    let of = records.first().map(|record| &record.key);
    chart.notes.extend(of.map(|key| format!("polycast {}, {}, {}", key.version, key.mpi, key.place)));
    let point = |bytes: u64, (median, low, high, _): (f64, f64, f64, usize)| {
        (bytes > 0 && low > 0.0)
            .then(|| plot::Point::new(bytes as f64, median * 1e3).between(low * 1e3, high * 1e3))
    };
    let mut collectives: Vec<&str> = records.iter().map(|record| &record.key.collective[..]).collect();
    collectives.sort_unstable();
    collectives.dedup();
    for collective in collectives {
        let mut own: Vec<&Record> =
            records.iter().filter(|record| record.key.collective == collective).collect();
        own.sort_by_key(|record| record.bytes);
        let best = own.iter().filter_map(|record| point(record.bytes, record.time?)).collect();
        let stock = own.iter().filter_map(|record| point(record.bytes, record.stock?)).collect();
        chart.curves.push(Curve::measured(format!("{collective}: best"), best).about("polycast"));
        chart.curves.push(Curve::measured(format!("{collective}: stock"), stock).about("stock"));
    }
    let time = |time: Option<(f64, f64, f64, usize)>| {
        time.map_or("–".to_owned(), |time| nanoseconds(time.0 * 1e3))
    };
    let row = |record: &Record| {
        vec![
            record.key.collective.clone(),
            record.best.clone(),
            Bytes(record.bytes).to_string(),
            time(record.time),
            time(record.stock),
        ]
    };
    let drawing = unless_empty(chart.to_svg()).map_err(|error| error.to_string())?;
    let header = &["collective", "best", "bytes", "median", "stock"];
    Ok((drawing, records.iter().map(row).collect(), header, "polycast tune"))
}

fn of_scaling(completions: &[Value], name: &str) -> Result<Parts, String> {
    let drawings = scaling::charts(completions, Vec::new())
        .map_err(|error| format!("{name}: {error}"))?
        .iter()
        .map(Chart::to_svg)
        .collect::<Result<Vec<String>, _>>()
        .map_err(|error| format!("{name}: {error}"))?;
    let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
    let row = |one: &Value| {
        ["algorithm", "bytes", "nodes", "mean_us", "interval_us", "percentile_99_us"]
            .map(|key| text(&one[key]))
            .to_vec()
    };
    let header = &["algorithm", "bytes", "nodes", "mean µs", "± µs", "99 % µs"];
    Ok((drawings, completions.iter().map(row).collect(), header, "polycast simulate --scaling"))
}
