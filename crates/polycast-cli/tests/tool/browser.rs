//! The page of `polycast report` in a real browser. It is steered by a script that is put at the page's end, and says what it saw in the title.

use std::fs;

use crate::common::browser::{put_at_the_end, seen};
use crate::fake::{World, output, traces};

/// Clicks, keys and both looks; the answer is the text of a last element.
const VISIT: &str = r##"
<script>
const wrong = [];
window.addEventListener("error", (event) => wrong.push(event.message));
const want = (what, is) => { if (!is) wrong.push(what); };
const ink = (canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0, sum = 0;
  for (let i = 3; i < data.length; i += 4) { count += data[i] > 0; sum = (sum * 31 + data[i - 1] + data[i]) >>> 0; }
  return { count, sum };
};
// Frames come when the browser likes.
const until = (is, then, tries = 40) => setTimeout(() => (is() || tries === 0 ? then() : until(is, then, tries - 1)), 100);
const drawn = () => ink(document.getElementById("lanes")).count > 500;
until(drawn, () => {
  want("the script did not come to its end", document.documentElement.dataset.ready === "1");
  const lanes = document.getElementById("lanes"), scatter = document.getElementById("scatter"), told = document.getElementById("told");
  want("nothing is drawn", ink(lanes).count > 500 && ink(scatter).count > 200);
  want("the page is wider than the window", document.documentElement.scrollWidth <= innerWidth);
  const before = ink(lanes).sum;
  document.getElementById("in").click();
  const box = lanes.getBoundingClientRect();
  const zoomed = () => ink(lanes).sum !== before;
  until(zoomed, () => {
    want("zooming changes nothing", zoomed());
    document.getElementById("all").click();
    const at = (x) => ({ clientX: box.left + x, clientY: box.top + 24, pointerId: 1, bubbles: true });
    lanes.setPointerCapture = () => {};
    for (let x = 54; x < box.width && !told.textContent; x += 2) {
      lanes.dispatchEvent(new PointerEvent("pointerdown", at(x)));
      lanes.dispatchEvent(new PointerEvent("pointerup", at(x)));
    }
    want("a click tells nothing: " + told.textContent, /^bcast of .* by (stock|multicast-pull), call \d/.test(told.textContent));
    const table = document.querySelector("#calls table"), first = () => table.tBodies[0].rows[0].cells[1].textContent;
    table.tHead.rows[0].cells[1].click();
    const largest = first();
    table.tHead.rows[0].cells[1].click();
    want("headings do not sort", largest !== first());
    want("nobody hears how it is sorted", table.tHead.rows[0].cells[1].getAttribute("aria-sort") === "ascending");
    const calls = document.querySelector("#calls table"), shares = () => [...calls.tBodies[0].rows].map((row) => +row.cells[6].dataset.worth);
    calls.tHead.rows[0].cells[6].querySelector("button").click();
    want("bars do not sort by their lengths", shares().every((share, at, all) => at === 0 || share <= all[at - 1]));
    const paper = () => getComputedStyle(document.body).backgroundColor, look = paper();
    document.getElementById("theme").click();
    want("the look does not change", paper() !== look);
    lanes.dispatchEvent(new KeyboardEvent("keydown", { key: "+", bubbles: true }));
    const by = (key) => { lanes.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })); return told.textContent; };
    const rank = (text) => /^rank (\d+)/m.exec(text)[1], one = by("p");
    want("p and n do not go back and forth", by("n") !== one && by("p") === one);
    want("r does not go to the next rank", rank(by("r")) !== rank(one));
    lanes.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, clientX: box.left + 99, cancelable: true }));
    const end = document.createElement("p");
    end.id = "seen";
    end.textContent = wrong.length ? "WRONG " + wrong.join("; ") : "SEEN in " + Math.round(performance.now()) + " ms";
    document.body.append(end);
  });
});
</script>
"##;

fn page_of(ranks: u32, calls: u32) -> (World, std::path::PathBuf) {
    let world = World::with_doors(&[]);
    traces::leave_calls(&world.path().join("traces"), ranks, calls);
    output(&mut world.polycast(&["report", "traces", "-o", "page.html"]));
    let file = world.path().join("page.html");
    put_at_the_end(&file, VISIT);
    (world, file)
}

#[test]
#[ignore = "make test-all: it needs a browser"]
fn the_page_is_seen_and_can_be_used_at_all_widths() {
    let (_world, page) = page_of(4, traces::CALLS);
    for width in [320, 800, 1920] {
        let (said, _) = seen(&page, width);
        assert!(said.starts_with("SEEN"), "{width}: {said}");
    }
}

/// How long it takes is printed: no test depends on the clock of a busy machine.
#[test]
#[ignore = "make test-all: it needs a browser"]
fn a_thousand_ranks_can_be_opened() {
    let (_world, page) = page_of(1000, 300);
    let (said, took) = seen(&page, 1280);
    // What the browser itself takes.
    let empty = page.with_file_name("empty.html");
    fs::write(&empty, "<p id=\"seen\">SEEN</p>").unwrap();
    let (_, of_browser) = seen(&empty, 1280);
    println!("{said}; {took:?}, an empty page {of_browser:?}; {} bytes", fs::metadata(&page).unwrap().len());
    assert!(said.starts_with("SEEN"), "{said}");
}
