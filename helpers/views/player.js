// Plays a run: what player.py made of it, drawn on a canvas and told in a table.
//
//   data -> moments (what begins or ends, in order) -> step k -> canvas + table + one spoken sentence
//
// `k` moments have happened; `k` is the one thing that changes. Everything that came from a rank is text.

const LANE = 46, NAME = 64, HEAD = 6, AXIS = 22;
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const BEGINS = 0, WAITS = 1, ENDS = 2;

export default function show(el, data) {
  el.classList.add("rr-page");
  el.setAttribute("data-lm-suppress-shortcuts", "true");  // keys are the player's, not the notebook's
  el.replaceChildren();
  new Player(data, el.attachShadow({ mode: "open" }));  // the page's styles for HTML stay outside
}

class Player {
  constructor(data, el) {
    this.run = read(data);
    this.k = 0;
    this.playing = false;
    this.root = build(el, this.run, (what, value) => this.act(what, value));
    this.stage = new Stage(this.root.canvas, this.run);
    this.table = new Table(this.root, this.run);
    this.watchers = [
      new ResizeObserver(() => this.redraw()),
      new MutationObserver(() => [0, 300, 1500].forEach((ms) => setTimeout(() => this.redraw(), ms))),
    ];
    this.watchers[0].observe(this.root.canvas.parentElement);
    // a theme's colors come some time after its name
    const themed = { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] };
    this.watchers[1].observe(document.body, themed);
    this.go(this.run.moments.length);  // who does not play it sees the whole run
  }

  act(what, value) {
    if (what === "play") return this.playing ? this.pause() : this.play();
    if (what === "scale") this.stage.toScale = value;
    if (what === "zoom") this.stage.zoom = value;
    if (what === "speed") { this.speed = value; return; }
    if (what === "scale" || what === "zoom") return this.redraw();
    this.pause();
    if (what === "first") this.go(0);
    if (what === "last") this.go(this.run.moments.length);
    if (what === "step") this.go(this.k + value);
    if (what === "to") this.go(value);
    if (what === "point") this.go(this.stage.momentAt(value));
  }

  play() {
    if (this.k >= this.run.moments.length) this.k = 0;
    this.playing = true;
    this.root.play.textContent = "Pause";
    let last = performance.now(), at = this.k;
    const frame = (now) => {
      if (!this.playing) return;
      // ten moments a second, and no run longer than a minute
      const rate = Math.max(10, this.run.moments.length / 60) * (this.speed || 1);
      at = Math.min(this.run.moments.length, at + Math.max(0, Math.min(0.1, (now - last) / 1000)) * rate);
      last = now;
      this.show(at);
      if (at >= this.run.moments.length) return this.pause();
      this.waiting = requestAnimationFrame(frame);
    };
    this.waiting = requestAnimationFrame(frame);
  }

  pause() {
    this.playing = false;
    cancelAnimationFrame(this.waiting);
    this.root.play.textContent = "Play";
    this.root.said.textContent = this.said();
  }

  go(k) {
    this.show(Math.max(0, Math.min(this.run.moments.length, k)));
    this.root.said.textContent = this.said();
  }

  // `at` may lie between two moments while it plays: then messages are on their way.
  show(at) {
    this.k = Math.floor(at);
    this.stage.draw(at);
    this.table.show(this.k);
    this.root.slider.value = this.k;
    this.root.slider.setAttribute("aria-valuetext", this.said());
    this.root.count.textContent = `${this.k.toLocaleString("en")} of ${this.run.moments.length.toLocaleString("en")}`;
  }

  redraw() {
    if (!this.root.canvas.isConnected) {  // its cell has been run again, or cleared
      this.pause();
      for (const watcher of this.watchers) watcher.disconnect();
      return;
    }
    this.stage.forget();
    this.show(this.k);
  }

  said() {
    if (!this.k) return "Before the first event.";
    const { bar, what } = this.run.moments[this.k - 1];
    const b = this.run.bars;
    const does = what === BEGINS ? "calls" : what === WAITS ? "waits for" : "is done with";
    const place = this.run.places[b.place[bar]];
    const where = place ? `, ${place[0]}, line ${place[1]}` : "";
    const end = this.k === this.run.moments.length && this.run.ending ? ` Then: ${this.run.ending.title}` : "";
    return `rank ${b.rank[bar]} ${does} ${this.run.texts[b.label[bar]]}${where}.${end}`;
  }
}

// What begins, is waited for and ends, in the order of time.
function read(data) {
  const b = data.bars, moments = [];
  for (let bar = 0; bar < b.rank.length; bar++) {
    moments.push({ t: b.start[bar], bar, what: BEGINS });
    if (b.wait[bar] > b.start[bar] && (b.end[bar] === null || b.wait[bar] < b.end[bar]))
      moments.push({ t: b.wait[bar], bar, what: WAITS });
    if (b.end[bar] !== null) moments.push({ t: b.end[bar], bar, what: ENDS });
  }
  moments.sort((x, y) => x.t - y.t || x.what - y.what || x.bar - y.bar);
  const begun = new Int32Array(b.rank.length), ended = new Int32Array(b.rank.length).fill(-1);
  const waited = new Int32Array(b.rank.length).fill(-1);
  moments.forEach((m, index) => {
    if (m.what === BEGINS) begun[m.bar] = index;
    else if (m.what === WAITS) waited[m.bar] = index;
    else ended[m.bar] = index;
  });
  const begins = (bar) => begun[bar];
  const ends = (bar) => (ended[bar] < 0 ? moments.length : ended[bar]);
  const waits = (bar) => (waited[bar] >= 0 ? waited[bar] : b.wait[bar] > b.start[bar] ? ends(bar) : begun[bar]);
  return { ...data, moments, begins, ends, waits, name: `run ${(globalThis.rrPlayers = (globalThis.rrPlayers || 0) + 1)}` };
}

// ---- the page's parts ----

function build(el, run, act) {
  const root = make("div", { class: "rr-player", role: "group", tabindex: 0,
    "aria-label": `Player of a ${run.headline}. Space plays and pauses, arrow keys step.` });
  const bar = make("div", { class: "rr-controls" });
  const button = (words, title, what, value) => {
    const made = make("button", { type: "button", title, "aria-label": title }, words);
    made.addEventListener("click", () => act(what, value));
    bar.append(made);
    return made;
  };
  button("|<", "To the beginning", "first");
  button("<", "One step back", "step", -1);
  const play = button("Play", "Play or pause", "play");
  button(">", "One step on", "step", 1);
  button(">|", "To the end", "last");
  const slider = make("input", { type: "range", min: 0, max: run.moments.length, step: 1, value: 0, "aria-label": "Step" });
  slider.addEventListener("input", () => act("to", Number(slider.value)));
  const count = make("span", { class: "rr-count" });
  bar.append(slider, count);
  bar.append(choice("speed", SPEEDS.map((s) => [s, `${s}x`]), 1, (value) => act("speed", value)));
  bar.append(choice("zoom", [1, 2, 5, 20, 100].map((z) => [z, z === 1 ? "whole" : `${z}x`]), 1, (value) => act("zoom", value)));
  const scale = make("input", { type: "checkbox" });
  scale.addEventListener("change", () => act("scale", scale.checked));
  const label = make("label", {}, "to scale");
  label.prepend(scale);
  bar.append(label);
  const frame = make("div", { class: "rr-stage" });
  const canvas = make("canvas", { role: "img", "aria-label": run.headline });
  canvas.addEventListener("pointerdown", (e) => {
    const point = (move) => act("point", move.clientX - canvas.getBoundingClientRect().left);
    const up = () => { removeEventListener("pointermove", point); removeEventListener("pointerup", up); };
    addEventListener("pointermove", point);
    addEventListener("pointerup", up);
    point(e);
  });
  frame.append(canvas);
  const said = make("p", { class: "rr-said", "aria-live": "polite" });
  const lower = make("div", { class: "rr-lower" });
  root.append(bar, frame, legend(run), said, lower);
  root.addEventListener("keydown", (e) => {
    const keys = { " ": ["play"], ArrowRight: ["step", 1], ArrowLeft: ["step", -1], Home: ["first"], End: ["last"] };
    const own = ["SELECT", "BUTTON"].includes(e.target.tagName) && e.key === " " || e.target.tagName === "SELECT";
    if (keys[e.key] && !own) { act(...keys[e.key]); e.preventDefault(); }
    e.stopPropagation();
  });
  el.append(make("style", {}, STYLE), root);
  return { root, play, slider, count, canvas, said, lower };
}

function legend(run) {
  const list = make("div", { class: "rr-legend" }), kinds = new Set(run.bars.kind);
  run.kinds.forEach((kind, index) => {
    if (!kinds.has(index)) return;
    const swatch = make("span", { class: "rr-swatch" });
    swatch.style.background = kind.color;
    const part = make("span", {}, kind.name);
    part.prepend(swatch);
    list.append(part);
  });
  if (run.bars.start.some((start, bar) => run.bars.wait[bar] > start))
    list.append(make("span", {}, "thin: in flight, the rank is free"));
  if (run.messages.length) list.append(make("span", {}, "disc: a message on its way, with its sender"));
  if (run.messages.some(([, recv]) => recv < 0)) list.append(make("span", {}, "ring: nobody receives it"));
  return list;
}

function choice(name, options, chosen, act) {
  const select = make("select", {});
  for (const [value, words] of options) {
    const option = make("option", { value }, words);
    option.selected = value === chosen;
    select.append(option);
  }
  select.addEventListener("change", () => act(Number(select.value)));
  const label = make("label", {}, name);
  label.append(select);
  return label;
}

function make(tag, attributes, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- what each rank does now, and where it stands in the code ----

class Table {
  constructor(root, run) {
    this.run = run;
    const table = make("table", {});
    const head = make("tr", {});
    for (const words of ["rank", "does", "line", "had", "has"]) head.append(make("th", { scope: "col" }, words));
    const top = make("thead", {}), body = make("tbody", {});
    top.append(head);
    this.rows = [];
    for (let rank = 0; rank < run.ranks; rank++) {
      const row = make("tr", {});
      const cells = [make("th", { scope: "row" }, rank), ...[1, 2, 3, 4].map(() => make("td", {}))];
      row.append(...cells);
      body.append(row);
      this.rows.push(cells);
    }
    table.append(top, body);
    const scroller = make("div", { class: "rr-table", tabindex: 0, role: "region", "aria-label": `What each rank does, ${run.name}` });
    scroller.append(table);
    this.code = make("div", { class: "rr-code", tabindex: 0, role: "region", "aria-label": `Lines of code, ${run.name}` });
    this.lines = run.places
      .map((place, index) => ({ place, index }))
      .sort((x, y) => compare(x.place[0], y.place[0]) || x.place[1] - y.place[1]);
    let cell = null;
    for (const line of this.lines) {
      if (line.place[0] !== cell) this.code.append(make("div", { class: "rr-cell" }, (cell = line.place[0])));
      line.row = make("div", { class: "rr-line" });
      line.marks = make("span", { class: "rr-marks" });
      line.row.append(line.marks, make("span", { class: "rr-number" }, line.place[1]), make("code", {}, line.place[2]));
      this.code.append(line.row);
    }
    this.ending = make("div", { class: "rr-ending" });
    root.lower.append(scroller, this.code, this.ending);
    this.moved = run.ranks > 0 ? byRank(run) : [];
  }

  show(k) {
    const { bars, texts, places } = this.run, at = new Map();
    for (let rank = 0; rank < this.run.ranks; rank++) {
      const bar = this.now(rank, k), cells = this.rows[rank];
      if (bar < 0) { set(cells, ["nothing yet", "", "", ""]); continue; }
      const over = this.run.ends(bar) < k, about = texts[bars.about[bar]];
      const place = places[bars.place[bar]];
      const label = texts[bars.label[bar]] + (about ? ` (${about})` : "");
      const has = over ? texts[bars.after[bar]] : "";
      set(cells, [over ? `after ${label}` : `in ${label}`, place ? `${place[0]}, line ${place[1]}` : "",
        texts[bars.before[bar]], has]);
      cells[1].className = over ? "" : "rr-in";
      if (place) at.set(bars.place[bar], [...(at.get(bars.place[bar]) || []), rank]);
    }
    for (const line of this.lines) {
      const ranks = at.get(line.index) || [];
      const words = some(ranks);
      if (line.marks.textContent !== words) {
        line.marks.textContent = words;
        line.row.classList.toggle("rr-at", ranks.length > 0);
      }
    }
    this.reveal(k ? bars.place[this.run.moments[k - 1].bar] : -1);
    this.stand(k === this.run.moments.length ? this.run.ending : null);
  }

  // Scrolls the code, never the page, to the line that has just been reached.
  reveal(place) {
    if (place < 0 || place === this.revealed) return;
    this.revealed = place;
    const { row } = this.lines.find((line) => line.index === place), { code } = this;
    const above = row.offsetTop - code.offsetTop, tall = code.clientHeight;
    if (above < code.scrollTop || above + row.offsetHeight > code.scrollTop + tall)
      code.scrollTop = above - tall / 3;
  }

  // The call that a rank is in, the one it is held up by first; else the last one it was in.
  now(rank, k) {
    const { list, latest } = this.moved[rank];
    let low = 0, high = list.length;  // calls that have begun
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.run.begins(list[middle]) < k) low = middle + 1; else high = middle;
    }
    let best = -1, held = false;
    for (let i = low - 1; i >= 0 && i >= low - 64; i--) {
      if (this.run.ends(list[i]) < k) { if (best < 0) best = list[i]; continue; }
      const waits = this.run.waits(list[i]) < k;
      if (best < 0 || this.run.ends(best) < k || (waits && !held)) { best = list[i]; held = waits; }
    }
    if (best >= 0 && this.run.ends(best) < k) {  // of those that are over, the one that ended last
      for (let i = low - 1; i >= 0 && i >= low - 64; i--)
        if (this.run.ends(list[i]) < k && this.run.ends(list[i]) > this.run.ends(best)) best = list[i];
    }
    return best;
  }

  stand(ending) {
    if (this.stood === ending) return;
    this.stood = ending;
    this.ending.replaceChildren();
    if (!ending) return;
    this.ending.append(make("p", { class: "rr-title" }, `${ending.kind}: ${ending.title}`));
    if (!ending.waits.length) return;
    this.ending.append(graph(ending, this.run.ranks));
    const list = make("ul", {});
    for (const wait of ending.waits) list.append(make("li", {}, `rank ${wait.rank}: ${wait.says}`));
    this.ending.append(list);
  }
}

// Ranks in few characters: `0-3, 7`.
function some(ranks) {
  const parts = [];
  for (const rank of ranks) {
    const last = parts[parts.length - 1];
    if (last && last[1] === rank - 1) last[1] = rank; else parts.push([rank, rank]);
  }
  const words = parts.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
  return words && `${ranks.length > 1 ? "ranks" : "rank"} ${words}`;
}

function byRank(run) {
  const ranks = Array.from({ length: run.ranks }, () => ({ list: [] }));
  run.bars.rank.forEach((rank, bar) => ranks[rank].list.push(bar));
  for (const rank of ranks) rank.list.sort((x, y) => run.begins(x) - run.begins(y));
  return ranks;
}

function set(cells, words) {
  words.forEach((text, index) => {
    if (cells[index + 1].textContent !== text) cells[index + 1].textContent = text;
  });
}

function compare(x, y) {
  return x.localeCompare(y, "en", { numeric: true });
}

// Who waits for whom: ranks in a circle, an arrow from each to those it waits for.
function graph(ending, ranks) {
  const many = ranks > 8, radius = many ? 150 : 90, size = 2 * radius + 60, dot = many ? 12 : 17;
  const svg = shape("svg", { viewBox: `0 0 ${size} ${size}`, width: size, height: size, role: "img",
    "aria-label": "Who waits for whom: " + ending.waits.map((w) => `rank ${w.rank} for ${w.for.join(" and ") || "nobody"}`).join(", ") });
  const marker = shape("marker", { id: "rr-head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
  marker.append(shape("path", { d: "M0 0L8 4L0 8z", class: "rr-arrowhead" }));
  svg.append(marker);
  const at = (rank) => {
    const angle = (2 * Math.PI * rank) / ranks - Math.PI / 2;
    return [size / 2 + radius * Math.cos(angle), size / 2 + radius * Math.sin(angle)];
  };
  for (const wait of ending.waits)
    for (const other of wait.for.slice(0, 64)) {
      const [x, y] = at(wait.rank), [u, v] = at(other), long = Math.hypot(u - x, v - y) || 1;
      const side = ending.waits.some((w) => w.rank === other && w.for.includes(wait.rank)) ? 7 : 0;
      const [dx, dy] = [(u - x) / long, (v - y) / long];
      svg.append(shape("line", { class: "rr-edge", "marker-end": "url(#rr-head)",
        x1: x + dx * dot - dy * side, y1: y + dy * dot + dx * side,
        x2: u - dx * (dot + 2) - dy * side, y2: v - dy * (dot + 2) + dx * side }));
    }
  for (let rank = 0; rank < ranks; rank++) {
    const [x, y] = at(rank), guilty = ending.guilty.includes(rank);
    svg.append(shape("circle", { cx: x, cy: y, r: dot, class: guilty ? "rr-node rr-guilty" : "rr-node" }));
    svg.append(shape("text", { x, y: y + 4, "text-anchor": "middle", class: "rr-name" }, rank));
  }
  return svg;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// ---- the canvas: all bars once, then for each step what is over, now, and on its way ----

class Stage {
  constructor(canvas, run) {
    this.canvas = canvas;
    this.run = run;
    this.toScale = false;
    this.zoom = 1;
    this.rows = Math.max(1, run.rows);
    // each row of bars has room for a name above a thin bar
    this.lane = Math.max(18, Math.min(Math.max(LANE, 19 * this.rows + 8), 640 / run.ranks));
    this.height = HEAD + this.lane * run.ranks + AXIS;
  }

  forget() {
    this.drawn = null;
  }

  // Where a number of moments stands, of 0 to 1.
  where(at) {
    const { moments, length } = this.run;
    if (!moments.length) return 0;
    if (!this.toScale) return at / (moments.length + 1);
    const k = Math.min(moments.length - 1, Math.floor(at)), t = moments[k].t;
    const next = k + 1 < moments.length ? moments[k + 1].t : length;
    return (at >= moments.length ? length : t + (next - t) * (at - k)) / length;
  }

  x(at) {
    return NAME + (this.where(at) - this.left) * this.zoom * this.width;
  }

  momentAt(x) {
    const place = (x - NAME) / (this.zoom * this.width) + this.left;
    let low = 0, high = this.run.moments.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.where(middle - 0.5) <= place) low = middle; else high = middle - 1;
    }
    return low;
  }

  y(bar) {
    const { rank, row } = this.run.bars, room = this.lane - 8;
    return HEAD + rank[bar] * this.lane + 4 + (row[bar] * room) / this.rows;
  }

  middle(bar) {
    return this.y(bar) + (this.lane - 8) / this.rows / 2;
  }

  draw(at) {
    const wide = this.canvas.parentElement.clientWidth, ratio = devicePixelRatio || 1;
    if (wide < 2 * NAME) return;  // the page does not show it now
    this.width = wide - NAME - 8;
    const place = this.where(at), window = 1 / this.zoom;
    const left = Math.max(0, Math.min(1 - window, place - window / 2));
    const key = [wide, ratio, this.toScale, this.zoom].join();
    if (this.drawn !== key || (this.zoom > 1 && Math.abs(left - this.left) > window / 200)) {
      this.left = left;
      this.drawn = key;
      for (const canvas of [this.canvas, (this.all ||= document.createElement("canvas"))]) {
        canvas.width = wide * ratio;
        canvas.height = this.height * ratio;
      }
      this.canvas.style.width = `${wide}px`;
      this.canvas.style.height = `${this.height}px`;
      this.ink = inks(this.canvas);
      const all = this.all.getContext("2d");
      all.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.drawAll(all);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.all, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawNow(pen, at, wide);
  }

  drawAll(pen) {
    const { run, ink } = this, b = run.bars;
    pen.font = "12px " + ink.font;
    pen.textBaseline = "middle";
    for (let rank = 0; rank < run.ranks; rank++) {
      const y = HEAD + rank * this.lane;
      if (rank % 2) { pen.fillStyle = ink.stripe; pen.fillRect(NAME, y, this.width, this.lane); }
      pen.fillStyle = ink.text;
      pen.fillText(`rank ${rank}`, 4, y + this.lane / 2);
    }
    pen.save();
    pen.beginPath();
    pen.rect(NAME, 0, this.width + 4, this.height);
    pen.clip();
    this.drawCollectives(pen);
    this.drawBars(pen);
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1;
    pen.strokeStyle = ink.text;
    pen.beginPath();
    for (const [send, recv] of run.messages) {
      if (recv < 0) continue;
      const [x, y, u, v] = this.ends(send, recv);
      if (Math.max(x, u) < NAME || Math.min(x, u) > NAME + this.width) continue;
      pen.moveTo(x, y);
      pen.lineTo(u, v);
    }
    pen.stroke();
    pen.restore();
    pen.fillStyle = ink.text;
    pen.textAlign = "center";
    const words = this.toScale ? `to scale: ${duration(run.length / this.zoom)} across` : "in order: every step has the same room";
    pen.fillText(words, NAME + this.width / 2, this.height - AXIS / 2);
    pen.textAlign = "start";
    if (run.left_out) pen.fillText(`${run.left_out} later calls are not drawn`, NAME, this.height - AXIS / 2);
  }

  drawBars(pen) {
    const { run, ink } = this, b = run.bars, tall = (this.lane - 8) / this.rows - 2;
    pen.font = "11px monospace";
    for (let bar = 0; bar < b.rank.length; bar++) {
      const x = this.x(run.begins(bar) + 0.5), held = this.x(run.waits(bar) + 0.5), end = this.x(run.ends(bar) + 0.5);
      if (end < NAME || x > NAME + this.width) continue;
      const y = this.y(bar), kind = run.kinds[b.kind[bar]], open = b.end[bar] === null;
      if (held > x) {  // in flight: a thin bar
        pen.fillStyle = kind.color;
        pen.fillRect(x, y + tall / 2 - 1.5, Math.max(1, Math.min(held, end) - x), 3);
      }
      if (end > held) {
        pen.fillStyle = ink.dark ? kind.color : kind.tint;
        pen.strokeStyle = kind.color;
        pen.lineWidth = 1;
        pen.setLineDash(open ? [4, 3] : []);
        pen.globalAlpha = ink.dark ? 0.6 : 1;  // white letters are read on it
        pen.fillRect(held, y, Math.max(1, end - held), tall);
        pen.globalAlpha = 1;
        if (end - held > 3) pen.strokeRect(held + 0.5, y + 0.5, end - held - 1, tall - 1);
      }
      const name = run.texts[b.label[bar]], from = Math.max(NAME, held < end ? held : x) + 3;
      if (tall >= (held < end ? 10 : 15) && end - from > name.length * 6.7) {
        pen.fillStyle = ink.dark && held < end ? "#fff" : ink.text;
        pen.fillText(name, from, y + tall / 2 + (held < end ? 0.5 : -6));
      }
    }
    pen.setLineDash([]);
  }

  drawCollectives(pen) {
    pen.strokeStyle = this.run.kinds[2].color;
    pen.lineWidth = 1;
    pen.setLineDash([2, 3]);
    pen.beginPath();
    for (const bars of this.run.collectives)
      bars.forEach((bar, i) => {
        const x = this.x(this.run.begins(bar) + 0.5), y = this.middle(bar);
        if (i) pen.lineTo(x, y); else pen.moveTo(x, y);
      });
    pen.stroke();
    pen.setLineDash([]);
  }

  ends(send, recv) {
    const { run } = this;
    return [this.x(run.begins(send) + 0.5), this.middle(send), this.x(run.ends(recv) + 0.5), this.middle(recv)];
  }

  drawNow(pen, at, wide) {
    const { run, ink } = this, here = this.x(at);
    pen.fillStyle = ink.veil;  // what is still to come
    pen.fillRect(Math.max(NAME, here), 0, Math.max(0, wide - Math.max(NAME, here)), this.height - AXIS);
    pen.strokeStyle = ink.mark;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(here, 0);
    pen.lineTo(here, this.height - AXIS);
    pen.stroke();
    let shown = 0;
    for (const [send, recv] of run.messages) {
      const from = run.begins(send) + 0.5, to = recv < 0 ? Infinity : run.ends(recv) + 0.5;
      if (at < from || at > to || ++shown > 500) continue;
      this.drawMessage(pen, send, recv, recv < 0 ? 0 : (at - from) / Math.max(1e-9, to - from));
    }
  }

  // A message on its way: a dot with the sender's number; a ring where nobody has received it yet.
  drawMessage(pen, send, recv, part) {
    const { run, ink } = this;
    let x = this.x(run.begins(send) + 0.5), y = this.middle(send);
    if (recv >= 0) {
      const [x0, y0, u, v] = this.ends(send, recv);
      [x, y] = [x0 + (u - x0) * part, y0 + (v - y0) * part];
    }
    pen.beginPath();
    pen.arc(x, y, 7, 0, 2 * Math.PI);
    pen.fillStyle = recv < 0 ? ink.ground : ink.mark;
    pen.fill();
    pen.strokeStyle = ink.mark;
    pen.stroke();
    pen.fillStyle = recv < 0 ? ink.text : ink.ground;
    pen.font = "bold 9px " + ink.font;
    pen.textAlign = "center";
    pen.fillText(run.bars.rank[send], x, y + 0.5);
    pen.textAlign = "start";
  }
}

function inks(el) {
  const style = getComputedStyle(el);
  const of = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  const [red, green, blue] = style.color.match(/[\d.]+/g).map(Number);
  const dark = red + green + blue > 384;  // light letters
  return {
    dark,
    text: style.color,
    ground: of("--jp-layout-color0", dark ? "#111" : "#fff"),
    font: of("--jp-ui-font-family", "sans-serif"),
    stripe: dark ? "rgba(255, 255, 255, 0.06)" : "rgba(0, 0, 0, 0.035)",
    veil: dark ? "rgba(17, 17, 17, 0.62)" : "rgba(255, 255, 255, 0.62)",
    mark: dark ? "#ffb86b" : "#a33b00",
  };
}

function duration(ns) {
  const [by, unit] = ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${Number((ns / by).toPrecision(3))} ${unit}`;
}

const STYLE = `
.rr-player { font-family: var(--jp-ui-font-family, sans-serif); line-height: 1.4; color: var(--jp-content-font-color1, #222); font-size: 13px; max-width: 1050px; padding: 4px; }
.rr-player:focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); }
.rr-controls { display: flex; flex-wrap: wrap; gap: 6px 8px; align-items: center; }
.rr-controls button, .rr-controls select { font: inherit; color: inherit; min-width: 28px; padding: 2px 8px;
  background: var(--jp-layout-color2, #eee); border: 1px solid var(--jp-border-color0, #999); border-radius: 3px; }
.rr-controls input[type=range] { flex: 1 1 180px; min-width: 120px; }
.rr-controls label { display: inline-flex; gap: 4px; align-items: center; }
.rr-count { min-width: 7em; text-align: right; font-variant-numeric: tabular-nums; }
.rr-stage { margin-top: 6px; width: 100%; overflow: hidden; }
.rr-stage canvas { display: block; cursor: ew-resize; touch-action: none; }
.rr-legend { display: flex; flex-wrap: wrap; gap: 2px 14px; font-size: 12px; }
.rr-swatch { display: inline-block; width: 12px; height: 12px; margin-right: 4px; vertical-align: -2px; }
.rr-said { min-height: 1.4em; margin: 4px 0; font-weight: 600; }
.rr-lower { display: flex; flex-wrap: wrap; gap: 12px; align-items: flex-start; }
.rr-table { flex: 2 1 440px; max-height: 340px; overflow: auto; }
.rr-table table { border-collapse: collapse; width: 100%; font-size: 12px; margin: 0; }
.rr-table th, .rr-table td { text-align: left; padding: 1px 8px 1px 4px; vertical-align: top; }
.rr-table td:nth-child(n+4) { font-family: var(--jp-code-font-family, monospace); overflow-wrap: anywhere; }
.rr-table .rr-in { font-weight: 600; }
.rr-code { flex: 1 1 400px; max-height: 340px; overflow: auto; font-size: 12px; }
.rr-cell { font-weight: 600; margin-top: 2px; }
.rr-line { display: flex; gap: 8px; border-left: 3px solid transparent; padding-left: 4px; }
.rr-line.rr-at { border-left-color: var(--jp-content-font-color1, #222); background: var(--jp-layout-color2, #eee); }
.rr-line code { flex: 1 1 0; background: transparent; color: inherit; font-size: 12px;
  white-space: pre-wrap; overflow-wrap: anywhere; padding-left: 2ch; text-indent: -2ch; }
.rr-number { min-width: 2em; text-align: right; opacity: 0.75; }
.rr-marks { font-weight: 600; flex: 0 0 6.5em; text-align: right; }
.rr-ending { flex: 1 1 100%; }
.rr-ending .rr-title { font-weight: 600; margin: 2px 0; }
.rr-ending ul { margin: 4px 0; padding-left: 20px; }
.rr-edge { stroke: currentColor; stroke-width: 1.8; }
.rr-arrowhead { fill: var(--jp-content-font-color1, #222); }
.rr-node { fill: var(--jp-layout-color2, #eee); stroke: currentColor; stroke-width: 1.5; }
.rr-guilty { stroke-width: 4; }
.rr-name { fill: var(--jp-content-font-color1, #222); font-size: 13px; font-weight: 600; }
`;
