// helpers/plan in JavaScript, operation by operation: the sources of the formulas are named there.
function sizesOf(raw) {
  const { layers, hidden, heads, sequence, vocabulary, gated } = raw, matrices = gated ? 3 : 2;
  const ffn = raw.ffn || 4 * hidden, kv = Math.floor(hidden * (raw.kv_heads || heads) / heads);
  const layerMatrices = 2 * hidden ** 2 + 2 * hidden * kv + matrices * hidden * ffn;
  const layer = layerMatrices + (gated ? 2 : 13) * hidden;
  const table = (vocabulary + (gated ? 0 : sequence)) * hidden, output = 2 * hidden * vocabulary;
  const scores = 4 * sequence * hidden, layersFlops = layers * (2 * layerMatrices + scores);
  return {
    ...raw, layer, table, scores, layersFlops, output, parameters: layers * layer + (gated ? 2 : 1) * table,
    flopsPerToken: 3 * layersFlops + 3 * output,
    activation: (gated ? 12 : 14) * hidden + 4 * kv + 2 * matrices * ffn,
  };
}

const layersOfStage = (model, { pp }) => Math.ceil(model.layers / pp);
const stageParameters = (model, at) => Math.ceil((at.pp === 1 ? model.parameters
  : layersOfStage(model, at) * model.layer + model.table) / at.tp);

function memoryOf(model, at, m) {
  const { dp, tp, pp, zero, recompute, interleave } = at;
  const own = stageParameters(model, at), share = Math.ceil(own / dp);
  const whole = zero === 3 && dp > 1 ? Math.ceil(model.layer / tp) : 0;
  const inFlight = Math.min(interleave > 1 ? pp + (pp - 1) / interleave : pp, m);
  const each = recompute ? 2 * model.hidden : model.activation;
  const once = (recompute ? model.activation : 0) + (pp === 1 ? 4 * model.vocabulary : 0);
  const tokens = at.microbatch * model.sequence, layers = layersOfStage(model, at) * inFlight;
  const [weights, gradients, optimizer] = [3, 2, 1].map((from) => (zero >= from ? share : own));
  return [
    2 * (weights + whole), 2 * (gradients + whole), 12 * optimizer,
    Math.round(tokens * (layers * each + once) / tp),
  ];
}

const ring = (size, members, bandwidth, latency) => (members - 1) * (latency + size / members / bandwidth);
function ringSeconds(cluster, size, members, inHost, calls = 1) {
  const latency = calls * cluster.latency_s;
  return ring(size, inHost, cluster.host_bandwidth, latency)
    + ring(size / inHost, Math.ceil(members / inHost), cluster.network_bandwidth, latency);
}

function timesOf(model, cluster, at, m) {
  const { dp, tp, pp, zero, recompute, interleave } = at;
  const layers = layersOfStage(model, at), perHost = cluster.gpus_per_host;
  const layer = model.layersFlops / model.layers, again = recompute ? layer : model.scores;
  const work = layers * (3 * layer + again) + 3 * model.output / pp;
  const compute = at.microbatch * model.sequence * work / tp / (cluster.achievable * cluster.peak_flops);
  const tensor = 2 * at.microbatch * model.sequence * model.hidden;
  const calls = (recompute ? 6 : 4) * layers, inside = Math.min(tp, perHost);
  const tpSeconds = calls * 2 * ringSeconds(cluster, tensor, tp, inside);
  const link = dp * tp * pp <= perHost ? cluster.host_bandwidth : cluster.network_bandwidth;
  const ppSeconds = pp === 1 ? 0 : 2 * interleave * (cluster.latency_s + tensor / tp / link);
  const trips = [2, 2, m + 1, 3 * m][zero], inHost = Math.max(1, Math.min(dp, Math.floor(perHost / tp)));
  const size = 2 * stageParameters(model, at), pieces = zero >= 2 ? layers : 1;
  const traffic = trips * ringSeconds(cluster, size, dp, inHost, pieces);
  const hidden = zero < 2 ? compute * 2 / 3 : m * compute * (zero === 3 ? 1 : 2 / 3);
  const bubble = (pp - 1) / interleave * (compute + tpSeconds + ppSeconds);
  return [m * compute, bubble, m * tpSeconds, m * ppSeconds, Math.max(0, traffic - hidden)];
}

const divisors = (number, most) => count(Math.min(number, most), (i) => i + 1).filter((n) => number % n === 0);
function layoutsOf(model, cluster, batch, sizes) {
  const found = [];
  for (const tp of divisors(cluster.gpus_per_host, model.heads)) {
    if (cluster.gpus % tp || model.heads % tp) continue;
    for (const pp of divisors(cluster.gpus / tp, model.layers)) {
      const dp = cluster.gpus / tp / pp, layers = Math.ceil(model.layers / pp);
      if (layers * (pp - 1) >= model.layers) continue;
      for (const microbatch of sizes) {
        const m = batch / (dp * microbatch);
        if (!Number.isInteger(m)) continue;
        const parts = pp === 1 || m % pp ? [1] : [1, 2, 4, 8].filter((v) => layers % v === 0);
        for (const zero of dp > 1 ? [0, 1, 2, 3] : [0]) {
          for (const recompute of [false, true]) {
            for (const interleave of parts) {
              found.push([{ dp, tp, pp, microbatch, zero, recompute, interleave }, m]);
            }
          }
        }
      }
    }
  }
  return found;
}

const named = ({ dp, tp, pp, microbatch, zero, recompute, interleave }) => [
  `DP ${written(dp)} x TP ${tp} x PP ${pp}`, zero ? `ZeRO-${zero}` : "no sharding", `microbatch ${microbatch}`,
  ...(recompute ? ["recomputed"] : []), ...(interleave > 1 ? [`${interleave} parts a stage`] : []),
].join(", ");

function plan(set, given) {
  const { layers, hidden } = set, own = { ...given.custom, layers, hidden, heads: Math.floor(hidden / 128) };
  const model = sizesOf(given.models[set.model] ?? own), { batch, gpus, gpus_per_host } = set;
  const billions = model.parameters / 1e9;
  const cluster = {
    ...given.clusters[set.gpu], gpus, gpus_per_host,
    host_bandwidth: set.host_gb_s * 1e9, network_bandwidth: set.network_gb_s * 1e9,
  };
  const sizes = set.microbatch ? [set.microbatch] : given.microbatches;
  const tried = layoutsOf(model, cluster, batch, sizes).map(([at, m]) => {
    const times = timesOf(model, cluster, at, m), parts = memoryOf(model, at, m), total = sum(times);
    const order = [total, at.zero, +at.recompute, at.interleave, at.tp, at.pp];
    return { at, times, parts, total, memory: sum(parts), order };
  });
  const row = ({ at, times, parts, total, memory }) => {
    const [compute, bubble, tp, pp, dp] = times, work = batch * model.sequence * model.flopsPerToken;
    const mfu = work / (total * gpus * cluster.peak_flops);
    return { layout: named(at), times, total, parts, memory, mfu, compute, bubble, tp, pp, dp };
  };
  const meshes = new Map(), differ = (a, b) => a.order.map((v, i) => v - b.order[i]).find((v) => v) ?? 0;
  for (const one of tried.filter(({ memory }) => memory <= set.memory_gb * 1e9).sort(differ)) {
    const mesh = `${one.at.dp} ${one.at.tp} ${one.at.pp}`;
    if (!meshes.has(mesh)) meshes.set(mesh, one);
  }
  const rows = [...meshes.values()].slice(0, given.shown).map(row);
  if (rows.length) {
    const days = 1e12 / (batch * model.sequence / rows[0].total) / 86400;
    return { ...rows[0], billions, rows, days, says: ["size", "best"] };
  }
  if (!tried.length) return { billions, rows, says: ["size", "uneven"] };
  const least = tried.reduce((a, b) => (b.memory < a.memory ? b : a));
  return { billions, rows, ...row(least), says: ["size", "nothing"] };
}

// A GPU sets the links. Layers and width can be chosen only for a custom model.
function tie(set, changed, { clusters, models }) {
  if (changed === "gpu") {
    set.host_gb_s = Math.round(clusters[set.gpu].host_bandwidth / 1e9);
    set.network_gb_s = Math.round(clusters[set.gpu].network_bandwidth / 1e9);
  }
  return set.model in models ? ["layers", "hidden"] : [];
}

function draw(pen, { rows }, { memory_gb }) {
  const looks = (names, colors) => names.map((name, i) => [name, colors[i]]), narrow = pen.width < 680;
  const [left, pitch, high, top] = narrow ? [0, 88, 26, 98] : [196, 66, 32, 62];
  const times = looks(["compute", "bubble", "TP traffic", "PP traffic", "DP traffic"], page.given.times);
  const parts = looks(["weights", "gradients", "optimizer state", "activations"], page.given.parts);
  const free = pen.width - left - 150, width = free * 0.55, second = left + width + 90;
  if (!rows.length) {
    pen.legend([]);
    return pen.high(0);
  }
  rows.forEach(({ layout }, i) => {
    const [mesh, zero, microbatch, ...rest] = layout.split(", "), y = top + i * pitch - (narrow ? 36 : 0);
    pen.text(`mesh ${i}`, 0, y + 8, mesh, "bold");
    const second = narrow ? [zero, microbatch, ...rest] : [zero, microbatch];
    pen.text(`zero ${i}`, 0, y + 26, second.join(", "), "soft");
    if (!narrow) pen.text(`rest ${i}`, 0, y + 43, rest.join(", "), "soft");
  });
  pen.text("time", left, 16, "one step", "soft");
  pen.text("memory", second, 16, narrow ? "peak memory" : "peak memory of a GPU", "soft");
  bars(pen, "time", {
    box: [left, top, width], looks: times, write: seconds, pitch, high,
    most: Math.max(...rows.map(({ total }) => total)),
    rows: rows.map(({ times: own, total }) => ({ parts: own, total })),
  });
  bars(pen, "memory", {
    box: [second, top, free - width], looks: parts, write: bytes, pitch, high,
    limit: memory_gb * 1e9, most: memory_gb * 1e9,
    rows: rows.map(({ parts: own, memory }) => ({ parts: own, total: memory })),
  });
  pen.legend([["one step:"], ...times, [""], ["memory:"], ...parts]);
  pen.high(top + rows.length * pitch - 8);
}
