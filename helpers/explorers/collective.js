function plan({ op, ranks, root, reduction }, { runs, rooted, reduces }) {
  const from = Math.min(root, ranks - 1), text = (tensors) => tensors.map((one) => `[${one.join(" ")}]`).join(", ") || "nothing";
  const [hasRoot, reducing] = [rooted.includes(op), reduces.includes(op)];
  const [nbytes, pairs] = runs[`${op} ${ranks} ${hasRoot ? from : 0} ${reducing ? reduction : "SUM"}`];
  return {
    call: [op, hasRoot && `root ${from}`, reducing && reduction].filter(Boolean).join(" "), nbytes,
    says: hasRoot ? ["says"] : ["says", "rootless"],
    rows: pairs.map(([had, has], rank) => ({ rank, had, has, before: text(had), after: text(has) })),
  };
}

function tie(set, changed, { rooted, reduces }) {
  if (rooted.includes(set.op)) set.root = Math.min(set.root, set.ranks - 1);
  return [...(rooted.includes(set.op) ? [] : ["root"]), ...(reduces.includes(set.op) ? [] : ["reduction"])];
}

function draw(pen, { rows }) {
  const { send, wait, recv, collective, failure, span } = pen.colors, looks = [send, wait, recv, collective, failure, span];
  const home = (number, rank) => {
    const homes = rows.filter(({ had }) => had.flat().includes(number)).map((row) => row.rank);
    return homes.includes(rank) ? rank : homes.length === 1 ? homes[0] : -1;
  };
  const widest = (key) => Math.max(2, ...rows.map((row) => sum(row[key].map((one) => one.length)) + 0.3 * Math.max(0, row[key].length - 1)));
  const left = 66, gap = 56, cells = widest("had") + widest("has"), long = Math.max(...rows.flatMap((row) => row.has.flat())) > 99999;
  const size = Math.min(long ? 84 : 58, (pen.width - left - gap) / cells), pitch = 42, second = left + widest("had") * size + gap;
  const side = (row, key, x) => {
    if (!row[key].length) pen.text(`${key} ${row.rank}`, x, 34 + row.rank * pitch + 23, "nothing", { class: "rr-soft" });
    row[key].forEach((tensor, i) => {
      tensor.forEach((number, k) => {
        const from = home(number, row.rank), y = 34 + row.rank * pitch;
        pen.rect(`${key} ${row.rank} ${i} ${k}`, x + 1, y, size - 2, 34, from < 0 ? "#ffffff" : looks[from].tint,
          { stroke: from < 0 ? pen.colors.ink : looks[from].color, "stroke-width": 1.5 }, from < 0 ? "new" : `from rank ${from}`);
        const narrow = `${number}`.length * 8 > size - 4 ? { textLength: size - 6, lengthAdjust: "spacingAndGlyphs" } : { textLength: null, lengthAdjust: null };
        pen.text(`${key} ${row.rank} ${i} ${k}`, x + size / 2, y + 22, `${number}`, { "text-anchor": "middle", class: "rr-dark", ...narrow });
        x += size;
      });
      x += size * 0.3;
    });
  };
  pen.text("before", left, 16, "before", { class: "rr-soft" });
  pen.text("after", second, 16, "after", { class: "rr-soft" });
  for (const row of rows) {
    pen.text(`rank ${row.rank}`, 0, 34 + row.rank * pitch + 22, `rank ${row.rank}`);
    side(row, "had", left);
    side(row, "has", second);
  }
  pen.legend([...rows.map(({ rank }) => [`from rank ${rank}`, looks[rank].color]), ...(rows.some(({ has, rank }) => has.flat().some((number) => home(number, rank) < 0)) ? [["new", "#ffffff"]] : [])]);
  pen.high(34 + rows.length * pitch);
}
