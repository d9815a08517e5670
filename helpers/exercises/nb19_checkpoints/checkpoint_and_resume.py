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
from helpers.exercises.nb19_checkpoints.in_ranks import Training, resume
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run

CLOSE = 1e-5
RENAME = (
    "A worker was killed while it saved, and no whole checkpoint was left: write the new one under another "
    "name, then `os.replace` it over the old one, in one step."
)
LOST = {
    "rng": "the state of the random generators",
    "rank 0's rng": "each rank's own random state (rank 0's was given to all)",
    "momentum": "the optimizer's state (its momentum)",
    "model": "the model's weights",
}


def case(draw: Draw) -> Case:
    return drawn(draw, draw.ranks, draw.of(*range(8)))


def under_an_agent(draw: Draw) -> Case:
    return drawn(draw, 2, 0, real=True)


def drawn(draw: Draw, n: int, event: int, real: bool = False) -> Case:
    """Draw a death between two checkpoints and, if `event` is not 0, one at that event of a later save."""
    every, steps, made = draw.whole(3, 5), draw.whole(3, 6), draw.of(1, 2)
    dies = [made * every + draw.whole(1, every - 2), *([event] if event else [])]
    epochs = -(-(dies[0] + 2 * every + 1) // steps)
    seed = draw.whole(0, 999)
    whole, again = curve(seed, n, epochs, steps), made * every
    where = f", then at event {event} of a save" if event else ""

    def problem(got: dict[str, Any], rank: int) -> Finding | None:
        losses, total = got["losses"], epochs * steps
        if losses is None:
            return Finding("it returns nothing", "Return the list of losses.")
        if found := began(got):
            return found
        if not isinstance(losses, (list, tuple)) or len(losses) != total:
            return count(losses, total, got)
        if rank and got["writes"]:
            return Finding(
                f"rank {rank} writes a file in `folder`, too: rank 0 alone saves", ONE_FILE
            )
        for k, (loss, wanted) in enumerate(zip(losses, whole, strict=True)):
            if not same(wanted, loss, CLOSE):
                return Finding(f"the loss of step {k} is {loss}, not {wanted:.6g}", forgotten(got))
        return None

    def last_start(got: dict[str, Any]) -> tuple[int, ...]:
        """Give the numbers of steps that the newest whole checkpoint may have at the last death."""
        died = got.get("died")
        return (died[0] - every, died[0]) if died else (again,)

    def began(got: dict[str, Any]) -> Finding | None:
        lives = [(got.get("second"), (again,)), (got["first"], last_start(got))]
        return next(filter(None, (wrong(first, may, got) for first, may in lives)), None)

    def wrong(first: Any, may: tuple[int, ...], got: dict[str, Any]) -> Finding | None:
        if first is None or first[0] * steps + first[1] in may:
            return None
        in_a_save = len(may) > 1
        epoch, step = divmod(may[0], steps)
        what = (
            f"after {'the death in a save' if in_a_save else 'a death'} it went on at epoch {first[0]}, "
            f"step {first[1]}; the newest whole checkpoint was made before epoch {epoch}, step {step}"
        )
        if tuple(first) == (0, 0):
            in_epoch_0 = may[0] <= steps  # the last step of epoch 0 included
            return Finding(what, RENAME if in_a_save else (LOOK, *[EPOCH] * in_epoch_0))
        if first[1] == 0 and first[0] in {epoch, epoch + 1}:
            return Finding(what, BOTH if step == 1 else EPOCH)
        return Finding(what, f"Save after each {every} steps in all, and go on with the next one.")

    def count(losses: Any, total: int, got: dict[str, Any]) -> Finding:
        have = len(losses) if isinstance(losses, (list, tuple)) else 0
        what = f"it returns {have} losses; there are {epochs} epochs of {steps} steps, one loss for each"
        return Finding(what, BEFORE if total - have in (again, *last_start(got)) else "")

    def forgotten(got: dict[str, Any]) -> tuple[str, ...]:
        at = {again, *([got["first"][0] * steps + got["first"][1]] if got["first"] else [])}
        return tuple(
            "Up to the checkpoint the curve is right. From there on it is that of a training which lost "
            f"{what}."
            for lost, what in LOST.items()
            if same(curve(seed, n, epochs, steps, at, lost), list(got["losses"]), 1e-4)
        )

    given = (seed, n, epochs, steps, every, dies, real)
    return Case(
        f"a checkpoint every {every} steps, killed after step {dies[0]}{where}"
        + (", real torchrun" if real else ""),
        [given] * n,
        right=problem,
        like={},
        facts={"in a save": bool(event)},
        seconds=65.0 if real else 20.0,
        shown=f"epochs = {epochs}, steps = {steps}, every = {every}",
    )


ONE_FILE = (
    "A job can die between the files of two ranks, which are then from different steps. Let all ranks hand "
    "their random states to rank 0 (`all_gather_object`), and rank 0 write one file with all of them."
)
LOOK = (
    "It began again at the very beginning: is the checkpoint looked for before the loop, and in the "
    "folder that was given?"
)
EPOCH = "It went on at the start of an epoch: keep the number of steps done in the checkpoint."
BOTH = (
    "It went on at the start of an epoch, which is one step before the checkpoint: keep the number of steps "
    "done in it, and go on with the next one."
)
BEFORE = (
    "The losses of before the death are missing: keep the list in the checkpoint and go on with it."
)


def curve(
    seed: int,
    n: int,
    epochs: int,
    steps: int,
    resumed: Sequence[int] | set[int] = (),
    lost: str = "",
) -> list[float]:
    """Simulate the training in one process; after the steps in `resumed` it has lost a part of its state."""
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
            losses.append(one_step(training, *divmod(done, steps), states))
    return losses


def one_step(training: Training, epoch: int, step: int, states: list[torch.Tensor]) -> float:
    """Do the step of all ranks, one after the other; states[rank]: its random state, before and after."""
    n, mean = len(states), 0.0
    total = [torch.zeros_like(p) for p in training.parameters()]
    for rank in range(n):
        torch.set_rng_state(states[rank])
        mean += training.backward(epoch, step, rank) / n
        states[rank] = torch.get_rng_state()
        for part, parameter in zip(total, training.parameters(), strict=True):
            part += parameter.grad
    for part, parameter in zip(total, training.parameters(), strict=True):
        parameter.grad = part / n
    training.optimizer.step()
    return mean


HALF = (
    "A worker was killed while it wrote, and left half a file where the only whole one had been. Save under "
    "another name, then `os.replace` it over the old one."
)


def in_a_save(case: Case, run: Run) -> bool:
    """Tell whether the job was killed while it wrote, and cannot load what is left."""
    told = run.values[0]
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    loads = error is None or any("load(" in place.source for place in error.frames[-1:])
    return isinstance(told, dict) and bool(told.get("died")) and loads


EXERCISE = Exercise(
    case,
    failed=(
        Failed(
            "cross-device",
            "All machines see `folder`; the temp folder is a machine's own, on another disk, and a file "
            "cannot be moved from there in one step. Write the new file into `folder`, under another name.",
        ),
        Failed(".", HALF, died=True, when=in_a_save),
    ),
    kind=Kind.SCRIPT,
    programme=resume,
    sizes=(1, 2, 3),
    count=8,
    last=under_an_agent,
)
