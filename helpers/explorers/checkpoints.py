"""How often to write a checkpoint: the time lost to writing, and to work that a failure undoes."""

from __future__ import annotations

from math import sqrt

from helpers.explorers.form import Control, Shown, steps
from helpers.views.curve import curves

CONTROLS: tuple[Control, ...] = (
    steps("write_s", "writing takes [s]", (1, 5, 15, 30, 60, 120, 300, 600)),
    steps("days", "days between failures of a host", (10, 30, 100, 300, 1000)),
    steps("hosts", "hosts", [2**k for k in range(13)]),
)
START = {"write_s": 60, "days": 300, "hosts": 256}


def show(write_s: int, days: int, hosts: int) -> Shown:
    """Draw what is lost against the interval, with Young's interval marked.

    After Young, "A first order approximation to the optimum checkpoint interval" (1974): the best interval
    is sqrt(2 C M), where a checkpoint takes C and a failure comes every M.
    """
    between = days * 86_400 / hosts
    best = sqrt(2 * write_s * between)
    minutes = [best / 60 * 2 ** (k / 4) for k in range(-14, 15)]
    writing = [(m, write_s / (60 * m)) for m in minutes]
    undone = [(m, 60 * m / 2 / between) for m in minutes]
    both = [(m, w + u) for (m, w), (_, u) in zip(writing, undone, strict=True)]
    lines = {"writing": writing, "work undone": undone, "both": both}
    words = (
        f"The job fails every {between / 3600:,.1f} h. Best: a checkpoint every {best / 60:,.1f} min, which "
        f"loses {write_s / best + best / 2 / between:.1%} of the time."
    )
    if best < 4 * write_s or between < 10 * write_s:
        words += " So short between failures the formula no longer holds."
    picture = curves(lines, x="interval [minutes]", y="share of time that is lost", log="xy")
    return Shown(words, (picture,))
