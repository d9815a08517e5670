"""19.1 Killed and resumed (25 min, ●●●●○)

- List everything that the next step or the result depends on. There are five items, and the model is one of
  them.
- The five items are the model, the optimizer, the random state of each rank, the number of steps done, and
  the losses so far. Before the loop, if the file exists, load it and restore all five. After every `every`
  steps, gather the random states and let rank 0 save all five items, at first under a different name.
- states = [None] * dist.get_world_size(); dist.all_gather_object(states, torch.get_rng_state()). The loop:
  for n in range(done, epochs * steps): losses.append(train_step(*divmod(n, steps))); then if (n + 1) % every
  == 0: save.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.resume import Training, run_training
from helpers.exercises.nb19_checkpoints.shared import (
    find_intruder,
    find_missing_kill,
    judge_loss_count,
    judge_resume_step,
    observe,
)
from helpers.exercises.shared.in_ranks.attempts import Plan
from helpers.exercises.shared.in_ranks.classifier import grad_of

TOLERANCE = 1e-5
LOSABLE_PARTS = ("rng", "rank 0's rng", "momentum", "model")
"""Parts that a resumed training run may have lost. `simulate_losses` simulates the loss of one part."""
LATER_EVENTS = (0, 1, 2, 3, 4, 5, 6, 7)
"""The events of later saves at which a job is killed a second time; 0 means never."""


def case(draw: Draw) -> Case:
    """Draw a kill in the first save, or between two checkpoints and then, in turn, in a later save."""
    n, event = draw.ranks, draw.of("first", *LATER_EVENTS)
    # from step 10 on, sorting names as text gives a different newest checkpoint
    every, made = draw.of((5, 2), (4, 3), (3, 4)) if not event else (draw.whole(3, 5), 1)
    steps = draw.whole(3, 6)
    death = made * every + draw.whole(1, every - 2)
    plans = [Plan(step=death)]
    said = f"killed after step {death}"
    if event in LATER_EVENTS[1:]:
        plans.append(Plan(event=int(event)))
        said += f", then at event {event} of a save"
    elif event == "first":
        plans = [Plan(event=draw.of(1, 2))]
        said = f"killed at event {plans[0].event} of the first save"
    epochs = -(-(death + 2 * every + 1) // steps)
    seed = draw.whole(0, 999)

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        if got["intruder"] is not None:
            return find_intruder(got) if got["intruder"] == rank else None
        losses, total, attempts = got["losses"], epochs * steps, got["attempts"]
        if losses is None:
            return judge_loss_count(losses, total, (), "it")
        # check this first, because the planned kills rely on the order of the steps
        if found := find_disorder(attempts, epochs, steps):
            return found
        if found := find_missing_kill(got, plans):
            return found
        for before, one in zip(attempts, attempts[1:], strict=False):
            if found := judge_start(before, one):
                return found
        starts = {one["first"] for one in attempts if "first" in one}
        if found := judge_loss_count(losses, total, starts, "it"):
            return found
        whole = simulate_losses(seed, n, epochs, steps, got["numbers"])
        for k, (loss, wanted) in enumerate(zip(losses, whole, strict=True)):
            if not same(wanted, loss, TOLERANCE):
                what = f"the loss of step {k} is {loss}, not {wanted:.6g}"
                return Finding(what, seen=find_lost_parts(got))
        return None

    def judge_start(before: dict[str, Any], one: dict[str, Any]) -> Finding | None:
        """Return the problem with the step at which an attempt resumed after `before`."""
        died, first = before.get("died"), one.get("first", 0)
        newest = [made * every if plans[0].step >= 0 else 0]
        if died and died[0]:
            newest = [died[0] - every, died[0]]
        (epoch, step), (own, at) = divmod(newest[0], steps), divmod(first, steps)
        what = (
            f"after being killed{' in a save' if died else ''}, it resumed at epoch {own}, "
            f"step {at} instead of epoch {epoch}, step {step}"
        )
        found = judge_resume_step(what, before, one, newest, every, first)
        if found is None or not ("first" in one or "a save that was not due" in found.seen):
            return None
        if found.seen == ("wrong step",) and at == 0 and own in {epoch, epoch + 1}:
            start = (
                "the start of the epoch, a step before" if step == 1 else "the start of an epoch"
            )
            return replace(found, seen=(start,))
        return found

    def find_lost_parts(got: dict[str, Any]) -> tuple[str, ...]:
        at = {one["first"] for one in got["attempts"][1:] if "first" in one}
        told = seed, n, epochs, steps, got["numbers"]
        return tuple(
            f"lost {what}"
            for what in LOSABLE_PARTS
            if same(simulate_losses(*told, at, what), list(got["losses"]), 1e-4)
        )

    return Case(
        f"a checkpoint every {every} steps, {said}",
        [([n] * (len(plans) + 1), plans, seed, epochs, steps, every)] * n,
        right=problem,
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"epochs = {epochs}, steps = {steps}, every = {every}",
    )


def find_disorder(attempts: Sequence[Mapping[str, Any]], epochs: int, steps: int) -> Finding | None:
    """Return a finding if an attempt did not run consecutive steps from its first step.

    After the last of all steps, any step may follow, because the next attempt's start is judged.
    """
    for k, attempt in enumerate(attempts):
        ran = attempt.get("steps", ())
        for before, now in pairwise(ran):
            if now != before + 1 < epochs * steps:
                (epoch, step), (last_epoch, last_step) = divmod(now, steps), divmod(before, steps)
                when = f"after {plural(k, 'death')}" if k else "before any death"
                what = (
                    f"{when}, it runs epoch {epoch}, step {step} right after epoch {last_epoch}, "
                    f"step {last_step}; an epoch has {plural(steps, 'step')}"
                )
                seen = "steps out of order after a death" if k else "steps out of order"
                return Finding(what, seen=(seen,))
    return None


def simulate_losses(
    seed: int,
    n: int,
    epochs: int,
    steps: int,
    shifts: Sequence[float],
    resume_steps: Sequence[int] | set[int] = (),
    lost_part: str = "",
) -> list[float]:
    """Simulate the training in one process, losing a part of its state after each step in `resume_steps`.

    shifts: the number passed by the monitor to each step, or 0 if no rank asked for it.
    """
    training = Training(seed, n)
    losses = []
    with torch.random.fork_rng(devices=[]):
        fresh = [torch.manual_seed(seed + rank).get_state() for rank in range(n)]
        states = list(fresh)
        for done in range(epochs * steps):
            if done in resume_steps:
                if lost_part == "model":
                    training.model.load_state_dict(Training(seed, n).model.state_dict())
                elif lost_part == "momentum":
                    training.optimizer.state.clear()
                elif lost_part == "rng":
                    states = list(fresh)
                elif lost_part == "rank 0's rng":
                    states = [states[0]] * n
            shift = shifts[done] if done < len(shifts) else 0.0
            losses.append(run_one_step(training, *divmod(done, steps), states, shift))
    return losses


def run_one_step(
    training: Training, epoch: int, step: int, states: list[torch.Tensor], shift: float
) -> float:
    """Run the step of all ranks, one after another. states[rank]: the rank's random state, to be updated."""
    n, mean = len(states), 0.0
    total = [torch.zeros_like(p) for p in training.parameters()]
    for rank in range(n):
        torch.set_rng_state(states[rank])
        mean += training.backward(epoch, step, rank, shift) / n
        states[rank] = torch.get_rng_state()
        for part, parameter in zip(total, training.parameters(), strict=True):
            part += grad_of(parameter)
    for part, parameter in zip(total, training.parameters(), strict=True):
        parameter.grad = part / n
    training.optimizer.step()
    return mean


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_training,
    sizes=(1, 2, 3),
    count=9,
    observe=observe,
)
