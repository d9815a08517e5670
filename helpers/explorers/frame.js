// The frame of all explorers: title, controls, one sentence, a picture. After it comes the script of one
// explorer: plan(set, given), as in Python; draw(pen, now, set); and tie(set, changed, given) if controls
// depend on each other, which returns the names of those that have no effect.
const NS = "http://www.w3.org/2000/svg";
const count = (n, f) => Array.from({ length: Math.max(0, n) }, (_, i) => f(i));
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

function fixed(value, digits) {
  const exact = value.toFixed(60), cut = exact.slice(0, exact.length - 60 + digits).replace(/\.$/, "");
  const half = /^50*$/.test(exact.slice(exact.length - 60 + digits));
  // Python rounds an exact half to the even digit, toFixed rounds it up
  const text = half && "02468".includes(cut.at(-1)) ? cut : value.toFixed(digits);
  return text.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
}

function bytes(value) {
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    const digits = unit === "B" || value >= 99.5 ? 0 : 1;
    if (value < 999.5) return `${fixed(value, digits).replace(/\.0$/, "")} ${unit}`;
    value /= 1000;
  }
  return value < 1e6 ? `${fixed(value, 0).replace(/,/g, "")} PB` : "huge";
}

function seconds(value) {
  const [factor, unit] = value >= 1 || !value ? [1, "s"] : value * 1e3 >= 1 ? [1e3, "ms"] : [1e6, "µs"];
  const scaled = value * factor, digits = scaled ? Math.max(0, 2 - Math.floor(Math.log10(scaled))) : 0;
  return `${fixed(scaled, digits)} ${unit}`;
}

function written(value, how) {
  if (!how) return typeof value === "string" ? value : value.toLocaleString("en-US");
  if (how === "bytes") return bytes(value);
  if (how === "seconds") return seconds(value);
  if (how.endsWith("%")) return `${fixed(value * 100, parseInt(how))}%`;
  if (/^\d/.test(how)) return fixed(value, +how);
  const ending = value === 1 ? "" : /(s|ch)$/.test(how) && !how.endsWith("epoch") ? "es" : "s";
  return `${value.toLocaleString("en-US")} ${how}${ending}`;
}

// Split a template into [text, whether it is a value].
const filled = (template, values) => template.split(/(\{\w+(?::[^}]+)?\})/).map((part) => {
  const place = /^\{(\w+)(?::([^}]+))?\}$/.exec(part);
  return place ? [written(values[place[1]], place[2]), true] : [part, false];
});

function words(page, set, now) {
  const values = { ...set, ...now }, plain = (parts) => parts.map(([text]) => text).join("");
  const says = (now.says || ["says"]).flatMap((key, i) => [
    ...(i ? [[" ", false]] : []), ...filled(page.words[key], values),
  ]);
  return { says, lines: [...now.rows.map((row) => plain(filled(page.words.row, row))), plain(says)] };
}

function make(tag, attributes = {}, ...children) {
  const { className, ...rest } = attributes, made = document.createElement(tag);
  if (className) made.className = className;
  for (const [name, value] of Object.entries(rest)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// What draw() draws with. A mark keeps its element from one drawing to the next, so that it glides.
function penOn(host, colors) {
  const svg = document.createElementNS(NS, "svg"), legend = make("div", { className: "rr-legend" });
  const kept = new Map(), id = `rr-${Math.random().toString(36).slice(2)}`;
  let used, next, height;
  host.append(svg, legend);
  svg.setAttribute("role", "img");
  svg.innerHTML = `<defs>
    <pattern id="${id}-stripes" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="7" height="7" fill="${colors.wait.tint}"/>
      <rect width="2" height="7" fill="${colors.wait.color}" opacity=".55"/>
    </pattern>
    <marker id="${id}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6.5" markerHeight="6.5" orient="auto">
      <path d="M0 0 L8 4 L0 8z" fill="context-stroke"/>
    </marker></defs>`;
  function add(tag, key, attributes, text) {
    const name = `${tag} ${key ?? used.size}`;
    const mark = kept.get(name) ?? document.createElementNS(NS, tag);
    for (const [what, value] of Object.entries(attributes)) {
      if (value === null) mark.removeAttribute(what);
      else mark.setAttribute(what, value);
    }
    if (text !== undefined) {
      if (tag === "text") mark.textContent = text;
      else mark.replaceChildren(Object.assign(document.createElementNS(NS, "title"), { textContent: text }));
    }
    if (mark === next) next = next.nextSibling;
    else svg.insertBefore(mark, next);  // marks that stay are not moved, because they would not glide
    kept.set(name, mark);
    used.add(name);
  }
  const pen = {
    svg, colors, stripes: `url(#${id}-stripes)`,
    rect: (key, x, y, width, high, fill, more = {}, title) =>
      add("rect", key, { x, y, width: Math.max(0, width), height: high, fill, rx: 3, ...more }, title),
    // how: any of start, middle, end, soft, dark, white, bold, halo
    text: (key, x, y, text, how = "", more = {}) => add("text", key, {
      style: `transform: translate(${x}px, ${y}px)`, class: how.replace(/\w+/g, "rr-$&"), ...more,
    }, text),
    rule: (key, d) => add("path", key, { d, class: "rr-rule" }),
    path: (key, d, stroke, more = {}, title) => add("path", key, { d, stroke, fill: "none", ...more }, title),
    arrow: (key, x, y, toX, toY, stroke) => add("path", key, {
      d: `M${x} ${y} L${toX} ${toY}`, stroke, "stroke-width": 2, "marker-end": `url(#${id}-head)`,
    }),
    legend: (entries) => legend.replaceChildren(...entries.map(([name, fill, line]) => {
      if (!fill) return make("span", { className: "rr-soft" }, name);
      const swatch = make("i", line ? { className: "rr-line" } : {});
      swatch.style.background = fill === pen.stripes
        ? `repeating-linear-gradient(45deg, ${colors.wait.tint} 0 3px, ${colors.wait.color} 3px 4px)` : fill;
      return make("span", {}, swatch, name);
    })),
    high: (value) => { height = value; },
    redraw(paint) {
      pen.width = Math.max(320, host.clientWidth);
      [used, next] = [new Set(), svg.firstElementChild.nextSibling];
      paint();
      for (const [name, mark] of kept) if (!used.has(name)) { mark.remove(); kept.delete(name); }
      svg.setAttribute("width", pen.width);
      svg.setAttribute("height", height);
    },
  };
  return pen;
}

// Round numbers from 0 to `most`, `about` of them.
function ticks(most, about) {
  const rough = most / about, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough);
  return count(Math.floor(most / step + 1e-9) + 1, (i) => i * step);
}

// A time axis below lanes that end at `y`.
function timeAxis(pen, left, y, scale, most, name) {
  for (const at of ticks(most, pen.width / 110)) {
    pen.rule(`tick ${at}`, `M${left + at * scale} ${y} v5`);
    pen.text(`tick ${at}`, left + at * scale, y + 20, fixed(at, at % 1 ? 1 : 0), "middle soft");
  }
  pen.text("axis", left, y + 42, name, "soft");
}

// Curves on logarithmic axes. box: x, y, width, height. lines: { name, color, dash, points }.
// dots: name, x, y, color.
function chart(pen, { box: [left, top, width, high], x, y, names, writes, lines, dots }) {
  const log = Math.log10, across = (v) => left + (log(v / x[0]) / log(x[1] / x[0])) * width;
  const up = (v) => top + high - (log(v / y[0]) / log(y[1] / y[0])) * high;
  const inside = (v, [low, most]) => v >= low * 0.999 && v <= most * 1.001;
  const powers = ([low, most]) => count(Math.ceil(log(most / low)) + 2, (i) => 10 ** (Math.floor(log(low)) + i))
    .flatMap((power) => (most / low < 300 ? [power, 2 * power, 5 * power] : [power]))
    .filter((v) => inside(v, [low, most]));
  const every = (list, room) => list.filter((_, i) => i % Math.ceil(list.length / room) === 0);
  for (const v of every(powers(y), 6)) {
    pen.rule(`y ${v}`, `M${left} ${up(v)} h${width}`);
    pen.text(`y ${v}`, left - 8, up(v) + 4, writes[1](v), "end soft");
  }
  for (const v of every(powers(x), width / 80)) {
    pen.rule(`x ${v}`, `M${across(v)} ${top} v${high}`);
    pen.text(`x ${v}`, across(v), top + high + 20, writes[0](v), "middle soft");
  }
  pen.text("x", left + width / 2, top + high + 42, names[0], "middle soft");
  pen.text("y", left, top - 12, names[1], "soft");
  for (const { name, color, dash, points } of lines) {
    const shown = points.filter(([, v]) => inside(v, y)).map(([a, b]) => `${across(a)} ${up(b)}`);
    const look = { "stroke-width": 2.5, "stroke-dasharray": dash || "none" };
    pen.path(name, `M${shown.join(" L")}`, color, look, name);
  }
  for (const [name, a, b, color] of dots) {
    const side = across(a) > left + width - 90 ? "end" : across(a) < left + 90 ? "start" : "middle";
    pen.rect("dot", across(a) - 6, up(b) - 6, 12, 12, color, { rx: 6, class: "rr-dot" }, name);
    pen.text("dot", across(a), up(b) + 26, name, `${side} halo`);
  }
}

// Stacked bars. box: x, y, width; each row has `parts`, numbers in the order of `looks`, and `total`.
function bars(pen, key, { box: [left, top, width], rows, looks, most, write, pitch, high, limit }) {
  const scale = width / most;
  rows.forEach((row, i) => {
    let x = left;
    row.parts.forEach((part, k) => {
      const [name, color] = looks[k], title = `${name}: ${write(part)}`, look = { rx: 0, class: "rr-part" };
      pen.rect(`${key} ${i} ${k}`, x, top + i * pitch, part * scale, high, color, look, title);
      x += part * scale;
    });
  });
  if (limit) {
    const x = left + limit * scale, end = top + rows.length * pitch;
    pen.path(`${key} limit`, `M${x} ${top - 8} V${end}`, pen.colors.failure.color, { "stroke-width": 2.5 });
    pen.text(`${key} limit`, x, top - 14, `limit ${write(limit)}`, "middle");
  }
  rows.forEach((row, i) => {
    const x = left + sum(row.parts) * scale + 7;
    pen.text(`${key} ${i}`, x, top + i * pitch + high / 2 + 5, write(row.total), "halo");
  });
}

function explorer(place, page) {
  const set = { ...page.start }, group = `rr-${Math.random().toString(36).slice(2)}`;
  const says = make("p", { className: "rr-says", "aria-live": "polite" }), told = make("pre");
  const [picture, controls] = ["rr-picture", "rr-controls"].map((className) => make("div", { className }));
  const reset = make("button", { type: "button" }, "Reset");
  const inputs = page.controls.map((control) => (control.slider ? slider : buttons)(control));
  const root = make("div", { className: "rr-explorer", role: "group", "aria-label": page.title },
    make("div", { className: "rr-head" }, make("strong", {}, page.title), reset),
    ...(page.note ? [make("p", { className: "rr-note" }, page.note)] : []),
    controls, says, picture, make("details", {}, make("summary", {}, "In words"), told));
  const pen = penOn(picture, page.colors);
  ownKeys(root, root);
  reset.addEventListener("click", () => { Object.assign(set, page.start); update(); });
  const boxes = (slides) => inputs.filter((_, i) => page.controls[i].slider === slides).map(({ box }) => box);
  controls.append(...boxes(false), make("div", { className: "rr-sliders" }, ...boxes(true)));
  place.replaceWith(root);

  function slider({ name, words: label, options }) {
    const now = make("output"), range = { type: "range", min: 0, max: options.length - 1, "aria-label": label };
    const input = make("input", range);
    input.addEventListener("input", () => change(name, options[input.value][1]));
    return {
      name, box: make("label", { className: "rr-slider" }, make("span", {}, label), now, input),
      show(off) {
        const at = options.findIndex(([, value]) => value === set[name]);
        [input.value, input.disabled, now.textContent] = [at, off, options[at][0]];
        input.setAttribute("aria-valuetext", options[at][0]);
      },
    };
  }
  function buttons({ name, words: label, options }) {
    const radios = options.map(() => make("input", { type: "radio", name: `${group}-${name}` }));
    const labels = options.map(([text], i) => make("label", {}, radios[i], make("span", {}, text)));
    const box = make("fieldset", {}, make("legend", {}, label), ...labels);
    radios.forEach((radio, i) => radio.addEventListener("change", () => change(name, options[i][1])));
    return { name, box, show(off) {
      box.disabled = off;
      radios.forEach((radio, i) => { radio.checked = options[i][1] === set[name]; });
    } };
  }
  function change(name, value) {
    set[name] = value;
    update(name);
  }
  function update(changed) {
    const off = typeof tie === "function" ? tie(set, changed, page.given) : [];
    for (const input of inputs) input.show(off.includes(input.name));
    const now = plan(set, page.given), { says: parts, lines } = words(page, set, now);
    const bold = (text) => make("b", text.length < 16 ? { className: "rr-whole" } : {}, text);
    says.replaceChildren(...parts.map(([text, value]) => (value ? bold(text) : text)));
    told.textContent = lines.join("\n");
    pen.svg.setAttribute("aria-label", `${page.title}: ${lines.at(-1)}`);
    pen.redraw(() => draw(pen, now, set));
  }
  update();
  let width = pen.width;
  new ResizeObserver(() => {
    if (Math.max(320, picture.clientWidth) === width) return;
    update();
    width = pen.width;
  }).observe(picture);
}
