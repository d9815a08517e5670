"""Show a collective on real ranks: each rank's data before and after, for any op, root and world size."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from helpers.explorers.form import Control, choice, steps
from helpers.explorers.in_ranks import run_collectives
from helpers.ranks.launcher import launch

_ROOTED_OPS = ("broadcast", "scatter", "gather", "reduce")
_REDUCING_OPS = ("reduce", "all_reduce", "reduce_scatter")
_OPS = (*_ROOTED_OPS, "all_gather", "all_reduce", "reduce_scatter", "all_to_all")
_REDUCTIONS = ("SUM", "MAX", "MIN", "PRODUCT")
_SIZES = range(2, 7)

TITLE = "Collectives, before and after"
NOTE = (
    "On real ranks: when this cell ran, each combination ran once on 2 to 6 processes. The page shows "
    "what they returned."
)
CONTROLS: tuple[Control, ...] = (
    choice("op", "collective", _OPS),
    choice("reduction", "reduction", _REDUCTIONS),
    steps("ranks", "ranks", _SIZES),
    steps("root", "root", range(max(_SIZES))),
)
START_SETTING = {"op": "all_gather", "ranks": 4, "root": 0, "reduction": "SUM"}
SENTENCE_TEMPLATES = {
    "row": "rank {rank}: {before} → {after}",
    "says": "{call} on {ranks:rank}: rank 0 passed {nbytes:byte}.",
    "rootless": "It has no root: every rank gets its part.",
}


def page_data() -> dict[str, Any]:
    return {"runs": _runs(), "rooted": _ROOTED_OPS, "reduces": _REDUCING_OPS}


def plan(op: str, ranks: int, root: int, reduction: str) -> dict[str, Any]:
    """Return each rank's data before and after, as lists of tensors and as text."""
    root = min(root, ranks - 1)
    key = _key(
        op, ranks, root if op in _ROOTED_OPS else 0, reduction if op in _REDUCING_OPS else "SUM"
    )
    nbytes, pairs = _runs()[key]
    call = [
        op,
        f"root {root}" if op in _ROOTED_OPS else "",
        reduction if op in _REDUCING_OPS else "",
    ]
    return {
        "call": " ".join(filter(None, call)),
        "nbytes": nbytes,
        "says": ["says"] if op in _ROOTED_OPS else ["says", "rootless"],
        "rows": [
            {"rank": rank, "had": had, "has": has, "before": _text(had), "after": _text(has)}
            for rank, (had, has) in enumerate(pairs)
        ],
    }


def _text(tensors: list[list[int]]) -> str:
    return ", ".join(f"[{' '.join(map(str, one))}]" for one in tensors) or "nothing"


def _key(op: str, ranks: int, root: int, reduction: str) -> str:
    return f"{op} {ranks} {root} {reduction}"


@cache
def _runs() -> dict[str, tuple[int, list[Any]]]:
    """Run each distinct combination. Return rank 0's input bytes, and each rank's (before, after).

    There is one launch for each world size, because separate launches for all 180 combinations would take ten
    seconds.
    """
    found = {}
    for ranks in _SIZES:
        calls = [
            (op, root, reduction)
            for op in _OPS
            for root, reduction in product(
                range(ranks if op in _ROOTED_OPS else 1),
                _REDUCTIONS if op in _REDUCING_OPS else _REDUCTIONS[:1],
            )
        ]
        run = launch(run_collectives, ranks, args=(calls,))
        sent = [event.nbytes for event in run.trace.of(0) if event.op in _OPS]
        for (op, root, reduction), nbytes, *pairs in zip(calls, sent, *run.values, strict=True):
            found[_key(op, ranks, root, reduction)] = (nbytes, pairs)
    return found
