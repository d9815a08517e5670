function plan({ op, ranks, root, reduction }, { runs, rooted, reduces }) {
  const text = (tensors) => tensors.map((one) => `[${one.join(" ")}]`).join(", ") || "nothing";
  const from = Math.min(root, ranks - 1);
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

const NEW = { tint: "#ffffff", color: "#222222" };

function draw(pen, { rows }) {
  const looks = ["send", "wait", "recv", "collective", "failure", "span"].map((name) => pen.colors[name]);
  const home = (number, rank) => {
    const homes = rows.filter(({ had }) => had.flat().includes(number)).map((row) => row.rank);
    return homes.includes(rank) ? rank : homes.length === 1 ? homes[0] : -1;
  };
  const cells = (tensors) => tensors.flat().length + 0.3 * Math.max(0, tensors.length - 1);
  const [had, has] = ["had", "has"].map((key) => Math.max(2, ...rows.map((row) => cells(row[key]))));
  const left = 66, gap = 56, pitch = 42, long = Math.max(...rows.flatMap((row) => row.has.flat())) > 99999;
  const size = Math.min(long ? 84 : 58, (pen.width - left - gap) / (had + has)), second = left + had * size + gap;
  const side = (row, key, x) => {
    if (!row[key].length) pen.text(`${key} ${row.rank}`, x, 34 + row.rank * pitch + 23, "nothing", "soft");
    row[key].forEach((tensor, i) => {
      tensor.forEach((number, k) => {
        const from = home(number, row.rank), y = 34 + row.rank * pitch, name = `${key} ${row.rank} ${i} ${k}`;
        const { tint, color } = looks[from] ?? NEW, frame = { stroke: color, "stroke-width": 1.5 };
        const textLength = `${number}`.length * 8 > size - 4 ? size - 6 : null;
        pen.rect(name, x + 1, y, size - 2, 34, tint, frame, from < 0 ? "new" : `from rank ${from}`);
        const fit = { textLength, lengthAdjust: "spacingAndGlyphs" };
        pen.text(name, x + size / 2, y + 22, `${number}`, "middle dark", fit);
        x += size;
      });
      x += size * 0.3;
    });
  };
  pen.text("before", left, 16, "before", "soft");
  pen.text("after", second, 16, "after", "soft");
  for (const row of rows) {
    pen.text(`rank ${row.rank}`, 0, 34 + row.rank * pitch + 22, `rank ${row.rank}`);
    side(row, "had", left);
    side(row, "has", second);
  }
  const fresh = rows.some((row) => row.has.flat().some((number) => home(number, row.rank) < 0));
  const sources = rows.map(({ rank }) => [`from rank ${rank}`, looks[rank].color]);
  pen.legend(fresh ? [...sources, ["new", NEW.tint]] : sources);
  pen.high(34 + rows.length * pitch);
}
