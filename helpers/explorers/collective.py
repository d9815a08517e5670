"""A collective on real ranks: what each had before and has after, for any op, root and world size."""

from __future__ import annotations

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.explorers.in_ranks import collective
from helpers.ranks.launcher import launch
from helpers.views.before_after import before_after
from helpers.views.plain import plural

_ROOTED = ("broadcast", "scatter", "gather", "reduce")
_REDUCES = ("reduce", "all_reduce", "reduce_scatter")
_OPS = (*_ROOTED, "all_gather", "all_reduce", "reduce_scatter", "all_to_all")

CONTROLS: tuple[Control, ...] = (
    choice("op", "collective", _OPS),
    steps("ranks", "ranks", range(2, 7)),
    steps("root", "root", range(6)),
    choice("reduction", "reduction", ("SUM", "MAX", "MIN", "PRODUCT")),
)
START = {"op": "all_gather", "ranks": 4, "root": 0, "reduction": "SUM"}


def show(op: str, ranks: int, root: int, reduction: str) -> Shown:
    """Run the collective, and draw it."""
    root = min(root, ranks - 1)
    run = launch(collective, ranks, args=(op, root, reduction), on_failure="return")
    sent = sum(event.nbytes for event in run.trace if event.op == op and event.rank == 0)
    about = [op, f"root {root}" if op in _ROOTED else "", reduction if op in _REDUCES else ""]
    words = (
        f"{' '.join(filter(None, about))}, just run here on {plural(ranks, 'rank')}: rank 0 handed in "
        f"{plural(sent, 'byte')}."
    )
    if op not in _ROOTED:
        words += " It has no root: every rank gets its part."
    return Shown(words, (before_after(run),))
