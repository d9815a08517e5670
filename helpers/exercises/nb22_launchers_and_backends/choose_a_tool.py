"""22.4 Choose the launcher (8 min, ●●○○○)

- There are two questions: how do the ranks talk, and how are they started? Except for MPI, the answers are
  independent. Begin with how they talk.
- Go through the table from top to bottom, with `if` and `return`: MPI decides about both. After it comes
  Slurm, then `mp.spawn` with its three conditions; torchrun is the rest.
- if job['speaks_mpi']: return ('srun' if job['slurm'] else 'mpiexec', 'mpi'); talk = 'process group' if
  job['all_alike'] else 'actors'; then the three ways to start.
"""

from collections.abc import Mapping
from typing import Any

from helpers.checks.author import *

LAUNCHERS = ("mp.spawn", "torchrun", "srun torchrun", "mpiexec", "srun")
COMMUNICATIONS = ("process group", "actors", "mpi")
JOBS = (
    ("a unit test that needs two ranks", "one_machine function"),
    ("a training on one machine", "one_machine"),
    ("a training on a cluster", "slurm restart"),
    ("a simulation that speaks MPI", "one_machine mpi uneven function"),
    ("actors that ask one learner", "one_machine uneven"),
    ("a function whose workers may die", "one_machine function restart"),
    ("machines without a scheduler", "many"),
    ("a simulation on a cluster", "slurm mpi uneven restart"),
    ("actors on a cluster", "slurm uneven restart"),
    ("a function that asks helpers", "one_machine function uneven"),
    ("one machine that Slurm gave", "slurm one_machine function"),
    ("a function over several machines", "many function"),
)


def case(draw: Draw) -> Case:
    label, facts = draw.of(*JOBS)
    job = {
        "machines": 1 if "one_machine" in facts else draw.of(2, 3, draw.whole(4, 40)),
        # one large machine, or several small ones: neither decides
        "ranks_per_machine": draw.of(2, 8, 16, 64) if "one_machine" in facts else draw.of(1, 2, 8),
        "slurm": "slurm" in facts,
        "speaks_mpi": "mpi" in facts,
        "all_alike": "uneven" not in facts,
        "from_a_function": "function" in facts,
        "restart": "restart" in facts,
    }
    return Case(label, [(job,)], right=lambda got, rank: find_problem(job, got), shown="")


def find_problem(job: Mapping[str, Any], got: Any) -> str:
    """Return which line of the notebook's table decides about this job, or "" if the answer is right."""
    start, talk = expected_tools(job)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return "Return two strings: how to start the ranks, and how they talk."
    if got[0] in COMMUNICATIONS and got[1] in LAUNCHERS:
        return "The two strings are swapped: first how the ranks start, then how they talk."
    if got[0] not in LAUNCHERS or got[1] not in COMMUNICATIONS:
        return f"The first is one of {', '.join(LAUNCHERS)}, the second one of {', '.join(COMMUNICATIONS)}."
    if got[1] != talk:
        return f"They do not talk by {got[1]}. {COMMUNICATION_REASONS[talk]} {describe_job(job)}"
    return (
        f"Not {got[0]}. {explain_launcher(job, start)} {describe_job(job)}"
        if got[0] != start
        else ""
    )


def expected_tools(job: Mapping[str, Any]) -> tuple[str, str]:
    """Return how to start a job and how its ranks communicate, by the table of the notebook."""
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "actors"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


COMMUNICATION_REASONS = {
    "mpi": "This program uses MPI already, so its ranks talk by MPI.",
    "actors": "Its ranks are not alike: some ask, others answer, and they share no step.",
    "process group": "Here all ranks make the same calls in the same order: collectives.",
}
LAUNCHER_REASONS = {
    "mpiexec": "MPI's own launcher starts MPI ranks where there is no Slurm.",
    "srun": "Under Slurm `srun` starts MPI ranks itself, without mpiexec and without an agent.",
    "srun torchrun": "Slurm has given the machines: srun starts one torchrun agent on each of them.",
    "mp.spawn": "A function of a running program needs ranks, on one machine and without restarts.",
}


def explain_launcher(job: Mapping[str, Any], start: str) -> str:
    if start != "torchrun":
        return LAUNCHER_REASONS[start]
    if not job["from_a_function"]:
        return "No Slurm, no MPI, and a script: torchrun starts that."
    why = "restarts nothing" if job["machines"] == 1 else "reaches one machine only"
    return f"`mp.spawn` {why}: this job needs torchrun."


def describe_job(job: Mapping[str, Any]) -> str:
    true = [name for name, value in job.items() if value is True]
    what = f"{', '.join(true)} true" if true else "nothing else true"
    return f"(This job: {plural(job['machines'], 'machine')}, {what}.)"


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, sizes=(1,))
