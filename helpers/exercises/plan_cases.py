"""The exercise `plan_a_run`: models and clusters of thousands of GPUs, and the best layout of each.

`PLAN_A_RUN` belongs to notebook 15. The formulas are those of its task, simpler than helpers/plan, and
written once more here, so that the check depends on nothing that the notebook shows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from helpers.exercises.look_at_plan import RunPlanIs
from helpers.exercises.model import Case, Exercise, Kind
from helpers.exercises.run_costs import Mesh, Task, meshes, nbytes_of, seconds_of
from helpers.ranks.run import Run

CLEAR = 1.01
"""By how much the second best layout is slower at least: no answer hangs on a rounding."""


@dataclass(frozen=True)
class Scenario:
    """What a case is about; sizes are drawn from these choices until the case is that.

    spare: which layouts fit: "all", "none", or "some", the two fastest not among them. tempting: the
    condition without which a layout that it forbids would be the fastest: "dp > batch", "dp < batch", "tp".
    """

    label: str
    layers: tuple[int, ...]
    hidden: tuple[int, ...]
    sequence: int
    gpus: tuple[int, ...]
    hosts_of: int
    batch: tuple[int, ...]
    network_gb_s: tuple[int, int]
    spare: str
    tempting: str = ""


SCENARIOS = (
    Scenario(
        "more GPUs than samples",
        (24, 32), (4096, 5120), 8192, (4096,), 8, (128, 256), (100, 200), "all", "dp > batch",
    ),
    Scenario(
        "more samples than GPUs, not a power of two",
        (24, 48), (4096, 5120), 8192, (256, 512), 8, (1040, 2000), (100, 200), "all", "dp < batch",
    ),
    Scenario(
        "the fastest does not fit",
        (64, 80), (8192, 9216), 8192, (1024, 2048), 8, (1024, 2048), (60, 120), "some",
    ),
    Scenario(
        "hosts of 4 and a slow network",
        (48, 60), (6144, 7168), 4096, (2048, 3072), 4, (1536, 3072), (5, 15), "all",
    ),
    Scenario(
        "16,384 GPUs",
        (96, 120), (14_336, 16_384), 8192, (16_384,), 8, (2048, 4096), (60, 120), "some",
    ),
    Scenario(
        "1,536 GPUs, three times a power of two",
        (48, 72, 96), (7168, 8192), 8192, (1536,), 8, (512, 1024, 2048), (60, 120), "some",
    ),
    Scenario(
        "hosts of 6",
        (48, 60), (8192, 9216), 8192, (1920, 3840), 6, (960, 1920), (60, 120), "some", "tp",
    ),
    Scenario(
        "too large for all of them",
        (96, 120), (20_480, 24_576), 4096, (1024,), 8, (512, 1024), (20, 60), "none",
    ),
)  # fmt: skip


def plan_cases(rng: random.Random) -> Iterator[Case]:
    for scenario in SCENARIOS:
        task = _draw(rng, scenario)
        expected = best_of(task)
        inputs = (dict(task.model), dict(task.cluster), task.batch)
        yield Case(scenario.label, 1, [inputs], [RunPlanIs(task, expected)], init=False)


def best_of(task: Task) -> Mesh | None:
    """Give the fastest layout that fits, or None."""
    fitting = [mesh for mesh in meshes(task) if nbytes_of(task, mesh) <= task.cluster["memory"]]
    return min(fitting, key=lambda mesh: seconds_of(task, mesh), default=None)


def _draw(rng: random.Random, scenario: Scenario) -> Task:
    """Draw until the case is what its label says, and the best layout is clearly the best."""
    while True:
        layers, hidden = rng.choice(scenario.layers), rng.choice(scenario.hidden)
        model = {
            "parameters": 12 * layers * hidden**2 + rng.randrange(50_000) * hidden,
            "layers": layers,
            "hidden": hidden,
            "sequence": scenario.sequence,
        }
        cluster = {
            "gpus": rng.choice(scenario.gpus),
            "gpus_per_host": scenario.hosts_of,
            "memory": 0,
            "flops": rng.randrange(200, 450) * 10**12,
            "host_bandwidth": rng.randrange(250, 500) * 10**9,
            "network_bandwidth": rng.randrange(*scenario.network_gb_s) * 10**9,
        }
        task = Task(model, cluster, rng.choice(scenario.batch))
        cluster["memory"] = _memory(rng, task, scenario.spare)
        if cluster["memory"] and _clear(task) and _tempts(task, scenario.tempting):
            return task


def _memory(rng: random.Random, task: Task, spare: str) -> int:
    """Give a memory in which all, none or some layouts fit; 0 where "some" cannot be."""
    order = sorted(meshes(task), key=lambda mesh: seconds_of(task, mesh))
    needs = sorted(nbytes_of(task, mesh) for mesh in order)
    if spare == "all":
        return int(needs[-1]) + rng.randrange(1, 10**9)
    if spare == "none":
        return int(needs[0] * rng.uniform(0.6, 0.95))
    fastest = min(nbytes_of(task, mesh) for mesh in order[:2])
    fitting = [need for need in needs if need < 0.98 * fastest]
    upper = fitting[len(fitting) // 2 :]
    return int(rng.choice(upper) * rng.uniform(1.001, 1.02)) if len(fitting) > 2 else 0


def _tempts(task: Task, tempting: str) -> bool:
    """Say whether an answer that forgets the condition would choose a layout that it forbids."""
    if not tempting:
        return True
    condition, _, _ = tempting.partition(" ")
    forbidden = set(meshes(task, condition)) - set(meshes(task))
    if condition == "dp":
        forbidden = {mesh for mesh in forbidden if (mesh[0] > task.batch) == (">" in tempting)}
    times = [
        seconds_of(task, mesh)
        for mesh in forbidden
        if nbytes_of(task, mesh) <= task.cluster["memory"]
    ]
    best = best_of(task)
    # hosts of 6: the best tp is no power of two either
    return (
        best is not None
        and min(times, default=math.inf) * CLEAR < seconds_of(task, best)
        and (condition != "tp" or best[1] % 3 == 0)
    )


def _clear(task: Task) -> bool:
    fitting = [mesh for mesh in meshes(task) if nbytes_of(task, mesh) <= task.cluster["memory"]]
    times = sorted(seconds_of(task, mesh) for mesh in fitting)
    return len(times) < 2 or times[1] >= CLEAR * times[0]


def look_at_plan(case: Case, run: Run) -> str:
    """Say what None may mean where something fits: of a search, it is rarely a forgotten `return`."""
    (wanted,) = case.expected or (None,)
    none = run.failure is None and run.values[0] is None and not run.output[0].strip()
    if not none or not isinstance(wanted, RunPlanIs) or wanted.best is None:
        return ""
    return (
        "Either a path of the function has no `return`, or no layout passed your conditions and your "
        "bytes: the one above does."
    )


PLAN_A_RUN = Exercise(
    "plan_a_run",
    "15.5",
    "Plan a run",
    "15_capstone",
    Kind.LOCAL,
    plan_cases,
    (
        "How many layouts are there at all? Two loops, over tp and pp, give the third number. Which of them "
        "does one of the three conditions forbid?",
        "Write two small functions of (dp, tp, pp) first, one for the bytes and one for the seconds, and "
        "compare them with the worked example. Then collect (seconds, layout, bytes) of all that fit: `min` "
        "of such tuples is the fastest.",
        "m = batch // dp; n = N / (tp * pp); nbytes = 4 * n + 12 * n / dp + 34 * s * h * L / pp * min(m, pp) "
        "/ tp; slot = 6 * n * s / flops + 4 * (L / pp) * 2 * (tp - 1) / tp * 2 * s * h / host_bandwidth; "
        "seconds = (m + pp - 1) * slot + 2 * (dp - 1) / dp * 2 * n / network_bandwidth.",
    ),
    minutes=20,
    difficulty=4,
    look=look_at_plan,
    further=True,
)
