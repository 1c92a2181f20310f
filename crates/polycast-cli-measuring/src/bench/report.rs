//! Takes results to the places where they are wanted, as soon as they are complete.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::chart;
use super::environment::Environment;
use super::point::Point;
use super::view::View;
use crate::draft::{Draft, is_reader_gone, of_standard_output};
use crate::terminal::hanging;

/// The outputs of a measurement.
pub struct Report {
    view: Option<Box<dyn View>>,
    json: Option<Json>,
    raw: Option<BufWriter<Draft>>,
    progress: ProgressBar,
    has_begun: bool,
    /// True if a point had wrong data.
    pub wrong: bool,
    /// The points that were reported.
    pub points: Vec<Point>,
    /// The conditions of the measurement, for pictures.
    pub notes: Vec<String>,
}

/// The file of JSON lines, whose name stands in its errors.
struct Json {
    file: PathBuf,
    draft: Draft,
}

impl Json {
    fn of(file: &Path) -> Result<Json, String> {
        Ok(Json { file: file.to_owned(), draft: draft(file)? })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let written = self.draft.write_all(text.as_bytes());
        written.map_err(|error| self.named(error))
    }

    fn put(&mut self) -> io::Result<()> {
        let put = self.draft.put();
        put.map_err(|error| self.named(error))
    }

    fn named(&self, error: io::Error) -> io::Error {
        match is_reader_gone(&error) {
            true => error,
            false => io::Error::new(error.kind(), format!("cannot write {}: {error}", self.file.display())),
        }
    }
}

impl Report {
    /// Shows results by `view`; writes JSON lines and all samples to files where they are given, each of which takes the place
    /// of an older one when it has something to say. `-` as the JSON file is standard output, which then has nothing else.
    /// `steps`: sizes times launches.
    pub fn new(
        view: Box<dyn View>,
        json: Option<&Path>,
        raw: Option<&Path>,
        steps: usize,
    ) -> Result<Report, String> {
        let to_stdout = json == Some(Path::new("-"));
        let json = json.map(Json::of).transpose()?;
        let of_samples = |path: &Path| {
            draft(path)
                .map_err(|problem| format!("{problem}; all samples are kept there, --raw names another file"))
        };
        let raw = raw.map(of_samples).transpose()?.map(BufWriter::new);
        // Hidden by itself where standard error is no terminal.
        let progress = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} {wide_msg} [{bar:24}] {pos}/{len}  {elapsed}");
        progress.set_style(style.map_err(|error| error.to_string())?.progress_chars("━╸ "));
        Ok(Report {
            view: Some(view).filter(|_| !to_stdout),
            json,
            raw,
            progress,
            has_begun: false,
            wrong: false,
            points: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Begins the output of an operation, before its first size.
    pub fn begin(&mut self, environment: &Environment) -> io::Result<()> {
        if let Some(json) = self.json.as_mut().filter(|_| !self.has_begun) {
            json.write(&format!("{}\n", json!({ "environment": environment })))?;
        }
        if !self.has_begun {
            self.notes = chart::notes(&json!(environment));
        }
        self.has_begun = true;
        self.show(|view, out| view.begin(environment, out))
    }

    /// A size is complete.
    pub fn size(&mut self, points: &[Point]) -> io::Result<()> {
        self.wrong |= points.iter().any(|point| point.wrong > 0);
        self.points.extend_from_slice(points);
        if let Some(json) = &mut self.json {
            let lines = points.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            json.write(&(lines.join("\n") + "\n"))?;
            json.put()?;
        }
        self.show(|view, out| view.size(points, out))
    }

    /// Ends the output of an operation; with `is_last`, of the whole measurement.
    pub fn end(&mut self, is_last: bool) -> io::Result<()> {
        if is_last {
            self.progress.finish_and_clear();
        }
        self.show(|view, out| view.end(out))?;
        self.flush_raw()
    }

    /// Prints sentences on all points together, for people.
    pub fn sentences(&mut self, sentences: &[String]) -> io::Result<()> {
        let lines: Vec<String> = sentences.iter().map(|sentence| hanging("", "  ", sentence)).collect();
        self.show(|_, out| {
            writeln!(out)?;
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))
        })
    }

    /// A line of the measuring program, for the file of all samples.
    pub fn raw(&mut self, line: &str) -> io::Result<()> {
        let Some(raw) = &mut self.raw else { return Ok(()) };
        raw.get_mut().put()?;
        writeln!(raw, "{line}")
    }

    /// Brings all samples to the file.
    pub fn flush_raw(&mut self) -> io::Result<()> {
        self.raw.as_mut().map_or(Ok(()), Write::flush)
    }

    /// A line that somebody else in the job wrote.
    pub fn foreign(&self, line: &str) {
        self.progress.suspend(|| eprintln!("{line}"));
    }

    /// Shows the present activity beside the progress bar.
    pub fn doing(&self, what: String) {
        self.progress.set_message(what);
        self.progress.tick();
    }

    /// Advances the progress bar by one size of one launch.
    pub fn step(&self) {
        self.progress.inc(1);
    }

    fn show(&mut self, show: impl FnOnce(&mut dyn View, &mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let Some(view) = &mut self.view else { return Ok(()) };
        self.progress.suspend(|| {
            let mut out = io::stdout().lock();
            show(view.as_mut(), &mut out).and_then(|()| out.flush()).map_err(of_standard_output)
        })
    }
}

fn draft(path: &Path) -> Result<Draft, String> {
    let draft = if path == Path::new("-") { Draft::of_stdout() } else { Draft::of(path) };
    draft.map_err(|error| format!("cannot write {}: {error}", path.display()))
}
