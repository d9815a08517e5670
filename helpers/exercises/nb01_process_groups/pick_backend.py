"""1.4 Pick a backend (10 min, ●●○○○)

- When can NCCL not be used at all? There are three reasons, and each of them is enough.
- NCCL needs tensors on a GPU, a torch that was built with it, and a GPU for each rank. Where one is missing,
  gloo is left.
- First return "gloo" where NCCL cannot be used: `device == "cpu"`, no `nccl`, or fewer `gpus` than `ranks`.
  In all other cases NCCL takes the tensors on GPUs, and only "both" needs gloo as well.
"""

from dataclasses import dataclass
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import run_for_each_machine

BOTH_BACKENDS = "cpu:gloo,cuda:nccl"
EQUIVALENT_NAMES = {
    "nccl": {"cuda:nccl"},
    "gloo": {"cpu:gloo,cuda:gloo"},
    BOTH_BACKENDS: set[str](),
}
"""Other spellings that torch accepts, for every device."""


@dataclass(frozen=True)
class Machine:
    """A machine that the answer is asked about, and the right backend for it."""

    gpus: int
    ranks: int
    nccl: bool
    device: str
    right: str

    def __str__(self) -> str:
        nccl = "NCCL" if self.nccl else "no NCCL"
        return f"{plural(self.gpus, 'GPU')}, {plural(self.ranks, 'rank')}, {nccl}, tensors on {self.device}"

    def judge(self, got: Any) -> str:
        """Return "" if a backend's name is right for this machine, and otherwise what is wrong with it."""
        if not isinstance(got, str):
            return f"{got!r:.60} is not a backend's name"
        own = {"cpu": {"cpu:gloo"}, "cuda": {"cuda:gloo"}}.get(self.device, set())
        taken = {self.right, *EQUIVALENT_NAMES[self.right], *(own if self.right == "gloo" else ())}
        if ",".join(sorted(got.lower().split(","))) in taken:
            return ""
        return f"{got!r:.60}, but {self.right!r} is right: {explain_backend(self)}"


def case(draw: Draw) -> Case:
    # Two machines with different answers, so that a constant answer is wrong for every pair.
    machines = [
        draw_machine(draw, right) for right in draw.rng.sample(["gloo", "nccl", BOTH_BACKENDS], 2)
    ]

    def judge(got: Any, rank: int) -> Finding | None:
        if got is None:
            return Finding("it returns nothing")
        for one, name in zip(machines, got, strict=True):
            if problem := one.judge(name):
                return Finding(f"{one}: {problem}")
        return None

    label = "; ".join(map(str, machines))
    asked = [(one.gpus, one.ranks, one.nccl, one.device) for one in machines]
    return Case(label, [(asked,)], right=judge, shown="")


def draw_machine(draw: Draw, right: str) -> Machine:
    """Draw a machine with this right answer. For gloo, each of the three reasons is equally likely."""
    reason = draw.of("cpu", "no NCCL", "fewer") if right == "gloo" else ""
    device = {"nccl": "cuda", BOTH_BACKENDS: "both"}.get(right) or draw.of("cuda", "both")
    ranks = draw.whole(2, 9)
    gpus = draw.whole(0, ranks - 1) if reason == "fewer" else ranks + draw.of(0, draw.whole(1, 4))
    return Machine(gpus, ranks, reason != "no NCCL", "cpu" if reason == "cpu" else device, right)


def explain_backend(machine: Machine) -> str:
    """Return the reason why this machine's right answer is right."""
    if machine.device == "cpu":
        return "NCCL communicates only tensors that are on a GPU."
    if not machine.nccl:
        return "this torch was built without NCCL."
    if machine.gpus < machine.ranks:
        return "NCCL needs a GPU for each rank and refuses two ranks on one."
    if machine.device == "both":
        return "every rank has a GPU of its own, and each device type gets its backend as device:backend."
    return "every rank has a GPU of its own, and its tensors are there."


EXERCISE = Exercise(case, kind=Kind.JUDGEMENT, driver=run_for_each_machine, sizes=(1,))
