"""14.5 Interleaved 1F1B (25 min, ●●●●○, further)

- Number this rank's forwards 0, 1, 2, ... Which of its stages and which microbatch does number k belong to?
  You can number the backwards in the same way, but with the stages in reverse order.
- A round consists of world_size * stages forwards. group, place = divmod(k, world_size * stages); turn, i =
  divmod(place, world_size). The stage is turn * world_size + rank, and the microbatch is group * world_size +
  i. For a backward, use stages - 1 - turn instead of turn.
- total = microbatches * stages; ahead = min(2 * (world_size - 1 - rank) + (stages - 1) * world_size, total).
  order = [name("F", k) for k in range(ahead)]; for k in range(total): if ahead + k < total:
  order.append(name("F", ahead + k)); order.append(name("B", k)).
"""

import re
from collections.abc import Sequence
from typing import Any

from helpers.checks.author import *
from helpers.views.schedule_times import max_held, plan_lanes
from helpers.views.values import short_value

_ACTION_PATTERN = re.compile(r"(0|[1-9]\d*)[FB](0|[1-9]\d*)")
BACKWARD_LENGTH = 2
"""The duration of a backward, relative to a forward."""


def case(draw: Draw) -> Case:
    n, stages = draw.ranks, draw.of(2, 2, 3)
    microbatches = n * draw.of(1, 2, 2, 3)
    told = n, stages, microbatches

    def judge_all_ranks(values: list[Any]) -> Finding | None:
        for rank, got in enumerate(values):
            if what := find_wrong_name(got):
                return Finding(f"rank {rank} {what}")
        plan = [list(got) for got in values]
        for rank, order in enumerate(plan):
            if found := find_problem_of_rank(order, rank, *told):
                return Finding(found)
        try:
            lanes = plan_lanes(plan, float(BACKWARD_LENGTH))
        except ValueError as error:
            return Finding(str(error))
        ends, wanted = max(lane[-1].end for lane in lanes), schedule_length(*told)
        if ends > wanted:
            return Finding(f"the last action ends at {ends:g}, but {wanted} is possible")
        for rank, order in enumerate(plan):
            most, allowed = max_held(order), warmup_forwards(rank, *told) + 1
            if most > min(allowed, stages * microbatches):
                what = f"rank {rank} holds {plural(most, 'activation')}, but {allowed} are enough"
                return Finding(what)
        return None

    return Case(
        f"{plural(stages, 'stage')} each, {plural(microbatches, 'microbatch')}",
        [(stages, microbatches)] * n,
        right=AllRanks(lambda got: None, judge_all_ranks),
    )


def find_wrong_name(got: Any) -> str:
    """Return the reason why this is not a list of action names, or "". The order is not checked."""
    if not isinstance(got, (list, tuple)):
        return "returns nothing" if got is None else f"returns a {type(got).__name__}, not a list"
    for each in got:
        if not isinstance(each, str) or not _ACTION_PATTERN.fullmatch(each):
            return f"has {short_value(each)}, which is not an action"
    return ""


def find_problem_of_rank(
    got: Sequence[str], rank: int, n: int, stages: int, microbatches: int
) -> str:
    """Return the problem with one rank's order, regardless of other ranks, or ""."""
    every = set(order_of_rank(rank, n, stages, microbatches))
    for each in got:
        stage, _, number = re.split("([FB])", each)
        if int(stage) % n != rank or int(stage) >= n * stages:
            mine = ", ".join(str(rank + n * turn) for turn in range(stages))
            return f"rank {rank} has {each}, but its stages are {mine}"
        if int(number) >= microbatches:
            return f"rank {rank} has {each}, but microbatches are 0 to {microbatches - 1}"
    if missing := sorted(every - set(got)):
        return f"rank {rank} never runs {missing[0]}"
    if len(got) > len(every):
        return f"rank {rank} runs {next(e for e in got if list(got).count(e) > 1)} twice"
    for place, each in enumerate(got):
        if "B" in each and each.replace("B", "F") not in got[:place]:
            return f"rank {rank} runs {each} before {each.replace('B', 'F')}"
    return ""


def schedule_length(n: int, stages: int, microbatches: int) -> int:
    """Return the end of the last action. Each rank is idle for n - 1 forwards and backwards of one stage."""
    return (1 + BACKWARD_LENGTH) * (stages * microbatches + n - 1)


def warmup_forwards(rank: int, n: int, stages: int, microbatches: int) -> int:
    """Return the number of forwards before the first backward (Narayanan et al. 2021, section 2.2)."""
    return min(2 * (n - 1 - rank) + (stages - 1) * n, stages * microbatches)


def order_of_rank(rank: int, n: int, stages: int, microbatches: int) -> list[str]:
    """Return a rank's actions in order."""
    total, ahead = stages * microbatches, warmup_forwards(rank, n, stages, microbatches)

    def name(kind: str, k: int) -> str:
        number, place = divmod(k, n * stages)
        turn, i = divmod(place, n)
        turn = stages - 1 - turn if kind == "B" else turn
        return f"{turn * n + rank}{kind}{number * n + i}"

    order = [name("F", k) for k in range(ahead)]
    for k in range(total):
        order += [name("F", ahead + k)] * (ahead + k < total) + [name("B", k)]
    return order


EXERCISE = Exercise(case, (OnlyCalls(()),), sizes=(2, 3, 4))
