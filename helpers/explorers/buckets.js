function plan({ layers, bucket, network, latency_ms }, { speeds }) {
  const most = Math.min(bucket, layers), rows = [];
  let ready = layers / 2, done = 0, alone = 0;
  for (let left = layers; left > 0; left -= most) {
    const size = Math.min(most, left), begins = Math.max(ready + size, done);
    ready += size;
    done = begins + latency_ms + size * speeds[network];
    alone += size * speeds[network] + latency_ms;
    rows.push({ bucket: rows.length + 1, size, ready, begins, done });
  }
  const end = Math.max(layers * 1.5, done);
  return { buckets: rows.length, end, exposed: end - layers * 1.5, alone, rows };
}

function draw(pen, now, { layers }) {
  const { span, collective } = pen.colors, left = 82, high = 40, [compute, network] = [10, 96];
  const scale = (pen.width - left - 12) / now.end, at = (ms) => left + ms * scale, backward = layers / 2;
  pen.text("compute", 0, compute + 25, "compute");
  pen.text("network", 0, network + 25, "network");
  const [from, exposed] = [at(layers * 1.5), now.exposed * scale];
  pen.rect("exposed", from, compute, exposed, network + high - compute, pen.stripes, { rx: 0 }, "exposed");
  if (exposed > 70) pen.text("exposed", from + 8, compute + 25, "exposed", "dark");
  pen.rect("forward", at(0), compute, backward * scale - 1, high, span.tint, {}, "forward");
  pen.text("forward", at(backward / 2), compute + 25, "forward", "middle dark");
  let layer = layers;
  for (const { bucket, size, ready, begins, done } of now.rows) {
    for (const k of count(size, (i) => i)) {
      const x = at(ready - size + k), width = scale - (k === size - 1 ? 4 : 1);
      pen.rect(`layer ${layer}`, x, compute, width, high, collective.tint, {}, `backward of layer ${layer}`);
      if (scale > 18) pen.text(`layer ${layer}`, x + scale / 2 - 1, compute + 25, `${layer}`, "middle dark");
      layer -= 1;
    }
    pen.arrow(`sent ${bucket}`, at(ready) - 3, compute + high, at(begins) + 3, network - 2, collective.color);
    const width = (done - begins) * scale - 1;
    pen.rect(`bucket ${bucket}`, at(begins), network, width, high, collective.color, {}, `bucket ${bucket}`);
    const name = width > 66 ? `bucket ${bucket}` : `${bucket}`;
    if (width > 18) pen.text(`bucket ${bucket}`, at(begins) + width / 2, network + 25, name, "middle white");
  }
  timeAxis(pen, left, network + high + 6, scale, now.end, "ms since the step began");
  pen.legend([
    ["forward", span.tint], ["backward, layer by layer", collective.tint],
    ["all_reduce of a bucket", collective.color], ["exposed", pen.stripes],
  ]);
  pen.high(network + high + 56);
}
