"""18.1 Who am I? (6 min, ●○○○○)

- Each entry of the dict is one variable, as a whole number. What does `os.environ.get` give for a variable
  that is not there?
- `int(os.environ.get(name, default))`. A process that torchrun did not start is rank 0 of a world of 1, on
  node 0 of 1.
- number = lambda name, alone: int(os.environ.get(name, alone)). Then {'rank': number('RANK', 0),
  'world_size': number('WORLD_SIZE', 1), ...}
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks import read_env

VARIABLES = {
    "rank": "RANK",
    "local_rank": "LOCAL_RANK",
    "node": "GROUP_RANK",
    "world_size": "WORLD_SIZE",
    "local_world_size": "LOCAL_WORLD_SIZE",
    "nodes": "GROUP_WORLD_SIZE",
    "restart": "TORCHELASTIC_RESTART_COUNT",
}


def case(draw: Draw) -> Case:
    if draw.ranks == 1 and draw.of(True, False):
        return judged("plain python, no torchrun", [({},)], [place(0, [1], 0)], alone=True)
    sizes: list[int] = []
    while sum(sizes) < draw.ranks:  # nodes with different numbers of workers
        sizes.append(draw.whole(1, draw.ranks - sum(sizes)))
    places = [place(rank, sizes, draw.of(0, 0, 1, 2)) for rank in range(draw.ranks)]
    envs = [{VARIABLES[key]: str(value) for key, value in each.items()} for each in places]
    return judged(f"nodes with {', '.join(map(str, sizes))} workers", [(envs,)] * len(envs), places)


def real_workers(draw: Draw) -> Case:
    return judged("real torchrun", [(None,)] * 2, [place(rank, [2], 0) for rank in range(2)])


def judged(label: str, given: list[Any], places: list[dict[str, int]], alone: bool = False) -> Case:
    """Return the case in which each worker must find its place."""

    def own(got: Any, rank: int) -> Finding | None:
        right = places[rank]
        what = difference(right, got)
        if not what:
            return None
        if same({key: str(value) for key, value in right.items()}, got):
            return Finding(what, "Environment variables are strings: convert each to an int.")
        if not isinstance(got, dict):
            return Finding(what)
        if alone:
            return Finding(what, PLAIN)
        one = [key for key in VARIABLES if same(right, {**got, key: right[key]})]
        return Finding(what, f"`{one[0]}` must come from {VARIABLES[one[0]]}." if one else "")

    return Case(
        label,
        [([{}],)] if alone else given,
        right=own,
        facts={"alone": alone},
        seconds=45.0,
        shown="",
    )


def place(rank: int, sizes: list[int], restart: int) -> dict[str, int]:
    node = next(n for n in range(len(sizes)) if rank < sum(sizes[: n + 1]))
    return {
        "rank": rank,
        "local_rank": rank - sum(sizes[:node]),
        "node": node,
        "world_size": sum(sizes),
        "local_world_size": sizes[node],
        "nodes": len(sizes),
        "restart": restart,
    }


PLAIN = (
    "Started by plain `python`, a process is alone: rank 0 of 1, local rank 0 of 1, on node 0 of 1."
)
EXERCISE = Exercise(
    case,
    failed=(
        Failed(
            "KeyError",
            (
                "Started by plain `python`, these variables do not exist: pass `os.environ.get` a default "
                "value."
            ),
            when=lambda case, run: bool(case.facts["alone"]),
        ),
    ),
    kind=Kind.SCRIPT,
    driver=read_env,
    sizes=(1, 2, 3, 4, 5, 6, 7, 8),
    last=real_workers,
)
