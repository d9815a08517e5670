"""1.3 Start by a file (10 min, ●●○○○, further)

- All ranks of one job must use the same file, and no two jobs may share a file. Which value do all ranks of a
  job have, but no other job?
- Put `job_id` into the file's name. The address is `file://` followed by an absolute path, so you'll see
  three slashes in a row. You need to pass rank and world_size as well.
- `folder` already begins with a slash: `init_method=f"file://{folder}/..."`, with the job's name at the end.
  This method doesn't read the environment, so pass `rank=rank` and `world_size=world_size`, too.
"""

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import run_from_file
from helpers.exercises.nb01_process_groups.shared import START_ADVICE, START_TOGETHER, group_advice


def case(draw: Draw) -> Case:
    n, number = draw.ranks, draw.whole(100, 998)
    ids = {
        "letters in a different order": (f"night-{number}-ab", f"night-{number}-ba"),
        "one end": (f"sweep-a-{number}-of-last-night", f"sweep-b-{number}-of-last-night"),
        "one beginning": (
            f"a-long-name-of-one-job-{number}",
            f"a-long-name-of-one-job-{number + 1}",
        ),
        "numbers": (f"{number}", f"{number}0"),
        "large and small": (f"Job-{number}", f"job-{number}"),
    }
    kind = draw.of(*ids)
    right = dict.fromkeys(("job 1", "job 2"), "")
    return Case(
        f"{' and then '.join(ids[kind])}",
        [(ids[kind],)] * n,
        right=NamedParts(
            [dict.fromkeys(right, f"rank {r} of {n}, in a separate file") for r in range(n)],
            advice=group_advice,
        ),
        facts={"jobs": [range(n)]},
        init=False,
        seconds=6.0,
    )


EXERCISE = Exercise(
    case,
    (START_TOGETHER,),
    failed=START_ADVICE,
    kind=Kind.MODULE,
    driver=run_from_file,
    sizes=(2, 3, 4, 5),
    count=12,
    reported=("job 1", "job 2"),
)
