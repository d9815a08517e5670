const ORDERS = {
  GPipe: (stage, stages, m) => ["F", "B"].flatMap((kind) => count(m, (i) => [kind, i])),
  "1F1B"(stage, stages, m) {
    const ahead = Math.min(m, stages - stage - 1);
    return [
      ...count(ahead, (i) => ["F", i]), ...count(m - ahead, (i) => [["F", ahead + i], ["B", i]]).flat(),
      ...count(ahead, (i) => ["B", m - ahead + i]),
    ];
  },
  "zero bubble"(stage, stages, m) {
    let waiting = 0;
    const order = ORDERS["1F1B"](stage, stages, m).flatMap(([kind, i]) => {
      if (kind === "F") return [["F", i]];
      waiting += 1;
      return waiting > stage ? [["I", i], ["W", i - --waiting]] : [["I", i]];
    });
    return [...order, ...count(waiting, (i) => ["W", m - waiting + i])];
  },
};

// The earliest time of each action, which waits for the actions in `before` and for its stage.
function plan({ kind, stages, microbatches }) {
  const orders = count(stages, (stage) => ORDERS[kind](stage, stages, microbatches));
  const lasts = { F: 1, B: 2, I: 1, W: 1 }, back = kind === "zero bubble" ? "I" : "B", ended = {};
  function before(stage, action, i) {
    if (action === "F") return stage ? `F ${stage - 1} ${i}` : "";
    if (action === "W") return `I ${stage} ${i}`;
    return stage < stages - 1 ? `${back} ${stage + 1} ${i}` : `F ${stage} ${i}`;
  }
  const lanes = orders.map(() => []);
  while (lanes.some((lane, stage) => lane.length < orders[stage].length)) {
    lanes.forEach((lane, stage) => {
      for (; lane.length < orders[stage].length;) {
        const [action, i] = orders[stage][lane.length], needs = before(stage, action, i);
        if (needs && !(needs in ended)) break;
        const start = Math.max(needs ? ended[needs] : 0, lane.at(-1)?.[2] ?? 0);
        ended[`${action} ${stage} ${i}`] = start + lasts[action];
        lane.push([`${action}${i}`, start, start + lasts[action]]);
      }
    });
  }
  const rows = lanes.map((pieces, stage) => {
    let held = 0, most = 0;
    for (const [action] of pieces) {
      held += { F: 1, I: 0 }[action[0]] ?? -1;
      most = Math.max(most, held);
    }
    return { stage, held: most, order: pieces.map(([action]) => action).join(" "), pieces };
  });
  const end = Math.max(...lanes.map((lane) => lane.at(-1)[2]));
  const worked = sum(lanes.flat().map(([, start, stop]) => stop - start));
  return { idle: 1 - worked / (end * stages), most: rows[0].held, rows };
}

function draw(pen, { rows }, { kind, microbatches }) {
  const fills = { F: "#b5ddf6", B: "#4d9fd6", I: "#4d9fd6", W: "#f0d64a" }, left = 66, pitch = 42, high = 34;
  const end = Math.max(...rows.map(({ pieces }) => pieces.at(-1)[2])), scale = (pen.width - left - 10) / end;
  for (const { stage, pieces } of rows) {
    const y = 4 + stage * pitch;
    pen.text(`stage ${stage}`, 0, y + 22, `stage ${stage}`);
    let free = 0;
    for (const [action, start, stop] of [...pieces, ["", end, end]]) {
      const gap = (start - free) * scale - 1.5, key = `${stage} ${action}`;
      if (start > free) pen.rect(`gap ${key}`, left + free * scale, y, gap, high, pen.stripes, {}, "bubble");
      free = stop;
      if (!action) continue;
      const width = (stop - start) * scale - 1.5, x = left + start * scale;
      pen.rect(key, x, y, width, high, fills[action[0]], {}, `${action} from ${start} to ${stop}`);
      const label = width > 26 ? action : action.slice(1);
      if (width > 9 * `${microbatches - 1}`.length) pen.text(key, x + width / 2, y + 22, label, "middle dark");
    }
  }
  timeAxis(pen, left, 4 + rows.length * pitch, scale, end, "time, in forwards of one microbatch");
  const backward = kind === "zero bubble"
    ? [["backward, for the input", fills.I], ["backward, for the weights", fills.W]] : [["backward", fills.B]];
  pen.legend([["forward of a microbatch", fills.F], ...backward, ["bubble", pen.stripes]]);
  pen.high(4 + rows.length * pitch + 50);
}
