"""Cases of `checkpoint_and_resume`, and what is to be seen in wrong answers.

The undisturbed curve is simulated here, in one process; so are the curves of trainings that forgot a
part of their state, so that a message can name the part.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from helpers.exercises.model import Case
from helpers.exercises.resume_programmes import Training
from helpers.ranks.failures import RankDied, RankFailed, RankTimeout
from helpers.ranks.run import Run

_CLOSE = 1e-5
_LOSSES = {
    "the state of the random generators": "rng",
    "each rank's own random state (rank 0's was given to all)": "rank 0's rng",
    "the optimizer's state (its momentum)": "momentum",
    "the model's weights": "model",
}


def curve(
    seed: int, nproc: int, epochs: int, steps: int, resumed: Sequence[int] = (), lost: str = ""
) -> list[float]:
    """Simulate a training; after the steps in `resumed` it has lost a part of its state."""
    training = Training(seed, nproc)
    with torch.random.fork_rng(devices=[]):
        fresh = [torch.manual_seed(seed + rank).get_state() for rank in range(nproc)]
        states = list(fresh)
        losses = []
        for done in range(epochs * steps):
            if done in resumed:
                if lost == "model":
                    training.model.load_state_dict(Training(seed, nproc).model.state_dict())
                elif lost == "momentum":
                    training.optimizer.state.clear()
                elif lost == "rng":
                    states = list(fresh)
                elif lost == "rank 0's rng":
                    states = [states[0]] * nproc
            losses.append(_step(training, *divmod(done, steps), states))
    return losses


def _step(training: Training, epoch: int, step: int, states: list[torch.Tensor]) -> float:
    size, mean = len(states), 0.0
    total = [torch.zeros_like(p) for p in training.parameters()]
    for rank in range(size):
        torch.set_rng_state(states[rank])
        mean += training.backward(epoch, step, rank) / size
        states[rank] = torch.get_rng_state()
        for part, parameter in zip(total, training.parameters(), strict=True):
            assert parameter.grad is not None
            part += parameter.grad
    for part, parameter in zip(total, training.parameters(), strict=True):
        parameter.grad = part / size
    training.optimizer.step()
    return mean


def resume_cases(rng: random.Random) -> list[Case]:
    """Draw a death between two checkpoints, one more in the middle of a save, and a real one."""
    return [
        _resume_case(rng, 2, 3, 5, 4, 1, "killed in the middle of an epoch"),
        _resume_case(rng, 3, 3, 5, 3, 2, "killed once more while it saves"),
        _resume_case(rng, 2, 2, 4, 3, 1, "real torchrun", real=True),
    ]


def _resume_case(
    rng: random.Random,
    nproc: int,
    epochs: int,
    steps: int,
    every: int,
    deaths: int,
    label: str,
    real: bool = False,
) -> Case:
    seed = rng.randrange(1000)
    # after two checkpoints, in the middle of an epoch, and not at a checkpoint
    middle = [
        s for s in range(2 * every + 1, 3 * every) if s % steps and s % every and s < epochs * steps
    ]
    # the second death is in the second save after the first one
    dies = (rng.choice(middle),) if deaths == 1 else (rng.choice(middle), 2)
    first = _resumed_at(every, dies)[-1]
    expected: dict[str, Any] = {
        "losses": curve(seed, nproc, epochs, steps),
        "first": divmod(first, steps),
        "attempt": deaths,
    }
    given = (seed, nproc, epochs, steps, every, dies, real)
    return Case(
        f"{nproc} ranks, a checkpoint every {every} steps, {label}",
        nproc,
        inputs=[given] * nproc,
        expected=[expected | {"saves": _saves(rank)} for rank in range(nproc)],
        given=f"epochs = {epochs}, steps = {steps}, every = {every}",
        tolerance=_CLOSE,
        timeout_s=65.0 if real else 20.0,
        last=real,
    )


def _saves(rank: int) -> Callable[[Any], str]:
    def problem(saves: Any) -> str:
        return f"rank {rank} writes a file in `folder`, too: rank 0 alone saves" if saves else ""

    return problem if rank else lambda saves: ""


def _resumed_at(every: int, dies: Sequence[int]) -> list[int]:
    """Give how many steps were done at each resume: two checkpoints were made before the first."""
    return [every * (2 + n) for n in range(len(dies))]


def look_at_resumed(case: Case, run: Run) -> str:
    """Say what the training forgot, or where it went on wrongly."""
    if isinstance(run.failure, RankFailed):
        return _look_at_error(case, run.failure)
    if isinstance(run.failure, RankTimeout):
        return (
            "Nobody can go on. Does every rank call `all_gather_object`, and every barrier? A "
            "collective inside `if rank == 0:` waits for ever."
        )
    if isinstance(run.failure, RankDied):
        return (
            "A worker ended early and the others lost it. Did all ranks go on at the same step? Put "
            "the states of all ranks into one file, which rank 0 writes."
        )
    if run.failure is not None:
        return ""
    _, nproc, epochs, steps, every, dies, _ = case.inputs[0]
    assert case.expected is not None
    expected = case.expected[0]
    for rank, value in enumerate(run.values):
        if not isinstance(value, dict):
            return ""
        if value.get("losses") is None:
            return f"Rank {rank} returns nothing: return the list of losses."
        first, wanted = value.get("first"), expected["first"]
        if first is not None and tuple(first) != wanted:
            return _wrong_start(tuple(first), wanted, steps, every, in_a_save=len(dies) > 1)
        losses = value["losses"]
        if (
            isinstance(losses, list)
            and len(losses) == epochs * steps - _resumed_at(every, dies)[-1]
        ):
            return (
                "The losses of before the death are missing: keep the list in the checkpoint and go "
                "on with it."
            )
        if isinstance(losses, list) and len(losses) != epochs * steps:
            return (
                f"Rank {rank} returns {len(losses)} losses; there are {epochs} epochs of {steps} steps, "
                "so one loss for each step, each once."
            )
    if _same(run.values[0]["losses"], expected["losses"]):
        return (
            "The curve is right this time. But a job can die between the files of two ranks, which are "
            "then from different steps. Let all ranks hand their random states to rank 0 "
            "(`all_gather_object`), and rank 0 write one file with all of them."
        )
    return _forgotten(case, run)


def _wrong_start(
    first: tuple[int, ...], wanted: tuple[int, int], steps: int, every: int, in_a_save: bool
) -> str:
    began = f"After the last death it went on at epoch {first[0]}, step {first[1]}"
    if first == (0, 0) and in_a_save:
        return (
            f"{began}: at the very beginning. A worker was killed while it saved, and no whole "
            "checkpoint was left: write the new one under another name, then `os.replace` it over the "
            "old one, in one step."
        )
    if first == (0, 0):
        return (
            f"{began}: at the very beginning. Is the checkpoint looked for before the loop, and in "
            "the folder that was given?"
        )
    right = f"The newest whole checkpoint was made before epoch {wanted[0]}, step {wanted[1]}"
    if first[1] == 0 and first[0] in {wanted[0], wanted[0] + 1}:
        return f"{began}: at the start of an epoch. {right}: keep the number of steps done in it."
    return f"{began}. {right}: save after each {every} steps in all, and go on with the next one."


def _forgotten(case: Case, run: Run) -> str:
    seed, nproc, epochs, steps, every, dies, _ = case.inputs[0]
    at = _resumed_at(every, dies)
    for what, lost in _LOSSES.items():
        if _same(run.values[0]["losses"], curve(seed, nproc, epochs, steps, at, lost)):
            return (
                f"Up to step {at[0]} the curve is right. From there on it is that of a training which "
                f"lost {what}."
            )
    return "Find the first loss that differs: what did the step before the checkpoint still know?"


def _same(got: Any, curve: list[float]) -> bool:
    try:
        return len(got) == len(curve) and all(
            abs(float(a) - b) < 1e-4 for a, b in zip(got, curve, strict=True)
        )
    except (TypeError, ValueError):
        return False


def _look_at_error(case: Case, failure: RankFailed) -> str:
    error, dies = failure.error, case.inputs[0][5]
    if error.kind == "FileNotFoundError" and any(
        word in place.source
        for place in error.frames[-1:]
        for word in ("replace", "rename", "remove", "unlink")
    ):
        return (
            "All ranks write the same file and take it away from one another. Rank 0 saves; all "
            "ranks hand it their random states."
        )
    # what half a file raises depends on where it was cut: the line says more than the exception
    loads = any("load(" in place.source for place in error.frames[-1:])
    if len(dies) > 1 and loads:
        return (
            "A worker was killed in the middle of torch.save and left half a file, where the only "
            "whole one had been. Save under another name, then `os.replace` it over the old one."
        )
    return ""
