const ROUNDS = {
  ring: (p) => count(2 * (p - 1), () => count(p, (rank) => [rank, (rank + 1) % p])),
  tree(p) {
    const up = [];
    for (let step = 1; step < p; step *= 2) {
      up.push(count(Math.ceil(p / (2 * step)), (i) => [2 * step * i + step, 2 * step * i])
        .filter(([src]) => src < p));
    }
    return [...up, ...up.toReversed().map((pairs) => pairs.map(([src, dst]) => [dst, src]))];
  },
};

function plan({ algorithm, ranks, rounds_shown, nbytes, network }, { networks }) {
  const rounds = ROUNDS[algorithm](ranks), each = algorithm === "ring" ? Math.floor(nbytes / ranks) : nbytes;
  const [alpha, bandwidth] = networks[network];
  const [ring, tree] = ["ring", "tree"].map((name) => ROUNDS[name](ranks).length);
  return {
    rounds: rounds.length, each, time: rounds.length * (alpha + each / bandwidth),
    crossing: alpha * (ring - tree) / (tree / bandwidth - ring / (ranks * bandwidth)),
    says: ["says", ring > tree ? "from" : "always"],
    rows: rounds.slice(0, rounds_shown).map((pairs, i) => ({
      round: i + 1, pairs, listed: pairs.map(([src, dst]) => `${src} → ${dst}`).join(", "),
    })),
  };
}

function draw(pen, now, { algorithm, ranks, nbytes, network }) {
  const { send } = pen.colors, left = 64, high = 30;
  const step = Math.min(112, (pen.width - left - 16) / now.rounds), y = (rank) => 34 + rank * high;
  for (const rank of count(ranks, (i) => i)) {
    pen.rule(`lane ${rank}`, `M${left} ${y(rank)} h${now.rounds * step}`);
    pen.text(`rank ${rank}`, 0, y(rank) + 5, `rank ${rank}`);
  }
  for (const { round, pairs } of now.rows) {
    const name = step > 70 ? `round ${round}` : `${round}`, x = left + (round - 1) * step;
    pen.text(`round ${round}`, x + step / 2, 14, name, "middle soft");
    for (const [src, dst] of pairs) {
      pen.arrow(`${round} ${src}`, x + 5, y(src), x + step - 6, y(dst), send.color);
    }
  }
  for (const k of count(now.rounds + 1, (i) => i)) {
    for (const rank of count(ranks, (i) => i)) {
      pen.rect(`at ${k} ${rank}`, left + k * step - 4, y(rank) - 4, 8, 8, "currentColor", { rx: 4 });
    }
  }
  const [alpha, bandwidth] = page.given.networks[network], top = y(ranks - 1) + 70;
  const cost = (name, n) => ROUNDS[name](ranks).length * (alpha + (name === "ring" ? n / ranks : n) / bandwidth);
  const looks = [["ring", send.color, ""], ["tree", pen.colors.collective.color, "8 5"]];
  const lines = looks.map(([name, color, dash]) => ({
    name, color, dash, points: count(49, (i) => [64 * 4 ** (i / 4), cost(name, 64 * 4 ** (i / 4))]),
  }));
  const all = lines.flatMap(({ points }) => points.map(([, v]) => v));
  chart(pen, {
    box: [left, top, pen.width - left - 16, 190], lines, names: ["message length n", "predicted time"],
    x: [64, 4 ** 15], y: [10 ** Math.floor(Math.log10(Math.min(...all))), Math.max(...all) * 1.3],
    writes: [bytes, (v) => seconds(v).replace(/(\.0+)(?= )/, "")],
    dots: [[`${algorithm}, ${bytes(nbytes)}`, nbytes, now.time, lines.find(({ name }) => name === algorithm).color]],
  });
  pen.legend(lines.map(({ name, color }) => [name, color, true]));
  pen.high(top + 190 + 50);
}
