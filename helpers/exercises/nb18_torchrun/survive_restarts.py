"""18.3 Survive a restart (20 min, ●●●○○)

- Two signals can terminate a worker. After SIGKILL, only the file is left. After SIGTERM, there is time for
  one more save. Which ranks need to know that SIGTERM arrived, and in which step can each of them find out?
- Call `signal.signal(signal.SIGTERM, handler)` with a handler that only records that the signal arrived.
  After each step, an `all_reduce` with `op=dist.ReduceOp.MAX` shows all ranks whether any rank has received
  it. If so, rank 0 saves, as it does after every `every` steps.
- saved = torch.load(path), if it exists: load both states, done = saved["done"]. noted = torch.zeros(1);
  signal.signal(signal.SIGTERM, lambda *_: noted.fill_(1)). In the loop: train_step(step); stop =
  noted.clone(); dist.all_reduce(stop, op=dist.ReduceOp.MAX); if stop or (step + 1) % every == 0: on rank 0
  torch.save(..., path + ".new"); os.replace(path + ".new", path). If stop: return.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks.restarts import flatten_state, run_attempts_of_answer
from helpers.exercises.nb19_checkpoints.shared import (
    attempts_of,
    find_intruder,
    find_missing_kill,
    judge_resume_step,
)
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    build_optimizer,
    build_small_model,
    run_backward,
)
from helpers.exercises.shared.in_ranks.attempts import Plan
from helpers.exercises.shared.in_ranks.classifier import grad_of
from helpers.ranks.failures import RankFailed, is_consequence

TOLERANCE = 1e-5


def case(draw: Draw) -> Case:
    n, every = draw.ranks, draw.whole(4, 5)
    kind = draw.of("killed", "first save", "in a save", "SIGTERM", "SIGTERM, then killed")
    death, event = every * draw.whole(1, 2) + draw.whole(1, every - 2), draw.of(7, 8)
    if kind == "SIGTERM, then killed":
        death = 2 * every + draw.whole(1, every - 2)  # after the save caused by SIGTERM
    event = draw.of(1, 2) if kind == "first save" else event
    kill = Plan(step=death) if "killed" in kind else Plan(event=event)
    kills = [kill] * (kind != "SIGTERM")
    ranks = draw.of([draw.rank()], [draw.rank()], list(range(n)))
    asked = draw.whole(2, every - 2)  # the step of its attempt in which SIGTERM comes
    comes, plans = draw.of(len(kills), len(kills), -1), kills
    if kind.startswith("SIGTERM"):
        comes, plans = 0, [Plan()] * len(kills) + kills
    steps, seed = 4 * every + draw.whole(1, every - 1), draw.whole(0, 999)
    told = seed, steps, every
    which = f"rank {ranks[0]}" if len(ranks) < n else "all ranks"
    moment = f"after step {death}" if "killed" in kind else f"at event {event} of its saves"
    said = [f"killed {moment}"] * len(kills)
    if comes >= 0:
        said.insert(comes, f"SIGTERM to {which}")

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        if got["intruder"] is not None:
            return find_intruder(got) if got["intruder"] == rank else None
        attempts = got["attempts"]
        for k, (before, one) in enumerate(pairwise(attempts)):
            gone = k == comes
            if found := judge_after_sigterm(got, before) if gone else judge_after_kill(before, one):
                return found
            if gone and (found := judge_next_job(before, one)):
                return found
        if comes == len(attempts) - 1 and (found := judge_after_sigterm(got, attempts[-1])):
            return found
        done = attempts[-1].get("first", 0) + len(attempts[-1]["rows"][rank])
        if done != steps:
            return Finding(
                f"it returns after {plural(done, 'step')} instead of {steps}", seen=("too early",)
            )
        start = len(plans) - len(kills)  # leave out the attempt ended by SIGTERM
        cut = {name: got[name][start:] for name in ("killed", "changed", "attempts")}
        if found := find_missing_kill(cut, kills):
            return found
        existed = any("state.pt" in one["found"]["files"] for one in attempts[1:])
        if existed and not got["kept"]:
            return Finding(
                "after the last step, no file exists at `path`", seen=("removed at the end",)
            )
        at = [one["first"] for one in attempts[1:] if "first" in one]
        return compare_state(got["state"], (seed, n, steps, got["numbers"]), at)

    def judge_after_kill(before: dict[str, Any], one: dict[str, Any]) -> Finding | None:
        """Return the problem with the step at which an attempt resumed after a kill."""
        newest = [death // every * every]
        if "died" in before:
            newest = [before["died"][0] - every, before["died"][0]]
        elif "killed" not in kind:
            return None  # it was not killed, which is reported in another finding
        first = one.get("first", 0)
        what = f"after a kill, it resumes at step {first}"
        found = judge_resume_step(what, before, one, newest, every, first)
        if found and found.seen == ("a save that was not due",):
            return replace(found, seen=("wrong step",))
        if found and not first and "died" in before and "state.pt" not in one["found"]["files"]:
            return replace(found, seen=("no whole checkpoint left",))
        return found

    def judge_after_sigterm(got: dict[str, Any], before: dict[str, Any]) -> Finding | None:
        """Return the problem with the ranks' exit after SIGTERM."""
        first, made = before.get("first", 0), [len(rows) for rows in before["rows"]]
        how = [got["left"].get(f"left-{comes}-{r}", "") for r in range(n)]
        came = f"SIGTERM reaches {which} in step {first + asked - 1}"
        for r in ranks:
            if not how[r] and f"noted-{comes}-{r}" not in got["left"]:
                return Finding(f"{came} and terminates rank {r}", seen=("no handler",))
        if max(made) > asked + 1:
            more = plural(max(made) - asked, "more step")
            what = f"{came}, but {more} follow before all ranks return"
            return Finding(what, seen=("trains on",))
        if set(how) != {"returns"} or len(set(made)) > 1:
            ends = (
                f"rank {r} {h or 'is terminated'} in step {first + m - 1}"
                for r, (h, m) in enumerate(zip(how, made, strict=True))
            )
            seen = "raised after SIGTERM"
            if "returns" in how:
                seen = "left alone"
            elif any(h in ("", "raises RuntimeError") for h in how):
                seen = "ranks wait at different lines"
            return Finding(f"{came}; then {', '.join(ends)}", seen=(seen,))
        return None

    def judge_next_job(before: dict[str, Any], one: dict[str, Any]) -> Finding | None:
        """Return the problem with the step at which the next job resumed."""
        newest = before.get("first", 0) + len(before["rows"][0])
        first = one.get("first", 0)
        what = f"after SIGTERM, the next job resumes at step {first}"
        found = judge_resume_step(what, before, one, [newest], every, first)
        if found is None:
            return None
        lost = "state.pt" not in one["found"]["files"] or (
            first and first % every == 0 and first < newest
        )
        what = f"{what}, but the ranks had left after {plural(newest, 'step')}"
        return Finding(what, seen=("not saved",) if lost else found.seen)

    return Case(
        f"a save every {every} steps, {', then '.join(said)}",
        [([n] * (1 + len(kills) + (comes >= 0)), plans, *told, (comes, asked, ranks), [])] * n,
        right=problem,
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"steps = {steps}, every = {every}",
    )


def draw_real_agent_case(draw: Draw) -> Case:
    n, every, steps, seed = 2, 3, 9, draw.whole(0, 999)
    death, numbers = draw.whole(4, 5), [draw.whole(-9, 9) / 9 for _ in range(steps)]

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        if got["calls"] != steps - every:
            what = f"after the restart, it runs {got['calls']} steps instead of {steps - every}"
            return Finding(what)
        return compare_state(got["state"], (seed, n, steps, numbers), ())

    return Case(
        f"real torchrun, kill -9 in step {death - 1}",
        [([n], [], seed, steps, every, (0, death, [draw.whole(0, 1)]), numbers)] * n,
        right=problem,
        like={},
        seconds=45.0,
        shown=f"steps = {steps}, every = {every}",
    )


def compare_state(
    got: Any, settings: tuple[int, int, int, Sequence[float]], resume_steps: Sequence[int]
) -> Finding | None:
    """Compare a rank's state with the state of an uninterrupted training run.

    resume_steps: the steps at which the training resumed.
    """
    if same(train_in_one_process(*settings), got, TOLERANCE):
        return None
    lost = [
        part
        for part in ("model", "optimizer", "both")
        if same(train_in_one_process(*settings, resume_steps, part), got, TOLERANCE)
    ]
    what = "at the end, model and optimizer differ from those of an uninterrupted run"
    return Finding(what, seen=tuple(f"lost {part}" for part in lost))


def train_in_one_process(
    seed: int,
    n: int,
    steps: int,
    numbers: Sequence[float],
    resume_steps: Sequence[int] = (),
    lost_part: str = "",
) -> dict[str, Any]:
    """Train in one process. At the steps in `resume_steps`, model, optimizer or both lose their state."""
    model = build_small_model(seed, "plain")
    optimizer = build_optimizer(model, "momentum")
    for step in range(steps):
        if step in resume_steps and lost_part in ("model", "both"):
            model.load_state_dict(build_small_model(seed, "plain").state_dict())
        if step in resume_steps and lost_part in ("optimizer", "both"):
            optimizer.state.clear()
        grads = []
        for rank in range(n):
            run_backward(model, rank, step)
            grads.append([grad_of(p).clone() for p in model.parameters()])
        for p, parts in zip(model.parameters(), zip(*grads, strict=True), strict=True):
            p.grad = torch.stack(parts).mean(0) + (*numbers, *[0.0] * steps)[step]
        optimizer.step()
    return flatten_state(model, optimizer)


def observe(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run: an incomplete file, or ranks that took different steps."""
    failure, attempts = run.failure, attempts_of(run)
    if isinstance(failure, RankFailed):
        made = [len(steps) for one in attempts[-1:] for steps in one["rows"]]
        if is_consequence(failure.error) and len(set(made)) > 1:
            yield "unequal numbers of steps"
        at_load = any("load(" in place.source for place in failure.error.frames[-1:])
        if at_load and any("died" in one for one in attempts):
            yield "half a file loaded"


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_attempts_of_answer,
    reported=("left", "calls"),
    sizes=(1, 2, 3),
    count=8,
    last=draw_real_agent_case,
    observe=observe,
)
