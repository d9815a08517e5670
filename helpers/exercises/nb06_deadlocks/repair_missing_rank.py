"""6.2 Find the missing rank (monitored_barrier) (20 min, ●●●○○)

- You need two things: all ranks run the same number of steps, and if a rank never arrives, the error names
  it. Begin with the first.
- To get the number of steps, call all_reduce with `op=dist.ReduceOp.MAX` on each rank's number of batches. A
  rank without a batch for a step adds zero.
- First line: dist.monitored_barrier(timeout=patience, wait_all_ranks=True). Then steps =
  torch.tensor(len(batches)); all_reduce it with MAX; for step in range(steps.item()): total =
  batches[step].sum() if step < len(batches) else torch.zeros(()); all_reduce.
"""

import re
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb06_deadlocks.in_ranks import run_with_absent_ranks

WAIT_ALL_ADVICE = (
    "Pass `wait_all_ranks=True` to `monitored_barrier`. Otherwise its error names only the first rank that "
    "is missing."
)


def case(draw: Draw) -> Case:
    n, patience = draw.ranks, draw.of(0.9, 9.0, 90.0)
    counts = [draw.whole(0, 4) for _ in range(n)]
    if draw.of(True, *[False] * 6) and n > 2:
        counts = [0] * n
    absent: list[int] = []
    if draw.of(True, *[False] * 7) and n > 1:
        most = n - 1 if n == 2 or draw.of(True, False, False) else max(1, n - 2)
        absent = sorted(draw.rng.sample(range(1, n), draw.whole(min(2, most), most)))
    sign = draw.of(1, -1)  # all numbers have the same sign, so that no sum cancels and loses digits
    batches = [
        [sign * draw.tensor((draw.whole(0, 5),), torch.float32).abs() for _ in range(count)]
        for count in counts
    ]
    sums = [
        sum(mine[step].double().sum().item() for mine in batches if step < len(mine))
        for step in range(max(counts))
    ]
    never = "never comes" if len(absent) == 1 else "never come"
    who = f"rank{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"

    def judge(got: Any, rank: int) -> Finding | None:
        if not isinstance(got, dict):
            return Finding("nothing came back")
        if absent and rank:
            return None
        if absent and "raised" not in got:
            return Finding(f"{who} never arrived, but rank 0 returned without an error")
        if absent and (said := describe_wrong_ranks(str(got["raised"]), absent, n)):
            return Finding(
                f"{who} never arrived, but rank 0's error {said}",
                WAIT_ALL_ADVICE if said.startswith("names only") else "",
            )
        if not absent and (problem := difference(sums, got.get("returned"), 1e-5)):
            return Finding(problem)
        if got.get("asked") and got["asked"][0] != patience:
            asked = f"{got['asked'][0]} s" if got["asked"][0] >= 0 else "the group's timeout"
            return Finding(f"`monitored_barrier` waits for {asked}; `patience` is {patience} s")
        return None

    return Case(
        f"{who} {never}" if absent else f"{', '.join(map(str, counts))} batches",
        [(mine, patience, absent) for mine in batches],
        right=judge,
        facts={"absent": absent, "who": who, "never": never, "steps": max(counts)},
        # Each case has a separate world, because absent ranks make a world unusable
        env={} if absent else None,
        seconds=6.0,
    )


def describe_wrong_ranks(message: str, absent: list[int], n: int) -> str:
    """Return "" if an error names the absent ranks, in any words, instead of all ranks."""
    lists = [
        {int(number) for number in re.findall(r"\d+", part)}
        for part in re.findall(r"\d+(?:(?:, ?| and )\d+)*", message.split("Original")[0])
    ]
    named = set().union(*lists) & set(range(1, n))
    if set(absent) in lists or (set(absent) <= named and len(named) < n - 1):
        return ""
    if not named < set(absent):
        return f"says {message[:120]!r}"
    return f"names only {', '.join(map(str, sorted(named)))}" if named else "names nobody"


def find_wrong_roll_call(trace: Trace, case: Case) -> str:
    for rank in range(case.world_size):
        calls = [event.call for event in trace.calls.of(rank)]
        if rank not in case.facts["absent"] and calls[:1] != ["monitored_barrier"]:
            first = f"its first call is {calls[0]}" if calls else "it makes no call"
            return f"rank {rank} doesn't start with monitored_barrier: {first}."
        if calls.count("monitored_barrier") > 1 or "barrier" in calls:
            return f"rank {rank} calls {', '.join(calls[:4])}; one monitored_barrier is enough."
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_reduce", "barrier")),
        WaitsForAll(),
        Predicate(find_wrong_roll_call, "monitored_barrier comes first"),
        Calls(
            "all_reduce",
            most=lambda case, rank: max(1, case.facts["steps"]) + 1,
            why="You need one to agree on the number of steps, and one for each step.",
        ),
    ),
    failed=(
        HangAdvice(
            "In this case, {who} {never}. Call `monitored_barrier(timeout=patience)` first, because "
            "its error names the missing ranks.",
            when=lambda case, run: bool(case.facts["absent"]),
        ),
    ),
    kind=Kind.MODULE,
    driver=run_with_absent_ranks,
    reported=("asked",),
)
