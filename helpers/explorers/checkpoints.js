function lossOf(interval, write_s, between) {
  const saving = write_s / interval, undone = interval / 2 / between;
  return { minutes: interval / 60, saving, undone, both: saving + undone };
}

function plan({ write_s, days, hosts }) {
  const between = days * 86400 / hosts, best = Math.sqrt(2 * write_s * between);
  const rows = [0.25, 0.5, 1, 2, 4].map((factor) => lossOf(best * factor, write_s, between));
  const short = best < 4 * write_s || between < 10 * write_s;
  const says = short ? ["says", "short"] : ["says"];
  return { hours: between / 3600, best: best / 60, lost: rows[2].both, says, rows };
}

function draw(pen, now, { write_s }) {
  const { send, failure, ink } = pen.colors, best = now.best * 60, between = now.hours * 3600;
  const losses = count(65, (i) => lossOf(best * 2 ** ((i - 32) / 8), write_s, between));
  const short = (v) => v.toLocaleString("en-US", { maximumSignificantDigits: 3 });
  const line = (name, key, color, dash) => ({
    name, color, dash, points: losses.map((one) => [one.minutes, one[key]]),
  });
  const lines = [
    line("saving", "saving", send.color, "8 5"),
    line("work undone by a failure", "undone", pen.colors.wait.color, "2 4"),
    line("both", "both", failure.color, ""),
  ];
  chart(pen, {
    box: [64, 40, pen.width - 64 - 24, 250], x: [now.best / 16, now.best * 16],
    y: [now.lost / 8, Math.min(now.lost * 10, 10)], lines,
    dots: [[`every ${fixed(now.best, 1)} min`, now.best, now.lost, failure.color]],
    names: ["minutes between two saves", "lost time"],
    writes: [short, (v) => `${short(v * 100)}%`],
  });
  pen.legend(lines.map(({ name, color }) => [name, color, true]));
  pen.high(40 + 250 + 50);
}
