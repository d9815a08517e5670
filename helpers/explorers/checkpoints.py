"""Show how often to write a checkpoint: time is lost by writing, and by repeating work after a failure."""

from __future__ import annotations

from math import sqrt
from typing import Any

from helpers.explorers.form import Control, steps

TITLE = "How often to save"
CONTROLS: tuple[Control, ...] = (
    steps("write_s", "a save stops training for [s]", (1, 5, 15, 30, 60, 120, 300, 600)),
    steps("days", "days between failures of a host", (10, 30, 100, 300, 1000)),
    steps("hosts", "hosts", [2**k for k in range(13)]),
)
START_SETTING = {"write_s": 60, "days": 300, "hosts": 256}
SENTENCE_TEMPLATES = {
    "row": "a save every {minutes:1} min: {saving:1%} lost to saving, {undone:1%} to work undone, {both:1%} "
    "in total",
    "says": "The job fails every {hours:1} h. Best: a save every {best:1} min, which loses "
    "{lost:1%} of the time.",
    "short": "So short between failures the formula no longer holds.",
}


def plan(write_s: int, days: int, hosts: int) -> dict[str, Any]:
    """Return the lost time for a few intervals around Young's optimum.

    According to Young, "A first order approximation to the optimum checkpoint interval" (1974), the best
    interval is sqrt(2 C M) if a checkpoint takes C and the mean time between failures is M.
    """
    between = days * 86_400 / hosts
    best = sqrt(2 * write_s * between)
    rows = []
    for factor in (0.25, 0.5, 1, 2, 4):
        interval = best * factor
        saving, undone = write_s / interval, interval / 2 / between
        rows.append(
            {"minutes": interval / 60, "saving": saving, "undone": undone, "both": saving + undone}
        )
    short = best < 4 * write_s or between < 10 * write_s
    return {
        "hours": between / 3600,
        "best": best / 60,
        "lost": rows[2]["both"],
        "says": ["says", "short"] if short else ["says"],
        "rows": rows,
    }
