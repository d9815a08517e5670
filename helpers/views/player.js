// Plays a run: moves the marks of the drawing that timeline.py made, and shows and hides what has happened.
//
//   drawing + data (player.py) -> lay(): each mark at its steps -> show(at): the reader is at step `at`
//
// `at` steps have happened: between two whole numbers a message is in flight, and a bar grows. At rest all have
// happened, and the picture is whole. Everything that came from a rank is text.

const BEGINS = 0, WAITS = 1, ENDS = 2;
const PACE = 40;         // up to so many steps, one takes a second; a long run goes faster, but not as much
const EASED_UP_TO = 4;   // steps a second that one can follow one by one
const IN_FLIGHT = 300;   // messages that are shown at once
const NEW = 60;          // seconds for which a run is new: on a page that is opened later, nothing moves by itself

const ICONS = {
  first: "M6 5v14M19 5.5v13L9 12z", back: "M16 5.5v13L7 12z", play: "M8 5v14l11-7z",
  pause: "M7 5h3.5v14H7zM13.5 5H17v14h-3.5z", next: "M8 5.5v13l9-6.5z", last: "M18 5v14M5 5.5v13L15 12z",
};

export default function show(el, run) {
  const svg = parsed(run.drawing || decode(el.querySelector("img").src));
  el.classList.add("rr-page");
  const still = make("div", { class: "rr-still" });  // on paper
  still.append(...el.childNodes);
  still.lastElementChild.remove();  // it says how to play
  const shadow = el.attachShadow({ mode: "open" });  // the page's styles for HTML stay outside
  player(shadow, run, svg);
  shadow.querySelector(".rr-player").prepend(still);
}

function parsed(text) {
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

function decode(source) {
  return new TextDecoder().decode(Uint8Array.from(atob(source.split(",")[1]), (c) => c.charCodeAt(0)));
}

function player(el, run, svg) {
  const { bars, texts, places, steps } = run, last = steps.length;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const view = parts(el, run, svg);
  const stage = drawn(view, run, svg);
  const told = table(view, run);
  let at = 0, speed = 1, frame = 0;

  const sentence = (k) => {
    if (!k) return last ? "Before the first event." : "Nothing was recorded.";
    const [, what, bar] = steps[k - 1], name = texts[bars.label[bar]], place = places[bars.place[bar]];
    const line = place && what !== ENDS ? ` (${place[0]}, line ${place[1]})` : "";
    const does = what === BEGINS ? "calls" : what === WAITS ? "waits for" : "is done with";
    return `Rank ${bars.rank[bar]} ${does} ${name}${line}.`;
  };
  const show = (position, quiet = true) => {
    at = Math.max(0, Math.min(last, position));
    const k = Math.floor(at + 1e-6);
    stage.show(at);
    if (view.shown !== k) {
      view.shown = k;
      view.said.textContent = sentence(k);
      view.slider.value = k;
      view.slider.setAttribute("aria-valuetext", sentence(k));
      view.count.textContent = `${k.toLocaleString("en")} / ${last.toLocaleString("en")}`;
      told.show(k);
    }
    view.said.setAttribute("aria-live", quiet ? "off" : "polite");
  };
  const playing = () => frame !== 0;
  const pause = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    view.play(false);
    show(at, false);
  };
  // Runs `each` with the seconds since it was called last, until it returns false.
  const animate = (each) => {
    let before = performance.now();
    const tick = (now) => {
      if (!view.root.isConnected || !each(Math.max(0, Math.min(0.1, (now - before) / 1000)))) return pause();
      before = now;
      frame = requestAnimationFrame(tick);
    };
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(tick);
  };
  const play = () => {
    let time = at >= last ? 0 : Math.floor(at);
    view.play(true);
    show(time);
    animate((seconds) => {
      const rate = speed * Math.max(1, (last / PACE) ** 0.75);
      time = Math.min(last, time + seconds * rate);
      const whole = Math.floor(time), eased = ease(time - whole);
      show(still.matches ? whole : rate > EASED_UP_TO ? time : whole + eased);
      return time < last;
    });
  };
  const go = (k) => { pause(); show(Math.max(0, Math.min(last, k)), false); };
  const step = (by) => {
    const from = at, to = Math.max(0, Math.min(last, by > 0 ? Math.floor(at + 1e-6) + by : Math.ceil(at - 1e-6) + by));
    if (still.matches) return go(to);
    let part = 0;
    animate((seconds) => {
      part = Math.min(1, part + seconds / 0.22);
      show(from + (to - from) * ease(part), false);
      return part < 1;
    });
  };
  const act = {
    play: () => (playing() ? pause() : play()), first: () => go(0), last: () => go(last),
    back: () => step(-1), next: () => step(1), to: go, pick: (x) => go(stage.stepAt(x)),
    speed: (value) => { speed = value; },
    zoom: (value) => { stage.lay({ zoom: value }); show(at); },
    scale: (value) => { stage.lay({ toScale: value }); show(at); },
  };
  view.wire(act);
  new ResizeObserver(() => { if (view.stage.clientWidth > 200) { stage.lay({}); show(at); } }).observe(view.stage);
  stage.lay({});
  show(last);
  if (still.matches || !(Math.abs(Date.now() / 1000 - run.made) < NEW)) return;
  const seen = ([{ intersectionRatio }], watch) => { if (intersectionRatio >= 0.3) { watch.disconnect(); play(); } };
  new IntersectionObserver(seen, { threshold: 0.3 }).observe(view.stage);
}

function ease(part) {
  return part * part * (3 - 2 * part);
}

// ---- the page's parts ----

function parts(el, run, svg) {
  const number = (globalThis.rrPlayers = (globalThis.rrPlayers || 0) + 1);
  const root = make("div", { class: "rr-player", role: "group", tabindex: 0,
    "aria-label": `Player ${number}, ${run.headline}. Space plays and pauses, arrow keys step.` });
  const bar = make("div", { class: "rr-controls" }), buttons = {};
  const titles = { first: "To the beginning (Home)", back: "One step back (left arrow)", play: "Play (space)",
    next: "One step on (right arrow)", last: "To the end (End)" };
  for (const [name, title] of Object.entries(titles)) {
    buttons[name] = make("button", { type: "button", title, "aria-label": title.split(" (")[0], class: `rr-${name}` });
    buttons[name].append(icon(name));
    bar.append(buttons[name]);
  }
  const slider = make("input", { type: "range", min: 0, max: run.steps.length, step: 1, value: 0, "aria-label": "Step" });
  const count = make("span", { class: "rr-count" });
  const speed = choice("Speed", [[0.25, "¼×"], [0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"]]);
  const zoom = choice("Zoom", [[1, "whole"], [2, "2×"], [5, "5×"], [20, "20×"], [100, "100×"]]);
  const scale = make("input", { type: "checkbox" }), label = make("label", {}, "to scale");
  label.prepend(scale);
  bar.append(slider, count, speed);
  if (run.steps.length > 30) bar.append(zoom);
  bar.append(label);
  const stage = make("div", { class: "rr-stage", role: "group", "aria-label": `Lanes, player ${number}` });
  const said = make("p", { class: "rr-said" }), lower = make("div", { class: "rr-lower" });
  root.append(...ending(run), bar, stage, said, lower);
  el.append(make("style", {}, STYLE), root);
  const view = { root, number, stage, said, slider, count, lower, buttons };
  view.play = (on) => {
    buttons.play.replaceChildren(icon(on ? "pause" : "play"), on ? "Pause" : "Play");
    buttons.play.setAttribute("aria-label", on ? "Pause" : "Play");
  };
  view.play(false);
  view.wire = (act) => {
    for (const name of Object.keys(titles)) buttons[name].addEventListener("click", () => act[name]());
    slider.addEventListener("input", () => act.to(Number(slider.value)));
    speed.firstElementChild.addEventListener("change", (e) => act.speed(Number(e.target.value)));
    zoom.firstElementChild.addEventListener("change", (e) => act.zoom(Number(e.target.value)));
    scale.addEventListener("change", () => act.scale(scale.checked));
    stage.addEventListener("pointerdown", (down) => {
      const pick = (move) => act.pick(move.clientX - svg.getBoundingClientRect().left);
      const up = () => { removeEventListener("pointermove", pick); removeEventListener("pointerup", up); };
      addEventListener("pointermove", pick);
      addEventListener("pointerup", up);
      pick(down);
    });
    const keys = { " ": "play", ArrowRight: "next", ArrowLeft: "back", Home: "first", End: "last" };
    root.addEventListener("keydown", (e) => {
      const own = e.target.tagName === "SELECT" || (e.key === " " && e.target !== root && e.target !== slider);
      const plain = !(e.ctrlKey || e.metaKey || e.altKey || e.shiftKey);
      if (keys[e.key] && plain && !own) { act[keys[e.key]](); e.preventDefault(); }
    });
    ownKeys(root, el.host);
  };
  return view;
}

function choice(name, options) {
  const select = make("select", { "aria-label": name, title: name });
  for (const [value, words] of options) select.append(make("option", { value, ...(value === 1 && { selected: "" }) }, words));
  const label = make("span", {});
  label.append(select);
  return label;
}

function icon(name) {
  const svg = shape("svg", { viewBox: "0 0 24 24", "aria-hidden": "true", class: "rr-icon" });
  svg.append(shape("path", { d: ICONS[name] }));
  return svg;
}

function make(tag, attributes, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// ---- the drawing: its marks are moved when the page's width changes, else only what is in flight moves ----

function drawn(view, run, svg) {
  const about = Object.fromEntries(Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]));
  const last = run.steps.length;
  const stays = shape("svg", { class: "rr-stays", "aria-hidden": "true" });
  const front = shape("svg", { class: "rr-front", "aria-hidden": "true" });
  const gutter = shape("rect", { class: "ground", y: about.top, width: about.left - 6, height: about.bottom - about.top });
  stays.append(gutter, svg.querySelector(".stays"));
  const future = make("div", { class: "rr-future" }), head = make("div", { class: "rr-head" });
  for (const part of [future, head]) {
    part.style.top = `${about.top - 2}px`;
    part.style.height = `${about.bottom - about.top + 4}px`;
  }
  const all = make("div", { class: "rr-all" });
  all.append(svg, future, head, front, stays);
  view.stage.append(all);
  svg.setAttribute("class", "rr-run");  // a layer of its own: what moves above it does not draw it again
  for (const name of ["viewBox", "width"]) svg.removeAttribute(name);
  const marks = [...svg.querySelectorAll("[data-x]")].map((mark) => [mark, mark.dataset.x.split(" ").map(Number)]);
  const ys = new Map(marks.filter(([m]) => m.tagName === "polygon").map(([m]) => [m, m.getAttribute("points").split(" ").map((p) => p.split(",")[1])]));
  const words = new Map(marks.filter(([m]) => m.tagName === "text").map(([m]) => [m, m.textContent.length * m.getAttribute("font-size") * 0.61 + 4]));
  const order = run.at.slice(0, last), scaled = run.steps.map(([time]) => time / run.length);
  let zoom = 1, toScale = false, width = 0, edges = [], balls = [];

  const x = (step) => edges[step + 1];
  // Where the reader is: half way from the last step that happened to the next one.
  const here = (at) => {
    const far = Math.min(at + 0.5, last + 0.5), before = Math.floor(far);
    return at >= last ? edges[last + 1] : edges[before] + (edges[before + 1] - edges[before]) * (far - before);
  };

  function lay(wanted) {
    ({ zoom = zoom, toScale = toScale } = wanted);
    const seen = view.stage.clientWidth || 900;
    width = seen * zoom;
    const room = width - about.left - about.right;
    edges = [0, ...(toScale ? scaled : order), 1].map((part) => about.left + part * room);
    all.style.width = future.style.width = `${width}px`;
    for (const part of [svg, front]) part.setAttribute("width", width);
    stays.setAttribute("width", seen);
    const height = explain(seen);
    for (const part of [svg, front, stays]) part.setAttribute("height", height);
    all.style.setProperty("--rr-tall", `${height}px`);
    view.stage.toggleAttribute("tabindex", false);
    showMore();
    if (zoom > 1 || view.stage.scrollHeight > view.stage.clientHeight + 1) view.stage.setAttribute("tabindex", 0);  // the stage scrolls, so keys must reach it
    stays.classList.toggle("rr-scaled", toScale);
    for (const [mark, at] of marks) move(mark, at);
  }

  // Marks the stage's lower edge while there are lanes below it.
  function showMore() {
    const { scrollHeight, scrollTop, clientHeight } = view.stage;
    view.stage.classList.toggle("rr-more", scrollHeight - scrollTop - clientHeight > 1);
  }
  view.stage.addEventListener("scroll", showMore);

  // Puts what explains the marks into rows of the page's width; returns where they end.
  function explain(seen) {
    let x = 4, row = 0, first = 0, entry = [];
    for (const part of stays.querySelectorAll(".stays rect, .stays line, .stays text")) {
      const [left, top] = ["x", "y"].map((name) => Number(part.getAttribute(name) ?? part.getAttribute(`${name}1`)));
      if (top <= about.bottom + 20) continue;  // a title, or a rank's name
      if (!entry.length) first = left;
      entry.push(part);
      if (part.tagName !== "text") continue;
      const wide = left - first + part.textContent.length * 6.2 + 14;
      if (x > 4 && x + wide > seen) [x, row] = [4, row + 1];
      for (const one of entry)
        one.setAttribute("transform", `translate(${x - first} ${about.bottom + 40 + 20 * row - top})`);
      x += wide;
      entry = [];
    }
    return about.bottom + 50 + 20 * row;
  }

  function move(mark, at) {
    const from = x(at[0]), to = x(at[at.length - 1]);
    if (mark.tagName === "rect") {
      mark.setAttribute("x", from.toFixed(1));
      mark.setAttribute("width", Math.max(1, to - from - 1).toFixed(1));
    } else if (mark.tagName === "line") {
      mark.setAttribute("x1", from.toFixed(1));
      mark.setAttribute("x2", to.toFixed(1));
    } else if (mark.tagName === "path") {  // many at once, each of so many points
      const points = Number(mark.dataset.points), path = [];
      for (let i = 0; 2 * i < at.length; i++)
        path.push(i % points ? "L" : i && points > 2 ? "zM" : "M", x(at[2 * i]).toFixed(1), " ", at[2 * i + 1]);
      mark.setAttribute("d", path.join(""));
    } else if (mark.tagName === "polygon") {
      mark.setAttribute("points", at.map((step, i) => `${x(step).toFixed(1)},${ys.get(mark)[i]}`).join(" "));
    } else {
      mark.setAttribute("x", (from + 1).toFixed(1));
      mark.setAttribute("display", at.length > 1 && to - from < words.get(mark) ? "none" : "inline");
    }
  }

  function stepAt(place) {
    let low = 0, high = last;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (here(middle - 0.5) <= place) low = middle; else high = middle - 1;
    }
    return low;
  }

  function show(at) {
    const place = here(at);
    future.style.transform = head.style.transform = `translateX(${place}px)`;
    future.hidden = at >= last;
    head.hidden = at <= 0 || at >= last;
    if (zoom > 1) follow(place);
    let shown = 0;
    for (const [begin, end, y, v] of run.flights) {
      if (at < begin + 0.5 || (end >= 0 && at > end + 0.5) || shown >= IN_FLIGHT) continue;
      const part = end < 0 ? 1 : (place - x(begin)) / (x(end) - x(begin) || 1);
      const to = end < 0 ? x(Math.min(begin + 1, last)) : place;
      ball(shown++, Math.min(to, end < 0 ? to : x(end)), y + (v - y) * Math.min(1, part), end < 0, run.bars.rank[run.steps[begin][2]]);
    }
    for (; balls[shown]; shown++) balls[shown].setAttribute("visibility", "hidden");
  }

  // A message in flight, with its sender's number; hollow where nobody receives it.
  function ball(index, left, top, lost, rank) {
    if (!balls[index]) {
      balls[index] = shape("g", {});
      balls[index].append(shape("circle", { r: 9 }), shape("text", { y: 3.5, "text-anchor": "middle" }));
      front.append(balls[index]);
    }
    balls[index].setAttribute("class", lost ? "rr-lost" : "rr-ball");
    balls[index].setAttribute("visibility", "visible");
    balls[index].setAttribute("transform", `translate(${left.toFixed(1)} ${top.toFixed(1)})`);
    if (balls[index].textContent !== `${rank}`) balls[index].lastChild.textContent = rank;
  }

  function follow(place) {
    const { scrollLeft, clientWidth } = view.stage;
    if (place < scrollLeft + about.left + 40 || place > scrollLeft + 0.8 * clientWidth)
      view.stage.scrollLeft = place - Math.max(about.left + 60, 0.3 * clientWidth);
  }

  return { lay, show, stepAt };
}

// ---- what each rank does now, and where it is in the code ----

function table(view, run) {
  const { bars, texts, places } = run, of = byRank(run);
  const tensors = [...bars.before, ...bars.after].some((text) => texts[text]);
  const body = make("tbody", {}), top = make("tr", {}), list = make("table", {});
  for (const words of ["rank", "does", ...(tensors ? ["tensor"] : [])]) top.append(make("th", { scope: "col" }, words));
  const rows = of.map((_, rank) => {
    const row = make("tr", {}), cells = [make("td", {}), ...(tensors ? [make("td", { class: "rr-tensor" })] : [])];
    row.append(make("th", { scope: "row" }, rank), ...cells);
    body.append(row);
    return cells;
  });
  const thead = make("thead", {});
  thead.append(top);
  list.append(thead, body);
  const scroller = make("div", { class: "rr-table", tabindex: 0, role: "region", "aria-label": `What each rank does, player ${view.number}` });
  scroller.append(list);
  const code = make("div", { class: "rr-code", tabindex: 0, role: "region", "aria-label": `Lines of code, player ${view.number}` });
  const lines = places.map((place, index) => ({ place, index }))
    .sort((a, b) => a.place[0].localeCompare(b.place[0], "en", { numeric: true }) || a.place[1] - b.place[1]);
  let cell = null, revealed = -1;
  for (const line of lines) {
    if (line.place[0] !== cell) code.append(make("div", { class: "rr-cell" }, (cell = line.place[0])));
    line.row = make("div", { class: "rr-line" });
    line.marks = make("span", { class: "rr-marks" });
    line.row.append(make("span", { class: "rr-number" }, line.place[1]), make("code", {}, line.place[2]), line.marks);
    code.append(line.row);
  }
  if (bars.rank.length) view.lower.append(...(lines.length ? [code] : []), scroller);
  if (run.left_out) view.lower.append(make("p", { class: "rr-note" }, `${run.left_out.toLocaleString("en")} later calls are not shown.`));

  function show(k) {
    const at = new Map();
    rows.forEach((cells, rank) => {
      const bar = now(run, of[rank], k);
      const left = k === run.steps.length && (bar < 0 || bars.end[bar] < k) && run.ending?.ranks[rank];
      if (bar < 0) { set(cells, [left || (k < run.steps.length ? "nothing yet" : "no call"), ""]); cells[0].className = ""; return; }
      const over = bars.end[bar] < k, about = texts[bars.about[bar]];
      const words = texts[bars.label[bar]] + (about ? ` (${about})` : "");
      set(cells, [left || (over ? `after ${words}` : `in ${words}`), texts[(over ? bars.after : bars.before)[bar]]]);
      cells[0].className = over ? "" : `rr-in ${texts[bars.kind[bar]]}`;
      at.set(bars.place[bar], [...(at.get(bars.place[bar]) || []), rank]);
    });
    for (const line of lines) {
      const words = some(at.get(line.index) || []);
      if (line.marks.textContent === words) continue;
      line.marks.textContent = words;
      line.row.classList.toggle("rr-at", words !== "");
    }
    reveal(k ? bars.place[run.steps[k - 1][2]] : -1);
  }

  // Scrolls the code, never the page, to the line that has just been reached.
  function reveal(place) {
    if (place < 0 || place === revealed) return;
    revealed = place;
    const { row } = lines.find((line) => line.index === place);
    const above = row.offsetTop - code.offsetTop, tall = code.clientHeight;
    if (above < code.scrollTop || above + row.offsetHeight > code.scrollTop + tall)
      code.scrollTop = above - tall / 3;
  }

  return { show };
}

// How the run failed, above its picture: the title, unless the page says it already, and who waits for whom.
function ending({ failure, ending }) {
  const part = make("div", { class: "rr-ending" }), words = make("p", { class: "rr-title" });
  failure.split("`").forEach((text, index) => words.append(index % 2 ? make("code", {}, text) : text));
  if (failure) part.append(words);
  if (ending?.graph) {
    const graph = parsed(ending.graph), scroller = make("div", { class: "rr-graph", tabindex: 0, role: "group", "aria-label": "Who waits for whom" });
    graph.style.minWidth = `${READABLE * Number.parseFloat(graph.getAttribute("width"))}px`;
    scroller.append(graph);
    part.append(scroller);
  }
  return part.hasChildNodes() ? [part] : [];
}

// The call that a rank is in, the one it is held up by first; else the last one it was in.
function now({ bars }, list, k) {
  let low = 0, high = list.length;  // calls that have begun
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bars.begin[list[middle]] < k) low = middle + 1; else high = middle;
  }
  const begun = list.slice(Math.max(0, low - 64), low).reverse();
  const under = begun.filter((bar) => bars.end[bar] >= k);
  const held = under.find((bar) => bars.wait[bar] < k);
  return held ?? under[0] ?? begun.reduce((a, b) => (a < 0 || bars.end[b] > bars.end[a] ? b : a), -1);
}

function byRank({ bars, ranks }) {
  const lists = Array.from({ length: ranks }, () => []);
  bars.rank.forEach((rank, bar) => lists[rank].push(bar));
  for (const list of lists) list.sort((a, b) => bars.begin[a] - bars.begin[b]);
  return lists;
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

function set(cells, words) {
  cells.forEach((cell, index) => { if (cell.textContent !== words[index]) cell.textContent = words[index]; });
}

// The smallest scale at which the labels of a graph can be read; a narrower page scrolls it.
const READABLE = 0.8;

const STYLE = `
:host { --rr-ink: var(--jp-content-font-color1, #1c1c1c); --rr-ground: var(--jp-layout-color0, #fff);
  --rr-accent: var(--jp-brand-color1, #0072b2); --rr-pure: 84%; --rr-edge: color-mix(in srgb, var(--rr-ink) 18%, var(--rr-ground));
  --rr-soft: color-mix(in srgb, var(--rr-ink) 6%, var(--rr-ground)); --rr-quiet: color-mix(in srgb, var(--rr-ink) 72%, var(--rr-ground)); display: block; }
[hidden] { display: none !important; }
.rr-player { font: 14px/1.5 var(--jp-ui-font-family, system-ui), 'DejaVu Sans', sans-serif; color: var(--rr-ink); background: var(--rr-ground);
  max-width: 1100px; margin: 6px 0 10px; padding: 10px 16px 12px; border: 1px solid var(--rr-edge); border-radius: 10px; box-sizing: border-box; }
:focus-visible { outline: 2px solid var(--rr-accent); outline-offset: 2px; }
.rr-stage { overflow-x: auto; overflow-y: hidden; cursor: ew-resize; touch-action: pan-y; }
.rr-all { position: relative; overflow: clip; contain: layout paint; }
.rr-all > svg { display: block; }
.rr-stage.rr-more { box-shadow: inset 0 -14px 12px -12px var(--rr-quiet); }
.rr-run { will-change: transform; }
.rr-front, .rr-future, .rr-head { position: absolute; top: 0; left: 0; pointer-events: none; will-change: transform; }
.rr-future { background: var(--rr-ground); opacity: 0.84; }
.rr-head { width: 2px; margin-left: -1px; background: var(--rr-accent); border-radius: 1px; }
.rr-stays { position: sticky; left: 0; margin-top: calc(-1 * var(--rr-tall)); pointer-events: none; will-change: transform; }
.rr-scaled .unscaled { display: none; }
.rr-ball circle { fill: #0072b2; stroke: var(--rr-ground); stroke-width: 2; }
.rr-ball text { fill: #fff; stroke: none !important; font-size: 10.5px; font-weight: 700; }
.rr-lost circle { fill: var(--rr-ground); stroke: #d55e00; stroke-width: 2; }
.rr-lost text { fill: var(--rr-ink); font-size: 10.5px; font-weight: 700; }
.rr-icon { display: block; width: 20px; height: 20px; fill: currentColor; stroke: currentColor; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.rr-controls { display: flex; flex-wrap: wrap; gap: 4px; align-items: center; margin-bottom: 6px; }
.rr-controls button { display: grid; place-items: center; width: 32px; height: 32px; padding: 0; border: 0; border-radius: 8px;
  background: transparent; color: var(--rr-quiet); cursor: pointer; }
.rr-controls button:hover { background: var(--rr-soft); color: var(--rr-ink); }
.rr-controls .rr-play { display: inline-flex; justify-content: center; gap: 6px; width: auto; min-width: 96px; height: 36px; padding: 0 14px 0 10px;
  font: inherit; font-weight: 600; border-radius: 18px; background: var(--rr-accent); color: var(--rr-ground); margin: 0 2px; }
.rr-controls .rr-play:hover { background: var(--rr-accent); color: var(--rr-ground); filter: brightness(1.1); }
.rr-controls input[type=range] { flex: 1 1 60px; min-width: 60px; margin: 0 8px; accent-color: var(--rr-accent); }
.rr-controls select { font: inherit; font-size: 13px; color: inherit; height: 30px; padding: 0 4px; background: var(--rr-ground); border: 1px solid var(--rr-edge); border-radius: 8px; }
.rr-controls label { display: inline-flex; gap: 5px; align-items: center; font-size: 13px; white-space: nowrap; margin-left: 6px; accent-color: var(--rr-accent); }
.rr-count { font-size: 13px; color: var(--rr-quiet); font-variant-numeric: tabular-nums; white-space: nowrap; margin-right: 6px; }
.rr-said { font-size: 16px; font-weight: 600; line-height: 1.4; min-height: 1.4em; margin: 6px 0; }
.rr-lower { display: flex; flex-wrap: wrap; gap: 10px 28px; align-items: flex-start; font-size: 13px; }
.rr-table { flex: 1 1 300px; max-height: 420px; overflow: auto; }
.rr-table table { font: inherit; color: inherit; border-collapse: collapse; width: 100%; margin: 0; }
.rr-table th, .rr-table td { text-align: left; font-weight: 400; padding: 2px 10px 2px 0; vertical-align: top; overflow-wrap: anywhere; }
.rr-table thead th { overflow-wrap: normal; color: var(--rr-quiet); font-size: 12px; }
.rr-table tbody th { font-weight: 600; width: 2.6em; }
.rr-table tbody tr { border-top: 1px solid var(--rr-edge); }
.rr-in { font-weight: 600 !important; }
.rr-in::before { content: ""; display: inline-block; width: 9px; height: 9px; margin-right: 7px; border-radius: 50%; background: var(--c); }
.rr-tensor, .rr-code code { font-family: var(--jp-code-font-family, ui-monospace, monospace); font-size: 12px; }
.rr-code { flex: 1.3 1 340px; max-height: 420px; overflow: auto; }
.rr-cell { font-size: 12px; color: var(--rr-quiet); padding: 3px 0; }
.rr-line { display: flex; gap: 10px; padding: 2px 8px 2px 6px; border-left: 3px solid transparent; border-radius: 0 6px 6px 0; }
.rr-line.rr-at { border-left-color: var(--rr-accent); background: var(--rr-soft); }
.rr-line code { flex: 1 1 0; min-width: 0; background: transparent; color: inherit; white-space: pre-wrap; overflow-wrap: break-word; padding-left: 2ch; text-indent: -2ch; }
.rr-number { min-width: 1.8em; text-align: right; color: var(--rr-quiet); font-variant-numeric: tabular-nums; }
.rr-marks { font-weight: 600; font-size: 12px; color: color-mix(in srgb, var(--rr-accent) 78%, var(--rr-ink)); white-space: nowrap; }
.rr-note { flex: 1 1 100%; margin: 0; color: var(--rr-quiet); }
.rr-ending { margin-bottom: 12px; padding-bottom: 12px; border-bottom: 1px solid var(--rr-edge); }
.rr-ending .rr-title { font-size: 15px; font-weight: 600; margin: 0 0 10px; }
.rr-graph { overflow-x: auto; }
.rr-ending svg { display: block; max-width: 100%; height: auto; }
.rr-still { display: none; }
@media screen and (max-height: 480px) {  /* a page at 200 %: lanes and code are in sight together */
  .rr-player { padding: 4px 8px; }
  .rr-controls { margin-bottom: 0; gap: 0; }
  .rr-controls button { width: 26px; height: 26px; }
  .rr-controls .rr-play { min-width: 76px; height: 28px; padding: 0 10px 0 6px; }
  .rr-controls select { height: 26px; }
  .rr-stage { max-height: 38vh; overflow-y: auto; }
  .rr-said { font-size: 13px; margin: 2px 0; }
  .rr-table, .rr-code { max-height: 30vh; }
}
@media print {
  .rr-player { border: 0; padding: 0; max-width: 100%; }
  .rr-still { display: block; }
  .rr-still img { max-width: 100%; height: auto; }
  .rr-stage, .rr-controls, .rr-said, .rr-table, .rr-code { display: none; }
}
`;
