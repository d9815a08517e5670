"""23.1 Coordinates of a rank in the mesh (10 min, ●●○○○)

- Write down the ranks 0 to 7 and their coordinates for the order tp-dp-pp. Which coordinate changes from each
  rank to the next, and which one only after four ranks?
- names = order.split('-')[::-1] gives the dimensions from the outermost to the innermost, as init_device_mesh
  expects them. mesh.get_local_rank(name) returns the coordinate, mesh.get_group(name) the group, and
  dist.get_process_group_ranks(group) its ranks.
- mesh = init_device_mesh('cpu', tuple(sizes[n] for n in names), mesh_dim_names=tuple(names)); then for each
  name: group = mesh.get_group(name); total = x.clone(); dist.all_reduce(total, group=group); hosts = len({r
  // per_host for r in ranks}).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks.layout import run_mesh_layout
from helpers.exercises.nb23_capstone.shared import mesh_line
from helpers.exercises.shared.crash_advice import GROUP_AS_OP

SHAPES = {
    4: ((2, 2), (2, 1, 2), (4, 1)),
    5: ((5,), (1, 5)),
    6: ((2, 3), (3, 2), (2, 3, 1)),
    8: ((2, 2, 2), (2, 4), (4, 2), (2, 2, 2)),
}


def case(draw: Draw) -> Case:
    n = draw.ranks
    shape = draw.of(*SHAPES[n])
    names = draw.rng.sample(["tp", "dp", "pp", "cp", "ep"], len(shape))
    sizes = dict(zip(names, shape, strict=True))
    outermost = draw.rng.sample(names, len(names))
    per_host = draw.of(2, 2, 3, 4)
    xs = draw.tensors(draw.shape(least=1), draw.dtype(*SUMMED))
    places = expected_parts(outermost, sizes, per_host, xs)
    right = NamedParts([{"dict": "", **own} for own in places], scale=sum(map(largest, xs)))

    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    order = "-".join(reversed(outermost))
    return Case(
        f"{listed}; order {order}, {per_host} on a host, {tuple(xs[0].shape)} of {xs[0].dtype}",
        [(sizes, order, per_host, x) for x in xs],
        right=right,
        facts={"lines": [[own[f"{name}, ranks"] for name in sizes] for own in places]},
    )


def expected_parts(
    outermost: Sequence[str], sizes: Mapping[str, int], per_host: int, xs: Sequence[torch.Tensor]
) -> list[dict[str, Any]]:
    """Return each rank's parts by name, if the dimensions are in this order."""
    shape = [sizes[name] for name in outermost]
    found = []
    for rank in range(len(xs)):
        lines = {name: mesh_line(shape, outermost.index(name), rank) for name in sizes}
        groups = {name: ranks for name, (_, ranks) in lines.items()}
        found.append(
            {
                **{f"{name}, coordinate": own for name, (own, _) in lines.items()},
                **{f"{name}, ranks": ranks for name, ranks in groups.items()},
                **{f"{n}, hosts": len({r // per_host for r in g}) for n, g in groups.items()},
                **{f"{n}, sum": torch.stack([xs[r] for r in g]).sum(0) for n, g in groups.items()},
            }
        )
    return found


def find_wrong_sums(trace: Trace, case: Case) -> str:
    """Return the rank that did not sum once in each of its groups. A group of one rank is optional."""
    for rank in range(case.world_size):
        lines = case.facts["lines"][rank]
        wanted = sorted(line for line in lines if len(line) > 1)
        used = [list(e.group_ranks) for e in trace.of(rank) if e.op == "all_reduce"]
        if sorted(group for group in used if len(group) > 1) != wanted or len(used) > len(lines):
            listed = " and ".join(map(str, used)) or "no group"
            return (
                f"rank {rank} calls all_reduce in {listed}. It should call it once in each of its groups, "
                f"{' and '.join(map(str, lines))}; in a group of one rank, the call is optional."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        OnlyCalls(("all_reduce",)),
        Predicate(find_wrong_sums, "one all_reduce in each group of more than one rank"),
    ),
    failed=(
        GROUP_AS_OP,
        CrashAdvice(
            "Mesh should not be bigger|must (be )?divi",
            "The mesh's shape consists of the sizes, outermost first. Their product is world_size.",
        ),
        HangAdvice(
            "Every rank should go through the dimensions in the same order, and call all_reduce once in each."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_mesh_layout,
    reported=("dict",),
    sizes=(4, 5, 6, 8, 8),
    count=16,
)
