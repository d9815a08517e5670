// Draw the matrix of learners and exercises from the page's data; sort, filter and search it.
"use strict";
const { learners, exercises, kinds } = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const [search, filter, notebook, sort] = ["search", "filter", "notebook", "sort"].map(byId);
const SIGNS = { passed: "✓", failed: "✗", open: "○", fault: "!" };
const NOTES = [
  ["override", "points set by hand"],
  ["look", "something to look at"],
  ["similar", "a similar answer"],
];

for (const name of new Set(exercises.map((each) => each.notebook))) notebook.add(new Option(name));

function add(parent, tag, text = "", of = {}) {
  const made = Object.assign(document.createElement(tag), of);
  made.textContent = text;
  parent.append(made);
  return made;
}

// A cell is [place of its outcome in kinds, points, sum of 1 << place in NOTES], or 0 where nothing was graded.
const notesOf = (cell) => NOTES.filter((_, at) => cell[2] & (1 << at));

function has(cell, wanted) {
  return cell && (kinds[cell[0]][1] === wanted || notesOf(cell).some(([name]) => name === wanted));
}

function shownColumns() {
  return exercises.map((_, at) => at).filter((at) => !notebook.value || exercises[at].notebook === notebook.value);
}

let rows = [];
let byExercise = -1;

function draw() {
  const table = byId("matrix");
  table.replaceChildren();
  const columns = shownColumns();
  const head = add(add(table, "thead"), "tr");
  add(head, "th", "learner", { scope: "col" });
  add(head, "th", "points", { scope: "col", className: "n" });
  for (const at of columns) {
    const each = exercises[at];
    const button = add(add(head, "th", "", { scope: "col" }), "button", each.number, { type: "button" });
    button.title = `${each.title}, ${each.weight} points${each.bonus ? ", bonus" : ""}: sort by it`;
    button.addEventListener("click", () => { byExercise = at; arrange(); });
  }
  const body = add(table, "tbody");
  rows = learners.map((learner) => {
    const row = add(body, "tr");
    const name = add(row, "th", "", { scope: "row" });
    add(name, "a", learner.name, { href: `review/${learner.page}` });
    add(row, "td", `${learner.points} of ${learner.out_of}`, { className: "n" });
    for (const at of columns) {
      const cell = learner.cells[at];
      const place = add(row, "td");
      if (!cell) continue;
      const [outcome, kind] = kinds[cell[0]];
      const link = add(place, "a", SIGNS[kind], { href: `review/${learner.page}#${exercises[at].place}` });
      link.className = cell[2] ? `${kind} noted` : kind;
      const notes = notesOf(cell).map(([, text]) => `; ${text}`).join("");
      link.title = `${learner.name}, ${exercises[at].title}: ${outcome}, ${cell[1]} points${notes}`;
    }
    return { learner, row };
  });
  arrange();
}

function arrange() {
  const columns = shownColumns();
  const wanted = search.value.trim().toLowerCase();
  const failed = ({ cells }) => columns.filter((at) => has(cells[at], "failed")).length;
  const inExercise = ({ cells }) => (cells[byExercise] ? cells[byExercise][1] : -1);
  const keys = { name: () => 0, points: (each) => each.points / (each.out_of || 1), failed: (each) => -failed(each) };
  const key = byExercise >= 0 ? inExercise : keys[sort.value];
  const order = rows.map((each, at) => ({ ...each, at, key: key(each.learner) }));
  order.sort((one, other) => one.key - other.key || one.at - other.at);
  let count = 0;
  for (const { learner, row } of order) {
    const found = learner.name.toLowerCase().includes(wanted);
    const fits = !filter.value || columns.some((at) => has(learner.cells[at], filter.value));
    row.hidden = !(found && fits);
    count += !row.hidden;
  }
  const body = byId("matrix").tBodies[0];
  if (order.some(({ row }, at) => body.rows[at] !== row)) body.append(...order.map(({ row }) => row));
  const by = byExercise >= 0 ? `, sorted by ${exercises[byExercise].title}` : "";
  byId("status").textContent = `${count} of ${learners.length} learners, ${columns.length} exercises${by}`;
}

search.addEventListener("input", arrange);
filter.addEventListener("change", arrange);
notebook.addEventListener("change", () => { byExercise = -1; draw(); });
sort.addEventListener("change", () => { byExercise = -1; arrange(); });
byId("controls").addEventListener("submit", (event) => event.preventDefault());
draw();
