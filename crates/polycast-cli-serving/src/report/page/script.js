"use strict";
// Draws the timeline and the skews; sorts tables. Everything else is in the page already.
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;

// A column of little-endian numbers in base64.
function column(text, Numbers) {
  const bytes = atob(text), buffer = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) buffer[i] = bytes.charCodeAt(i);
  return new Numbers(buffer.buffer);
}
function time(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return (us / 1e6).toPrecision(4) + " s";
  if (size >= 1e3) return (us / 1e3).toPrecision(4) + " ms";
  return (size >= 1 || size === 0 ? +us.toPrecision(4) : us.toFixed(2)) + " µs";
}
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (count >= 1024 && unit < 3) { count /= 1024; unit++; }
  return +count.toPrecision(4) + " " + units[unit];
}
// Of an algorithm, the same on every page and picture.
const colour = (kind) => data.kinds[kind][2];
// Times of an axis: one unit for all of them, and no digit more than the distance between two asks for.
function axisTimes(values) {
  const most = Math.max(...values.map(Math.abs), 0), step = values.length > 1 ? values[1] - values[0] : most || 1;
  const [unit, scale] = most >= 1e6 ? ["s", 1e6] : most >= 1e3 ? ["ms", 1e3] : most >= 1 ? ["µs", 1] : ["ns", 1e-3];
  const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step / scale) + 1e-9)));
  return values.map((value) => (value / scale).toFixed(digits) + " " + unit);
}
// A power of ten: 1 µs, 100 ms.
function power(us) {
  const [unit, scale] = us >= 1e6 ? ["s", 1e6] : us >= 1e3 ? ["ms", 1e3] : us >= 1 ? ["µs", 1] : ["ns", 1e-3];
  return +(us / scale).toPrecision(1) + " " + unit;
}
// The colours of what was called, by whom it was served.
function key(place) {
  data.kinds.forEach(([name, choice], kind) => {
    const square = document.createElement("i"), entry = document.createElement("span");
    square.style.background = colour(kind);
    entry.append(square, `${name} by ${choice}`);
    place.append(entry, " ");
  });
}
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

// The canvas in its own pixels, cleared; coordinates are those of the page.
function open(canvas) {
  const scale = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  const width = Math.max(1, Math.round(box.width * scale)), height = Math.max(1, Math.round(box.height * scale));
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = "12px system-ui, sans-serif";
  return [pen, box.width, box.height];
}
// Round numbers, some eight in a range. Counted, for of times that no clock shows a step may add nothing.
function ticks(from, to) {
  const rough = (to - from) / 8, power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) || 10);
  const first = Math.ceil(from / step), found = [];
  for (let i = 0; i < 20 && (first + i) * step <= to; i++) found.push((first + i) * step);
  return found;
}

function timeline() {
  const canvas = document.getElementById("lanes"), told = document.getElementById("told");
  const bar = {
    call: column(data.bar.call, Uint32Array), rank: column(data.bar.rank, Uint32Array),
    start: column(data.bar.start, Float64Array), length: column(data.bar.length, Float32Array),
    flags: column(data.bar.flags, Uint8Array),
  };
  const call = { kind: column(data.call.kind, Uint16Array), bytes: column(data.call.bytes, Float64Array), number: column(data.call.number, Uint32Array) };
  const wait = { rank: column(data.wait.rank, Uint32Array), start: column(data.wait.start, Float64Array), length: column(data.wait.length, Float32Array) };
  canvas.style.height = Math.max(160, Math.min(window.innerHeight * 0.7, 40 + data.ranks * 34)) + "px";
  const hosts = new Map(data.hosts), ranks = Math.max(1, data.ranks), LEFT = 54, TOP = 20;
  const whole = () => {
    let from = Infinity, to = 0;
    for (let i = 0; i < bar.start.length; i++) {
      from = Math.min(from, bar.start[i]);
      to = Math.max(to, bar.start[i] + bar.length[i]);
    }
    return bar.start.length ? { from, to: Math.max(to, from + 1), top: 0, rows: ranks } : { from: 0, to: data.length_us || 1, top: 0, rows: ranks };
  };
  // What is told of: a bar, and its call; -1: nothing.
  const all = whole();
  let view = { ...all }, chosen = -1, picked = -1, asked = false;

  function draw() {
    asked = false;
    const [pen, width, height] = open(canvas);
    const perUs = (width - LEFT) / (view.to - view.from), row = (height - TOP) / view.rows;
    const x = (us) => LEFT + (us - view.from) * perUs, y = (rank) => TOP + (rank - view.top) * row;
    const thick = Math.max(1, row * 0.8);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, TOP, width - LEFT, height - TOP);
    pen.clip();
    // Bars of less than a pixel that lie on the last one of their row are not drawn again.
    const reached = new Float64Array(Math.min(ranks, 1 << 20)).fill(-1);
    const lane = (rank, start, length, fill, inset) => {
      if (rank >= reached.length || start > view.to || start + length < view.from || rank < view.top - 1 || rank > view.top + view.rows) return;
      const from = x(start), to = Math.max(from + 0.6, x(start + length));
      if (to - reached[rank] < 0.3 && to - from < 1) return;
      reached[rank] = to;
      pen.fillStyle = fill;
      pen.fillRect(from, y(rank) + thick * inset, to - from, thick * (1 - 2 * inset));
    };
    for (let i = 0; i < bar.start.length; i++) lane(bar.rank[i], bar.start[i], bar.length[i], colour(call.kind[bar.call[i]]), 0);
    reached.fill(-1);
    for (let i = 0; i < wait.start.length; i++) lane(wait.rank[i], wait.start[i], wait.length[i], "rgba(0,0,0,.45)", 0.22);
    if (row >= 6) {
      for (let i = 0; i < bar.start.length; i++) {
        if (!(bar.flags[i] & 3) || bar.start[i] < view.from || bar.start[i] > view.to || bar.length[i] * perUs < 4) continue;
        pen.fillStyle = bar.flags[i] & 2 ? "#000" : "#fff";
        pen.beginPath();
        pen.arc(x(bar.start[i]) + 3, y(bar.rank[i]) + thick / 2, bar.flags[i] & 2 ? 2.6 : 1.8, 0, 7);
        pen.fill();
        if (bar.flags[i] & 1 && bar.flags[i] & 2) { pen.fillStyle = "#fff"; pen.fillRect(x(bar.start[i]) + 2, y(bar.rank[i]) + thick / 2 - 1, 2, 2); }
      }
    }
    if (picked >= 0) {
      pen.strokeStyle = style("--ink");
      for (const at of moments(picked).lines) { pen.beginPath(); pen.moveTo(x(at), TOP); pen.lineTo(x(at), height); pen.stroke(); }
    }
    pen.restore();
    pen.fillStyle = style("--faint");
    const times = ticks(view.from, view.to), said = axisTimes(times), room = Math.max(0, ...said.map((text) => pen.measureText(text).width)) + 8;
    // Where numbers would lie on each other, every so manieth.
    const apart = times.length > 1 ? Math.ceil(room / ((times[1] - times[0]) * perUs)) : 1;
    times.forEach((at, place) => {
      const fits = x(at) + pen.measureText(said[place]).width <= width - 2;
      if (place % apart === 0 && fits) pen.fillText(said[place], x(at), 13);
    });
    const every = Math.max(1, Math.ceil(14 / row));
    for (let rank = Math.ceil(Math.max(0, view.top) / every) * every; rank < Math.min(ranks, view.top + view.rows); rank += every) {
      pen.fillText(rank, 4, y(rank) + Math.min(row, 14) * 0.8);
    }
  }
  const redraw = () => { if (!asked) { asked = true; requestAnimationFrame(draw); } };

  // First call, root's call, last call and last return of a call.
  function moments(of) {
    let first = Infinity, last = -Infinity, end = -Infinity, ofRoot = NaN, who = 0;
    for (let i = 0; i < bar.call.length; i++) {
      if (bar.call[i] !== of) continue;
      first = Math.min(first, bar.start[i]);
      if (bar.start[i] > last) { last = bar.start[i]; who = bar.rank[i]; }
      end = Math.max(end, bar.start[i] + bar.length[i]);
      if (bar.flags[i] & 1) ofRoot = bar.start[i];
    }
    return { first, last, end, ofRoot, who, lines: [first, ofRoot, last, end].filter((at) => !isNaN(at)) };
  }
  function tell(i) {
    chosen = i;
    picked = i < 0 ? -1 : bar.call[i];
    if (i < 0) { told.textContent = ""; return; }
    const [name, choice] = data.kinds[call.kind[picked]], at = moments(picked);
    const phases = isNaN(at.ofRoot) ? "" : `startup ${time(at.ofRoot - at.first)}, intermediate ${time(at.last - at.ofRoot)}, `;
    told.textContent = `${name} of ${bytes(call.bytes[picked])} by ${choice}, call ${call.number[picked]} of its communicator\n` +
      `rank ${bar.rank[i]} on ${hosts.get(bar.rank[i]) || "?"}: called at ${time(bar.start[i])}, took ${time(bar.length[i])}${bar.flags[i] & 4 ? ", failed or never returned" : ""}\n` +
      `first call at ${time(at.first)}, ${phases}final ${time(at.end - at.last)}; last: rank ${at.who}`;
  }
  // The bar for which `distance` is the least of those above 0.
  function nearest(distance) {
    let best = -1, least = Infinity;
    for (let i = 0; i < bar.start.length; i++) {
      const far = distance(i);
      if (far > 0 && far < least) { least = far; best = i; }
    }
    return best;
  }
  // By keys: the rank's next call (1) or the one before (-1); first the one in the middle of what is seen.
  function step(way) {
    const middle = (view.from + view.to) / 2, row = Math.floor(view.top);
    show(chosen < 0
      ? nearest((i) => bar.rank[i] < row ? 0 : 1 + Math.abs(bar.start[i] - middle) + (bar.rank[i] - row) * 1e12)
      : nearest((i) => bar.rank[i] === bar.rank[chosen] ? way * (bar.start[i] - bar.start[chosen]) : 0));
  }
  function nextRank() {
    const on = (i) => bar.call[i] === bar.call[chosen] ? (bar.rank[i] - bar.rank[chosen] + ranks) % ranks : 0;
    if (chosen < 0) step(1); else show(nearest(on));
  }
  // Tells of a bar, and moves so that it is seen.
  function show(i) {
    if (i < 0) return;
    tell(i);
    const length = view.to - view.from, start = bar.start[i], rank = bar.rank[i];
    if (start < view.from || start > view.to) { view.from = start - length / 2; view.to = view.from + length; }
    if (rank < view.top || rank + 1 > view.top + view.rows) view.top = Math.max(0, Math.min(ranks - view.rows, rank - view.rows / 2));
    redraw();
  }
  // No further out than four times all there is, nor away from it.
  function keepNear() {
    const length = Math.min(view.to - view.from, 4 * (all.to - all.from));
    view.from = Math.min(all.to, Math.max(all.from - length, view.from));
    view.to = view.from + length;
  }
  function zoom(factor, around, rows) {
    // Of times that no clock shows less would be nothing.
    const least = Math.max(0.05, Math.abs(around) * 1e-12);
    const length = Math.max(least, (view.to - view.from) * factor), part = (around - view.from) / (view.to - view.from);
    view.from = around - part * length;
    view.to = view.from + length;
    keepNear();
    if (rows) {
      const middle = view.top + view.rows / 2;
      view.rows = Math.min(ranks, Math.max(4, view.rows * factor));
      view.top = Math.max(0, Math.min(ranks - view.rows, middle - view.rows / 2));
    }
    redraw();
  }
  function move(part, rows) {
    const by = part * (view.to - view.from);
    view.from += by;
    view.to += by;
    keepNear();
    view.top = Math.max(0, Math.min(ranks - view.rows, view.top + rows));
    redraw();
  }
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return {
      us: view.from + (event.clientX - box.left - LEFT) / (box.width - LEFT) * (view.to - view.from),
      rank: Math.floor(view.top + (event.clientY - box.top - TOP) / (box.height - TOP) * view.rows),
      wide: box.width - LEFT, high: box.height - TOP,
    };
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event).us, event.shiftKey);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY, far: 0 }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) return;
    const at = place(event), across = event.clientX - held.x, down = event.clientY - held.y;
    held = { x: event.clientX, y: event.clientY, far: held.far + Math.abs(across) + Math.abs(down) };
    move(-across / at.wide, -down / at.high * view.rows);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (held && held.far < 4) {
      const at = place(event), near = (view.to - view.from) / at.wide * 2;
      let best = -1;
      for (let i = 0; i < bar.start.length; i++) {
        if (bar.rank[i] === at.rank && at.us >= bar.start[i] - near && at.us <= bar.start[i] + bar.length[i] + near) best = i;
      }
      tell(best);
      redraw();
    }
    held = null;
  });
  // The browser took it for a gesture of its own.
  for (const end of ["pointercancel", "lostpointercapture"]) canvas.addEventListener(end, () => { held = null; });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const middle = (view.from + view.to) / 2;
    const act = {
      "+": () => zoom(0.7, middle, false), "-": () => zoom(1.4, middle, false), "0": () => { view = { ...all }; redraw(); },
      n: () => step(1), p: () => step(-1), r: nextRank,
      ArrowLeft: () => move(-0.15, 0), ArrowRight: () => move(0.15, 0),
      ArrowUp: () => move(0, -view.rows * 0.15), ArrowDown: () => move(0, view.rows * 0.15),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  document.getElementById("in").onclick = () => zoom(0.5, (view.from + view.to) / 2, true);
  document.getElementById("out").onclick = () => zoom(2, (view.from + view.to) / 2, true);
  document.getElementById("all").onclick = () => { view = { ...all }; redraw(); };
  const legend = document.getElementById("legend");
  key(legend);
  if (data.left_out > 0) legend.append(` (the ${data.left_out} earliest calls of ranks are not drawn)`);
  if (data.waits_left_out > 0) legend.append(` (of the ${data.waits_left_out} earliest waits nothing is drawn)`);
  return redraw;
}

function scatter() {
  const canvas = document.getElementById("scatter");
  key(document.getElementById("skews"));
  const across = column(data.skew.in, Float32Array), up = column(data.skew.out, Float32Array), kind = column(data.skew.kind, Uint16Array);
  return () => {
    const [pen, width, height] = open(canvas), LEFT = 74, BELOW = 38, SIZE = 3.5;
    let low = Infinity, high = 0;
    for (const values of [across, up]) for (const value of values) {
      if (value > 0) { low = Math.min(low, value); high = Math.max(high, value); }
    }
    pen.fillStyle = style("--faint");
    if (!(high > 0)) { pen.fillText("no whole call is known", LEFT, height / 2); return; }
    const from = Math.floor(Math.log10(low)), to = Math.max(from + 1, Math.ceil(Math.log10(high)));
    const part = (value) => (Math.log10(Math.max(value, 10 ** from)) - from) / (to - from);
    const x = (value) => LEFT + part(value) * (width - LEFT - 12), y = (value) => height - BELOW - part(value) * (height - BELOW - 12);
    pen.strokeStyle = style("--line");
    for (let exponent = from; exponent <= to; exponent++) {
      const at = 10 ** exponent;
      pen.beginPath();
      pen.moveTo(x(at), 12); pen.lineTo(x(at), height - BELOW); pen.moveTo(LEFT, y(at)); pen.lineTo(width - 12, y(at));
      pen.stroke();
      const text = power(at), wide = pen.measureText(text).width;
      // Of many powers on a narrow page every other one.
      if (x(10) - x(1) > 44 || exponent % 2 === 0) pen.fillText(text, Math.min(x(at) - wide / 2, width - 4 - wide), height - BELOW + 15);
      pen.fillText(text, LEFT - 6 - wide, y(at) + 4);
    }
    const over = "skew in: between the first call and the last", beside = "skew out: first to last return";
    pen.fillText(over, Math.max(2, (LEFT + width - 12 - pen.measureText(over).width) / 2), height - 6);
    pen.save();
    pen.translate(13, (height - BELOW + 12 + pen.measureText(beside).width) / 2);
    pen.rotate(-Math.PI / 2);
    pen.fillText(beside, 0, 0);
    pen.restore();
    pen.strokeStyle = style("--faint");
    pen.beginPath();
    pen.moveTo(x(10 ** from), y(10 ** from)); pen.lineTo(x(10 ** to), y(10 ** to));
    pen.stroke();
    pen.globalAlpha = 0.6;
    for (let i = 0; i < across.length; i++) {
      pen.fillStyle = colour(kind[i]);
      pen.beginPath();
      pen.arc(x(across[i]), y(up[i]), SIZE, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
  };
}

// A click on a heading sorts by its column; numbers by what they are worth with their units, bars by their lengths, and where there is none last.
const UNITS = { "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1, "KiB": 1024, "MiB": 2 ** 20, "GiB": 2 ** 30, "TiB": 2 ** 40, "B": 1 };
function worth(cell) {
  if (cell.dataset.worth) return +cell.dataset.worth;
  const found = /^(-?[\d.]+)\s*([^\s.]*)/.exec(cell.textContent);
  return found ? parseFloat(found[1]) * (UNITS[found[2]] || 1) : NaN;
}
function sortable(table) {
  const headings = table.tHead.rows[0].cells;
  table.tHead.addEventListener("click", (event) => {
    const heading = event.target.closest("th");
    if (!heading) return;
    const falls = heading.getAttribute("aria-sort") !== "descending", body = table.tBodies[0];
    for (const other of headings) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
    const rows = [...body.rows].map((row) => {
      const cell = row.cells[heading.cellIndex];
      return { row, number: worth(cell), text: cell.textContent };
    });
    const areNumbers = rows.some(({ number }) => !isNaN(number));
    const way = falls ? -1 : 1;
    rows.sort((a, b) => {
      if (!areNumbers) return a.text.localeCompare(b.text, undefined, { numeric: true }) * way;
      return (isNaN(a.number) - isNaN(b.number)) || (a.number - b.number || 0) * way;
    });
    body.append(...rows.map(({ row }) => row));
  });
}

// A table that has more columns than there is room for says so.
function scrolling() {
  for (const wide of document.querySelectorAll(".wide")) {
    const has = wide.scrollWidth > wide.clientWidth + 1, after = wide.nextElementSibling;
    wide.classList.toggle("more", has);
    const is = after && after.classList.contains("scrolls");
    if (has && !is) {
      const words = document.createElement("p");
      words.className = "scrolls";
      words.textContent = "the table goes on to the right →";
      wide.after(words);
      wide.tabIndex = 0;
    } else if (!has && is) after.remove();
  }
}
document.querySelectorAll("table").forEach(sortable);
const drawings = data ? [timeline(), scatter()] : [];
const drawAll = () => { drawings.forEach((draw) => draw()); scrolling(); };
const button = document.getElementById("theme");
if (button) button.onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  drawAll();
};
window.addEventListener("resize", drawAll);
drawAll();
root.dataset.ready = "1";
