"""1.1 Start from the environment (10 min, ●○○○○)

- Your function gets no arguments, and it needs none, because `init_process_group` reads four of the five
  variables itself. Which one do you have to read yourself?
- `dist.init_process_group("gloo")` uses `init_method="env://"` by default. After joining, ask the group for
  rank and world size, and `os.environ` for LOCAL_RANK.
- After `dist.init_process_group("gloo")`, the group knows two of the numbers: `dist.get_rank()` and
  `dist.get_world_size()`. The third is a string in `os.environ`, so convert it with `int`.
"""

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import run_from_env
from helpers.exercises.nb01_process_groups.shared import (
    START_ADVICE,
    START_TOGETHER,
    TCP_STORE_ENV,
    group_advice,
)


def case(draw: Draw) -> Case:
    n, address = draw.ranks, draw.of("127.0.0.1", "localhost")
    sizes: list[int] = []
    while sum(sizes) < n:  # machines with different numbers of ranks
        sizes.append(draw.whole(1, n - sum(sizes)))
    local = [(rank, size) for size in sizes for rank in range(size)]
    envs = [
        {"RANK": str(r), "WORLD_SIZE": str(n), "LOCAL_RANK": str(a), "LOCAL_WORLD_SIZE": str(size)}
        for r, (a, size) in enumerate(local)
    ]
    numbers = [(r, n, a) for r, (a, _) in enumerate(local)]
    right = NamedParts(
        [
            {"group": f"rank {r} of {n}", "met": "", "returned": three}
            for r, three in enumerate(numbers)
        ],
        advice=lambda name, got: group_advice(name, got) if name == "group" else "",
    )
    return Case(
        f"machines with {', '.join(map(str, sizes))} ranks",
        [(address,)] * n,
        right=right,
        facts={"jobs": [range(n)]},
        env=[{**TCP_STORE_ENV, **each, "MASTER_ADDR": address} for each in envs],
        init=False,
        seconds=3.0,
    )


EXERCISE = Exercise(
    case,
    (START_TOGETHER,),
    failed=START_ADVICE,
    kind=Kind.MODULE,
    driver=run_from_env,
    sizes=(2, 3, 4, 5),
    count=12,
    reported=("group", "met"),
)
