"""19.1 Killed and resumed (25 min, ●●●●○)

- Write down everything that the next step depends on. The model's weights are one of five things.
- Model, optimizer, random state of each rank, number of steps done, losses so far. Before the loop: if the
  file is there, load it and put all five back. After every `every` steps: gather the random states, and rank
  0 saves, under another name first.
- states = [None] * dist.get_world_size(); dist.all_gather_object(states, torch.get_rng_state()). The loop:
  for n in range(done, epochs * steps): losses.append(train_step(*divmod(n, steps))); then if (n + 1) % every
  == 0: save.
"""

from collections.abc import Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb19_checkpoints.in_ranks.resume import Resumed, Training, plans_of, resume
from helpers.exercises.nb19_checkpoints.shared import (
    AGAIN,
    EARLIER,
    HALF,
    LEFT_ALONE,
    TEXT,
    at_the_wrong_time,
    evidence,
    half_loaded,
    intruder,
    newest_as_text,
    was_made,
    why_from_zero,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of

CLOSE = 1e-5
LOST = {
    "rng": "the state of the random generators",
    "rank 0's rng": "each rank's own random state (rank 0's was given to all)",
    "momentum": "the optimizer's state (its momentum)",
    "model": "the model's weights",
}
LATER = (0, 1, 2, 3, 4, 5, 6, 7)
"""Events of the saves after a first death at which a job is killed again; 0 for none."""


def case(draw: Draw) -> Case:
    """Draw a death in the first save, or between two checkpoints and then, by turns, in a later save."""
    n, event = draw.ranks, draw.of("first", *LATER)
    # at 10 steps and more, what is newest by its name as text is another one
    every, made = draw.of((5, 2), (4, 3), (3, 4)) if not event else (draw.whole(3, 5), 1)
    steps = draw.whole(3, 6)
    death = made * every + draw.whole(1, every - 2)
    deaths: list[tuple[int, Any]] = [(death, 0), *([(-1, event)] if event else [])]
    said = f"killed after step {death}" + (f", then at event {event} of a save" if event else "")
    if event == "first":
        deaths, event = [(-1, 0)], draw.of(1, 2)
        deaths, said = [(-1, event)], f"killed at event {event} of the first save"
    epochs = -(-(death + 2 * every + 1) // steps)
    seed = draw.whole(0, 999)
    planned = plans_of(deaths)

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        if got["intruder"] is not None:
            return intruder(got, ONE_FILE) if got["intruder"] == rank else None
        losses, total = got["losses"], epochs * steps
        if losses is None:
            return Finding("it returns nothing", "Return the list of losses.")
        if found := evidence(got, planned):
            return found
        for before, life in zip(got["lives"], got["lives"][1:], strict=False):
            if found := began(before, life):
                return found
        if not isinstance(losses, (list, tuple)) or len(losses) != total:
            return count(losses, total, got["lives"])
        whole = curve(seed, n, epochs, steps, got["numbers"])
        for k, (loss, wanted) in enumerate(zip(losses, whole, strict=True)):
            if not same(wanted, loss, CLOSE):
                return Finding(f"the loss of step {k} is {loss}, not {wanted:.6g}", forgotten(got))
        return None

    def may(died: Any) -> tuple[int, ...]:
        """Give the numbers of steps that the newest whole checkpoint may have after a death."""
        if died and died[0]:
            return died[0] - every, died[0]
        return (made * every if deaths[0][0] >= 0 else 0,)

    def began(before: dict[str, Any], life: dict[str, Any]) -> Finding | None:
        if (found := at_the_wrong_time(before, every)) or "first" not in life:
            return found
        first = life["first"]
        died = before.get("died")
        newest = may(died)
        if first in newest:
            return None
        (epoch, step), (own, at) = divmod(newest[0], steps), divmod(first, steps)
        next_one = f", before epoch {epoch}, step {step}" if newest[0] else ""
        what = (
            f"after {'the death in a save' if died else 'a death'} it went on at epoch {own}, step {at}; "
            f"{was_made(newest[0], before)}{next_one}"
        )
        if not first:
            return Finding(what, why_from_zero(before, life))
        if first == newest_as_text(life, every, newest[0]):
            return Finding(what, TEXT)
        if at == 0 and own in {epoch, epoch + 1}:
            return Finding(what, BOTH if step == 1 else EPOCH)
        return Finding(what, AGAIN)

    def count(losses: Any, total: int, lives: list[dict[str, Any]]) -> Finding:
        have = len(losses) if isinstance(losses, (list, tuple)) else 0
        what = f"it returns {have} losses; there are {epochs} epochs of {steps} steps, one loss for each"
        starts = {life["first"] for life in lives if "first" in life}
        return Finding(what, EARLIER if have < total and total - have in starts else "")

    def forgotten(got: dict[str, Any]) -> tuple[str, ...]:
        at = {life["first"] for life in got["lives"][1:] if "first" in life}
        told = seed, n, epochs, steps, got["numbers"]
        return tuple(
            "Up to the checkpoint the curve is right. From there on it is that of a training which lost "
            f"{what}."
            for lost, what in LOST.items()
            if same(curve(*told, at, lost), list(got["losses"]), 1e-4)
        )

    return Case(
        f"a checkpoint every {every} steps, {said}",
        [(Resumed(seed, n, epochs, steps, every, deaths),)] * n,
        right=problem,
        like={},
        facts={"every": every},
        seconds=20.0,
        shown=f"epochs = {epochs}, steps = {steps}, every = {every}",
    )


ONE_FILE = (
    "A job can die between the files of two ranks, which are then from different steps. Let all ranks hand "
    "their random states to rank 0 (`all_gather_object`), and rank 0 write one file with all of them."
)
EPOCH = (
    "Training continued at the start of an epoch: keep the number of steps done in the checkpoint."
)
BOTH = (
    "Training continued at the start of an epoch, which is one step before the checkpoint: keep the "
    "number of steps done in it, and continue with the next one."
)


def curve(
    seed: int,
    n: int,
    epochs: int,
    steps: int,
    shifts: Sequence[float],
    resumed: Sequence[int] | set[int] = (),
    lost: str = "",
) -> list[float]:
    """Simulate the training in one process; after the steps in `resumed` it has lost a part of its state.

    shifts: what each step was given; 0 for those that nobody has asked for.
    """
    training = Training(seed, n)
    losses = []
    with torch.random.fork_rng(devices=[]):
        fresh = [torch.manual_seed(seed + rank).get_state() for rank in range(n)]
        states = list(fresh)
        for done in range(epochs * steps):
            if done in resumed:
                if lost == "model":
                    training.model.load_state_dict(Training(seed, n).model.state_dict())
                elif lost == "momentum":
                    training.optimizer.state.clear()
                elif lost == "rng":
                    states = list(fresh)
                elif lost == "rank 0's rng":
                    states = [states[0]] * n
            shift = shifts[done] if done < len(shifts) else 0.0
            losses.append(one_step(training, *divmod(done, steps), states, shift))
    return losses


def one_step(
    training: Training, epoch: int, step: int, states: list[torch.Tensor], shift: float
) -> float:
    """Do the step of all ranks, one after the other; states[rank]: its random state, before and after."""
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
    failed=(
        Failed(
            "cross-device",
            "All machines see `folder`; the temp folder is a machine's own, on another disk, and a file "
            "cannot be moved from there in one step. Write the new file into `folder`, under another name.",
        ),
        Failed(".", HALF, died=True, when=half_loaded),
        LEFT_ALONE,
    ),
    kind=Kind.SCRIPT,
    driver=resume,
    sizes=(1, 2, 3),
    count=9,
)
