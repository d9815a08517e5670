// DistributedSampler's arithmetic; torch's shuffled orders come from torch.
function plan({ samples, ranks, shuffle, drop_last, set_epoch }, { shuffled }) {
  const each = drop_last ? Math.floor(samples / ranks) : Math.ceil(samples / ranks);
  const epochs = [0, 1].map((epoch) => {
    const order = shuffle ? shuffled[set_epoch ? epoch : 0][samples] : count(samples, (i) => i);
    return count(ranks, (rank) => count(each, (i) => order[(rank + i * ranks) % samples]));
  });
  const counts = new Map();
  for (const index of epochs[0].flat()) counts.set(index, (counts.get(index) ?? 0) + 1);
  return {
    each, left_out: samples - counts.size, repeated: [...counts.values()].filter((n) => n > 1).length,
    order: `${epochs[0]}` === `${epochs[1]}` ? "the same" : "different",
    rows: epochs.flatMap((shares, epoch) => shares.map((own, rank) => (
      { epoch, rank, own, listed: own.join(" ") || "nothing" }
    ))),
  };
}

function draw(pen, { rows, each }, { samples, ranks }) {
  const left = 62, pitch = 34, gap = 40, panel = 30 + ranks * pitch + 18;
  const beside = pen.width > 2 * (left + each * 30) + gap, room = beside ? (pen.width - gap) / 2 : pen.width;
  const size = Math.min(44, (room - left) / Math.max(1, each));
  const counts = rows.map(({ epoch }) => rows.filter((row) => row.epoch === epoch).flatMap(({ own }) => own));
  rows.forEach(({ epoch, rank, own }, i) => {
    const [x, top] = beside ? [epoch * (room + gap), 0] : [0, epoch * panel], y = top + 28 + rank * pitch;
    if (!rank) pen.text(`epoch ${epoch}`, x, top + 14, `epoch ${epoch}`, "bold");
    pen.text(`rank ${epoch} ${rank}`, x, y + 20, `rank ${rank}`);
    own.forEach((sample, step) => {
      const twice = counts[i].indexOf(sample) !== counts[i].lastIndexOf(sample), inset = twice ? 3 : 1.5;
      const key = `${epoch} ${rank} ${step}`, share = sample / Math.max(1, samples - 1);
      const fill = `hsl(${205 - 10 * share} ${75 - 15 * share}% ${91 - 27 * share}%)`;
      const frame = { stroke: twice ? pen.colors.failure.color : "none", "stroke-width": 3 };
      const [width, high] = [size - 2 * inset, pitch - 2 * inset];
      pen.rect(key, x + left + step * size + inset, y + inset, width, high, fill, frame, `sample ${sample}`);
      pen.text(key, x + left + (step + 0.5) * size, y + 22, `${sample}`, "middle dark");
    });
    if (!own.length) pen.text(`${epoch} ${rank} none`, x + left, y + 20, "nothing", "soft");
  });
  const framed = counts.some((all) => new Set(all).size < all.length);
  pen.legend([
    ["sample, the first one lightest", "hsl(200 68% 77%)"],
    ...(framed ? [["given more than once (framed)", pen.colors.failure.color]] : []),
  ]);
  pen.high(beside ? panel : 2 * panel);
}
