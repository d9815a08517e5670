'''22.3 A batch script (10 min, ●●○○○)

- Begin with the script above, as an f-string. Which of its numbers and names come from the arguments, and
  which ones does bash insert on the cluster?
- --job-name, --nodes, --ntasks-per-node=1, --gpus-per-node, --cpus-per-task={8 * gpus_per_node},
  --time={minutes}. Then add the lines with export and scontrol, and finally srun torchrun with
  --nnodes, --nproc-per-node and the three options that begin with --rdzv.
- return f"""#!/bin/bash\\n#SBATCH --job-name={name}\\n ... srun torchrun --nnodes={nodes}
  --nproc-per-node={gpus_per_node} --rdzv-id=$SLURM_JOB_ID ... {script}\\n""" : leave the words with `$`
  unchanged, and don't put an empty line before #!.
'''

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb22_launchers_and_backends.in_ranks.slurm import run_batch_script
from helpers.exercises.nb22_launchers_and_backends.shared import (
    find_wrong_command,
    find_wrong_sbatch_option,
)
from helpers.views.plain import one_line


def case(draw: Draw) -> Case:
    word, nodes, gpus = (
        draw.of("pretrain", "finetune", "probe"),
        draw.of(2, 3, 4, 8),
        draw.of(1, 4, 6, 8),
    )
    minutes = {
        "hours": 60 * draw.whole(2, 19),
        "an hour and a bit": draw.whole(61, 119),
        "days": 2880 + draw.whole(1, 59),
        "less": draw.whole(5, 59),
    }[draw.of("hours", "an hour and a bit", "days", "less")]
    job_id, first = draw.whole(10_000, 99_999), draw.whole(10, 90)
    spec = {
        "name": f"{word}{draw.whole(0, 99)}",
        "nodes": nodes,
        "gpus_per_node": gpus,
        "minutes": minutes,
        "script": draw.of("", "jobs/") + f"{word}.py",
    }

    def problem(got: dict[str, Any], rank: int) -> str:
        if not isinstance(got["text"], str):
            return (
                f"expected the script's text as a string; got {one_line(str(got.get('got')), 80)}"
            )
        return find_wrong_sbatch_option(got["text"], spec) or find_wrong_command(
            got, spec, job_id, f"gpu{first}"
        )

    return Case(
        f"{nodes} nodes with {plural(gpus, 'GPU')}, {minutes} minutes",
        [(spec, job_id, first)],
        right=problem,
        shown=", ".join(map(str, spec.values())),
    )


EXERCISE = Exercise(
    case, kind=Kind.LOCAL, driver=run_batch_script, reported=("calls", "said"), sizes=(1,), count=12
)
