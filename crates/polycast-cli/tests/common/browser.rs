//! Pages in a real browser, without a window. A script that is put at a page's end says what it saw in an element called `seen`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The page gets this script.
pub fn put_at_the_end(page: &Path, script: &str) {
    let text = fs::read_to_string(page).unwrap();
    fs::write(page, text.replace("</body>", &format!("{script}</body>"))).unwrap();
}

/// What the page says of itself in a window of this width, and how long that took.
pub fn seen(page: &Path, width: u32) -> (String, Duration) {
    let began = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("timeout");
    command.args(["120", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path().display()));
    command.arg(format!("--window-size={width},1000")).arg("--virtual-time-budget=20000");
    let output = command.arg(format!("file://{}", page.display())).stdin(Stdio::null()).output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = dom.split("id=\"seen\">").nth(1).and_then(|rest| rest.split('<').next());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (said.map_or_else(|| format!("nothing: {errors}"), str::to_owned), began.elapsed())
}
