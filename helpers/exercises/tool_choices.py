"""The check of `choose_a_tool`: generated jobs, and how each is started and talks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from helpers.exercises.model import Case
from helpers.ranks.run import Run
from helpers.views.plain import plural

_STARTS = ("mp.spawn", "torchrun", "srun torchrun", "mpiexec", "srun")
_TALKS = ("process group", "rpc", "mpi")
_JOBS: tuple[tuple[str, str], ...] = (
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


def tool_cases(rng: random.Random) -> Iterator[Case]:
    """Draw a job for every line of the tables, and for those that two lines would fit."""
    for label, facts in _JOBS:
        job = {
            "machines": 1 if "one_machine" in facts else rng.randrange(2, 40),
            "ranks_per_machine": rng.choice((2, 4, 8)),
            "slurm": "slurm" in facts,
            "speaks_mpi": "mpi" in facts,
            "all_alike": "uneven" not in facts,
            "from_a_function": "function" in facts,
            "restart": "restart" in facts,
        }
        yield Case(label, 1, [(job,)], [road_of(job)], init=False, given="")


def road_of(job: Mapping[str, Any]) -> tuple[str, str]:
    """Give how to start a job and how its ranks talk, by the table of the notebook."""
    if job["speaks_mpi"]:
        return ("srun" if job["slurm"] else "mpiexec"), "mpi"
    talk = "process group" if job["all_alike"] else "rpc"
    if job["slurm"]:
        return "srun torchrun", talk
    if job["from_a_function"] and job["machines"] == 1 and not job["restart"]:
        return "mp.spawn", talk
    return "torchrun", talk


def look_at_choice(case: Case, run: Run) -> str:
    """Say which line of the table decides about this job."""
    if run.failure is not None or case.expected is None:
        return ""
    value, (start, talk) = run.values[0], case.expected[0]
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return "Return two strings: how to start the ranks, and how they talk."
    if value[0] not in _STARTS or value[1] not in _TALKS:
        if value[1] in _STARTS or value[0] in _TALKS:
            return "The other way round: first how the ranks start, then how they talk."
        return f"The first is one of {_or(_STARTS)}, the second one of {_or(_TALKS)}."
    job = case.inputs[0][0]
    if value[1] != talk:
        why = {
            "mpi": "This program speaks MPI already: its ranks go on to talk by MPI.",
            "rpc": "Its ranks are not alike: some ask, others answer, and no step is common to all.",
            "process group": "Here all ranks make the same calls in the same order: collectives.",
        }[talk]
        return f"{why} {_shown(job)}"
    return f"{_why_start(job, start)} {_shown(job)}" if value[0] != start else ""


def _shown(job: Mapping[str, Any]) -> str:
    true = [name for name, value in job.items() if value is True]
    what = f"{', '.join(true)} true" if true else "nothing else true"
    return f"(This job: {plural(job['machines'], 'machine')}, {what}.)"


def _why_start(job: Mapping[str, Any], start: str) -> str:
    if start == "mpiexec":
        return "MPI's own launcher starts MPI ranks where there is no Slurm."
    if start == "srun":
        return "Under Slurm `srun` starts MPI ranks itself, without mpiexec and without an agent."
    if start == "srun torchrun":
        return "Slurm has given the machines: srun starts one torchrun agent on each of them."
    if start == "mp.spawn":
        return "A function of a running program wants ranks here, on one machine, without restarts."
    if job["from_a_function"]:
        why = "restarts nothing" if job["machines"] == 1 else "reaches one machine only"
        return f"`mp.spawn` {why}: this job needs torchrun."
    return "No Slurm, no MPI, and a script: torchrun starts that."


def _or(words: tuple[str, ...]) -> str:
    return ", ".join(map(repr, words[:-1])) + f" or {words[-1]!r}"
