function plan({ parameters, ranks, numbers, gpu_gb }) {
  const shard = Math.ceil(parameters / ranks);
  const rows = ["DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3"].map((name, stage) => {
    const [weights, gradients] = [3, 2].map((from) => numbers * (stage >= from ? shard : parameters));
    const state = (numbers === 4 ? 8 : 12) * (stage >= 1 ? shard : parameters);
    return { name, weights, gradients, state, total: weights + gradients + state };
  });
  const fits = rows.filter(({ total }) => total <= gpu_gb * 1e9).map(({ name }) => name);
  return { fitting: fits.join(", "), least: rows[3].total, says: [fits.length ? "fits" : "nothing"], rows };
}

function draw(pen, { rows }, { gpu_gb }) {
  const names = ["weights", "gradients", "optimizer state"], left = 72, pitch = 46, high = 28;
  const looks = names.map((name, i) => [name, page.given.looks[i]]);
  rows.forEach(({ name }, i) => pen.text(name, 0, 32 + i * pitch + high / 2 + 5, name));
  bars(pen, "held", {
    box: [left, 32, pen.width - left - 90], pitch, high, looks, write: bytes, limit: gpu_gb * 1e9,
    most: Math.max(rows[0].total, gpu_gb * 1e9),
    rows: rows.map(({ weights, gradients, state, total }) => ({ parts: [weights, gradients, state], total })),
  });
  pen.legend(looks);
  pen.high(32 + rows.length * pitch);
}
