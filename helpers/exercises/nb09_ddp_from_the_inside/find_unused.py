"""9.5 Find unused parameters (15 min, ●●●○○, further)

- Begin at `output.grad_fn`. A node's `next_functions` are pairs, and the first element of each pair is the
  next node, or None.
- You need a list of nodes to visit and a set of nodes already seen. A node with an attribute `variable` is
  the end of a branch, and this `variable` is a parameter in use.
- todo, seen = [output.grad_fn], set(); while todo: node = todo.pop(); if node is None or node in seen:
  continue; seen.add(node); todo += [n for n, _ in node.next_functions]. Then compare `id(node.variable)` of
  the seen nodes with `id(p)`.
"""

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import Layers, run_search

LAYERS = ("table", "left", "norm", "right", "spare", "out")
ADVICE = {
    "backward": "Start at output.grad_fn and follow next_functions without running backward.",
    "gradients": "Don't change `p.grad`, because DDP runs this search before backward.",
}


def case(draw: Draw) -> Case:
    kind = draw.of("", "2^60 paths", "detached", "table only", "old gradients", "1,000 times")
    tied, deep = draw.of(True, False), kind in {"2^60 paths", "1,000 times"}
    frozen = [name for name in LAYERS[deep:] if draw.of(True, False, False)]
    route = draw.of(("left",), ("right",), ("left", "right"), ("right", "norm", "left"), ("norm",))
    used = {"table", "out", *route}
    used = {"table"} if kind == "table only" else set() if kind == "detached" else used
    trained = {n: p.requires_grad for n, p in Layers(2, frozen, tied).named_parameters()}
    unused = [name for name in trained if name.partition(".")[0] not in used]
    right = [name for name in unused if trained[name]]
    judge = NamedParts(
        [{"backward": "", "gradients": "", "names": right}] * draw.ranks,
        advice=ADVICE,
    )

    settings = draw.whole(1, 4), frozen, tied
    return Case(
        f"through {' and '.join(route)}"
        + (f", {', '.join(frozen)} frozen" if frozen else "")
        + (f", {kind}" if kind else ""),
        [(settings, route, 1000 if kind == "1,000 times" else 1, kind)] * draw.ranks,
        right=judge,
        seconds=3.0,
    )


EXERCISE = Exercise(
    case,
    (OnlyCalls(()),),
    failed=(
        CrashAdvice(
            "does not require grad",
            "Start at output.grad_fn and follow next_functions instead of running backward, because an "
            "output might have no graph.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_search,
    reported=("backward", "gradients"),
    sizes=(1, 2),
)
