"""1.2 Start by TCP, on a free port (15 min, ●●●○○, further)

- One rank must choose the port, because otherwise there will be as many ports as ranks. How can the other
  ranks learn the port before there is a group?
- Use a `FileStore` in the folder: rank 0 sets a key, and the others get it. `get` waits until the key exists.
  Both sides open the store with the same path.
- store = dist.FileStore(f"{folder}/port", world_size); if rank == 0: store.set("port", str(free_port()));
  port = int(store.get("port")); then init_process_group with init_method=f"tcp://127.0.0.1:{port}", rank and
  world_size.
"""

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import run_from_tcp
from helpers.exercises.nb01_process_groups.shared import (
    START_ADVICE,
    START_TOGETHER,
    TCP_STORE_ENV,
    group_advice,
)


def case(draw: Draw) -> Case:
    n = draw.ranks
    first = draw.whole(1, n - 1)
    jobs = [range(first), range(first, n)]
    places = [
        (f"job {name}", r, len(job))
        for name, job in zip("AB", jobs, strict=True)
        for r in range(len(job))
    ]
    right = [dict.fromkeys(("start 1", "start 2"), f"rank {r} of {size}") for _, r, size in places]
    return Case(
        f"two jobs at once, of {first} and {n - first} ranks, each started twice",
        places,
        right=NamedParts(right, advice=group_advice),
        facts={"jobs": jobs},
        env=TCP_STORE_ENV,
        init=False,
        seconds=3.0,
    )


EXERCISE = Exercise(
    case,
    (START_TOGETHER,),
    failed=START_ADVICE,
    kind=Kind.MODULE,
    driver=run_from_tcp,
    sizes=(3, 4, 5, 6),
    count=12,
    reported=("start 1", "start 2"),
)
