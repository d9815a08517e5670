"""9.1 Broadcast a module (6 min, ●○○○○)

- What does forward read besides the parameters? And which of these tensors does an optimizer never touch?
- `module.parameters()` returns all parameters, including frozen ones, and a shared one only once.
  `module.buffers()` returns all buffers. Broadcast each of these tensors once, from rank src.
- for t in [*module.parameters(), *module.buffers()]: dist.broadcast(t.detach(), src)
"""

from helpers.checks.author import *
from helpers.exercises.nb09_ddp_from_the_inside.in_ranks import run_broadcast
from helpers.exercises.shared.gradients import UNEQUAL_ADVICE

TENSOR_KINDS = (
    ("inner.weight", "trained"),
    ("shift", "frozen"),
    ("inner.mean", "buffer"),
    ("scale", "hidden"),
)
IN_PLACE_ADVICE = (
    "Receive into the module's existing tensors by calling `dist.broadcast(p.detach(), src)`, because "
    "optimizers keep references to them."
)
ADVICE = {
    "tensors": IN_PLACE_ADVICE,
    "memory": "`p.data = ...` gives the parameter new memory, so views of the old memory, such as a flat "
    "bucket of parameters, miss the new values. Receive into the old memory, or use `copy_`.",
    "requires_grad": "Broadcast `p.detach()`, so that you don't need to change requires_grad.",
}


def case(draw: Draw) -> Case:
    n, src, tied = draw.ranks, draw.rank(), draw.of(True, False)
    dtype = draw.dtype(*FLOATS)
    places = [
        *TENSOR_KINDS[:1],
        *(place for place in TENSOR_KINDS[1:] if draw.of(True, True, False)),
    ]
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
    parts = NamedParts(
        [{"tensors": "", **own[src], "memory": "", "requires_grad": ""}] * n,
        dict.fromkeys(values, 0.0),
        ADVICE,
    )

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
        Calls(
            "broadcast",
            text="each tensor is sent once",
            why="Send a weight with two names only once: `parameters()` returns it once, but "
            "`state_dict()` returns it twice. Pickled objects are larger than their tensors.",
        ),
        WaitsForAll(),
        Root("src"),
    ),
    failed=(
        CrashAdvice(
            "is a leaf Variable|a view of a leaf|requires grad",
            "Autograd doesn't allow changing a weight in place. Write to `p.detach()`, or write under "
            "`with torch.no_grad():`.",
        ),
        CrashAdvice("", UNEQUAL_ADVICE, applies_if_killed=True),
    ),
    kind=Kind.MODULE,
    driver=run_broadcast,
    reported=("tensors", "memory", "requires_grad"),
)
