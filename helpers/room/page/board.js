// The board, kept up to date by server-sent events. Texts that learners chose are only ever set as text, never as HTML.

const exercises = JSON.parse(document.getElementById("exercises").textContent);
const byName = new Map(exercises.map((each) => [each.name, each]));
const projected = document.body.classList.contains("projected");
const names = new Map(); // learner -> name
const cells = new Map(); // "learner exercise" -> [tries, passed, outcome of the last one]
const codes = new Map(); // learner -> the code that was sent with the hand; the server sends it once
const rows = new Map(); // learner -> row of the table
const choice = document.getElementById("notebook");
const state = document.getElementById("state");
const dialog = document.getElementById("player");
let latest; // the last message
let shown = ""; // names of the exercises in the table's head

function make(tag, text = "", className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (className) element.className = className;
  return element;
}

const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const ask = (path) => fetch(path, { method: "POST", headers: { "X-Room": "board" } });
const called = (name) => {
  const exercise = byName.get(name);
  return exercise ? `${exercise.number} ${exercise.title}` : "no exercise";
};

for (const notebook of new Set(exercises.map((each) => each.notebook))) {
  const option = make("option", notebook.replace("_", " · ").replaceAll("_", " "));
  option.value = notebook;
  choice.append(option);
}
choice.addEventListener("change", () => latest && draw(latest));

/** Return the exercises of the chosen notebook, or of the one on which most learners work. */
function columns() {
  const notebook = choice.value || latest.at || exercises[0].notebook;
  return exercises.filter((each) => each.notebook === notebook);
}

/** Draw a list again only if it has changed, so that what is read or focused stays in place. */
function list(id, items, draw) {
  const section = document.getElementById(id);
  const said = JSON.stringify(items);
  section.hidden = !items.length;
  if (section.dataset.said === said) return;
  const opened = new Set([...section.querySelectorAll("details[open]")].map((each) => each.dataset.of));
  const focused = section.contains(document.activeElement) ? document.activeElement.dataset.of : undefined;
  section.dataset.said = said;
  section.querySelector("ul").replaceChildren(...items.map(draw));
  for (const each of section.querySelectorAll("[data-of]")) {
    if (each.tagName === "DETAILS") each.open = opened.has(each.dataset.of);
    else if (each.dataset.of === focused) each.focus();
  }
}

function hand([learner, exercise, minutes, code]) {
  const item = make("li");
  item.append(make("b", names.get(learner)), ` at ${called(exercise)}, for ${minutes} min`);
  const done = make("button", "Done");
  done.dataset.of = `done-${learner}`;
  done.setAttribute("aria-label", `Take down the hand of ${names.get(learner)}`);
  done.addEventListener("click", () => ask(`lower/${learner}`));
  item.append(done);
  if (code) {
    const more = make("details");
    more.dataset.of = `code-${learner}`;
    const source = make("pre", code);
    source.tabIndex = 0;
    more.append(make("summary", "The code that was sent with it"), source);
    item.append(more);
  }
  return item;
}

function mistake({ key, count, exercise, words }) {
  const item = make("li");
  const play = make("button", "Play");
  play.dataset.of = key;
  play.setAttribute("aria-label", `Play the mistake in ${called(exercise)}`);
  play.addEventListener("click", () => {
    document.getElementById("played").textContent = `${called(exercise)}: ${words}`;
    document.getElementById("wait").hidden = false;
    dialog.querySelector("iframe").src = `play/${key}`;
    dialog.showModal();
  });
  item.append(
    make("b", `${count} of ${latest.joined} ${count === 1 ? "makes" : "make"} ${projected ? "the same" : "this"} mistake now`),
    `, in ${called(exercise)}`,
  );
  if (projected) {
    // The sentence reveals the solution to learners who still think, so the teacher decides when to show it.
    const more = make("details");
    more.dataset.of = key;
    more.append(make("summary", "Show the mistake"), make("p", words), play);
    item.append(more);
  } else {
    item.append(play, make("p", words));
  }
  return item;
}

function stuck([learner, exercise, minutes]) {
  const item = make("li");
  item.append(make("b", names.get(learner)), `: ${minutes} min at ${called(exercise)}`);
  return item;
}

function bar({ name }) {
  const [, passed, tried] = latest.exercises.find((each) => each[0] === name) ?? [name, 0, 0];
  const item = make("li");
  const meter = make("progress");
  meter.max = Math.max(1, latest.joined);
  meter.value = passed;
  meter.setAttribute("aria-label", `${called(name)}: passed`);
  item.append(make("span", called(name)), meter, make("span", `${passed} of ${latest.joined} passed${tried ? `, ${tried} tried` : ""}`));
  return item;
}

function cell(td, learner, exercise) {
  const [tries, passed, outcome] = cells.get(`${learner} ${exercise.name}`) ?? [0, false, ""];
  td.className = passed ? "passed" : tries ? "tried" : "open";
  td.textContent = passed ? (tries > 1 ? `✓ ${tries}×` : "✓") : tries ? `${tries}× ` : "–";
  if (tries && !passed) td.append(make("small", outcome));
  td.title = tries ? `${counted(tries, "check")}, the last one: ${outcome}` : "to come";
}

function row(learner, columns) {
  const tr = rows.get(learner) ?? make("tr");
  rows.set(learner, tr);
  const head = make("th", names.get(learner));
  head.scope = "row";
  const forget = make("button", "×", "forget");
  forget.setAttribute("aria-label", `Remove ${names.get(learner)}`);
  forget.title = "Remove this learner from the room";
  forget.addEventListener("click", () => {
    if (confirm(`Remove ${names.get(learner)} and all data about them?`)) ask(`forget/${learner}`);
  });
  head.append(" ", forget);
  const tds = columns.map((exercise) => {
    const td = make("td");
    cell(td, learner, exercise);
    return td;
  });
  tr.replaceChildren(head, ...tds);
  return tr;
}

/** Draw the whole table if its columns or rows have changed, otherwise only the changed cells. */
function table(news) {
  const grid = document.getElementById("grid");
  const now = columns();
  const said = now.map((each) => each.name).join();
  if (said !== shown || news.learners.length || news.removed.length) {
    shown = said;
    const head = make("tr");
    for (const text of ["Learner", ...now.map((each) => called(each.name))]) {
      const th = make("th", text);
      th.scope = "col";
      head.append(th);
    }
    grid.tHead.replaceChildren(head);
    const sorted = [...names].sort((one, other) => one[1].localeCompare(other[1], undefined, { numeric: true }));
    grid.tBodies[0].replaceChildren(...sorted.map(([learner]) => row(learner, now)));
    return;
  }
  for (const [learner, exercise] of news.cells) {
    const index = now.findIndex((each) => each.name === exercise);
    if (index >= 0) cell(rows.get(learner).cells[index + 1], learner, now[index]);
  }
}

function draw(news) {
  const late = news.stuck.length ?? news.stuck;
  state.className = "";
  state.textContent =
    `${counted(news.joined, "learner")} joined. ${counted(news.up, "hand")} up, ${late} stuck for long.`;
  list("mistakes", news.mistakes, mistake);
  if (projected) {
    document.getElementById("bars").replaceChildren(...columns().map(bar));
    return;
  }
  list("hands", news.hands.map((each) => [...each, codes.get(each[0])]), hand);
  list("stuck", news.stuck, stuck);
  table(news);
}

const stream = new EventSource(projected ? "news?projected" : "news");
stream.addEventListener("message", (event) => {
  latest = JSON.parse(event.data);
  for (const learner of latest.removed ?? []) {
    for (const known of [names, rows, codes]) known.delete(learner);
    for (const key of [...cells.keys()]) if (key.startsWith(`${learner} `)) cells.delete(key);
  }
  for (const [learner, code] of latest.codes ?? []) codes.set(learner, code);
  for (const [learner, name] of latest.learners ?? []) names.set(learner, name);
  for (const [learner, exercise, ...rest] of latest.cells ?? []) cells.set(`${learner} ${exercise}`, rest);
  draw(latest);
});
stream.addEventListener("error", () => {
  state.className = "away";
  state.textContent = "The board's server does not answer. What you see is not up to date.";
  // Browsers do not retry a refused stream, so the page may have to be opened again.
  if (stream.readyState === EventSource.CLOSED) state.textContent += " Open this page again once it is back.";
});

document.getElementById("new-code")?.addEventListener("click", async () => {
  if (confirm("Make a new code? The old code will stop working. Learners who have joined stay.")) {
    await ask("new-code");
    location.reload();
  }
});

dialog.querySelector("iframe").addEventListener("load", () => (document.getElementById("wait").hidden = true));
dialog.addEventListener("close", () => dialog.querySelector("iframe").removeAttribute("src"));
