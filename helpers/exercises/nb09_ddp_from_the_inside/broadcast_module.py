"""9.1 Broadcast a module (6 min, ●○○○○)

- What does forward read besides the parameters? And which of it does an optimizer never touch?
- `module.parameters()` gives all parameters, frozen ones too, a shared one once; `module.buffers()` gives
  all buffers. Each is one broadcast from rank src.
- for t in [*module.parameters(), *module.buffers()]: dist.broadcast(t.detach(), src)
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import broadcast_state
from helpers.exercises.shared.gradients import UNEQUAL

PLACES = (
    ("inner.weight", "trained"),
    ("shift", "frozen"),
    ("inner.mean", "buffer"),
    ("scale", "hidden"),
)
HIDDEN = "`scale` is a buffer that state_dict() leaves out. `module.buffers()` gives all of them."
FROZEN = "Frozen parameters take part in forward like any other: broadcast them too."
ADVICE = {
    "tensors": "Receive into the tensors that the model has, `dist.broadcast(p.detach(), src)`: an optimizer "
    "would miss new ones.",
    "memory": "`p.data = ...` puts other memory under the old name. Whoever has a view of the first one, as "
    "a bucket of gradients or weights has, misses the new values: receive into it, or `copy_`.",
    "requires_grad": "Receive into the tensors that the model has: `dist.broadcast(p.detach(), src)`.",
}


def case(draw: Draw) -> Case:
    n, src, tied = draw.ranks, draw.rank(), draw.of(True, False)
    dtype = draw.dtype(*FLOATS)
    places = [*PLACES[:1], *(place for place in PLACES[1:] if draw.of(True, True, False))]
    kinds = dict(places)
    values = {
        name: draw.tensors(
            draw.shape((0, 1, 2, 3, 4), least=0),
            dtype if kind in {"trained", "frozen"} else draw.dtype(),
        )
        for name, kind in places
    }
    if "inner.mean" in values and draw.of(True, False):
        values["inner.mean"] = [each > 0 for each in values["inner.mean"]]
    own = [{name: each[rank] for name, each in values.items()} for rank in range(n)]
    parts = ByName(
        [{"tensors": "", **own[src], "memory": "", "requires_grad": ""}] * n,
        dict.fromkeys(values, 0.0),
        lambda name, got: ADVICE.get(name, ""),
    )

    def kept(words: str, *which: str) -> list[Mistake]:
        """Give the mistake of those who leave entries of these kinds as they are."""
        names = [name for name, kind in places if kind in which]
        return [parts.mistake(words, [{k: one[k] for k in names} for one in own])] if names else []

    floats = [name for name, each in values.items() if each[0].is_floating_point()]
    means = {name: torch.stack(values[name]).sum(0) / n for name in floats}
    ByName([means] * n, {name: largest(*values[name]) for name in floats})
    return Case(
        f"from rank {src}, {dtype}: {', '.join(values)}" + ", a weight with two names" * tied,
        [([(k, v, kinds[k]) for k, v in one.items()], tied, src) for one in own],
        right=parts,
        facts={
            "src": src,
            "bytes": sum(each[0].nbytes for each in values.values()),
            "calls": len(values),
        },
    )


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("broadcast",)),
        Travels(
            "broadcast",
            "each tensor travels once",
            why="A weight with two names travels once (`parameters()` gives it once, `state_dict()` twice), "
            "and objects are larger than their tensors.",
        ),
        Awaited(),
        Root("src"),
    ),
    failed=(
        Failed(
            "is a leaf Variable|a view of a leaf|requires grad",
            "Autograd guards the weights: write into `p.detach()`, or under `with torch.no_grad():`.",
        ),
        Failed("", UNEQUAL, died=True),
    ),
    kind=Kind.MODULE,
    programme=broadcast_state,
    reported=("tensors", "memory", "requires_grad"),
)
