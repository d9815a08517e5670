"""1.4 Pick a backend (10 min, ●●○○○)

- When can NCCL not be used at all? There are three reasons, and each of them is enough.
- NCCL needs tensors on a GPU, a torch that was built with it, and a GPU for each rank. Where one is missing,
  gloo is left.
- First what ends in gloo: `device == "cpu"`, no `nccl`, or fewer `gpus` than `ranks`. Only then do "cuda"
  and "both" differ, and NCCL serves the GPU's side of either.
"""

from typing import Any

from helpers.checks.author import *
from helpers.views.plain import plural

BOTH = "cpu:gloo,cuda:nccl"
ALIKE = {"nccl": {"cuda:nccl"}, "gloo": {"cpu:gloo,cuda:gloo"}, BOTH: set[str]()}
"""Other spellings that torch accepts, whatever the device is."""


def case(draw: Draw) -> Case:
    # Each of the three answers is right in a third of the cases, and gloo for each of its three reasons.
    wanted = draw.of("gloo", "nccl", BOTH)
    reason = draw.of("cpu", "no NCCL", "fewer") if wanted == "gloo" else ""
    device = {"nccl": "cuda", BOTH: "both"}.get(wanted) or draw.of("cuda", "both")
    device = "cpu" if reason == "cpu" else device
    nccl = reason != "no NCCL"
    ranks = draw.whole(2, 9)
    enough = ranks + draw.of(0, draw.whole(1, 4))
    gpus = draw.whole(0, ranks - 1) if reason == "fewer" else enough
    right = wanted
    own = {"cpu": {"cpu:gloo"}, "cuda": {"cuda:gloo"}}.get(device, set())
    taken = {right, *ALIKE[right], *(own if right == "gloo" else ())}

    def judged(got: Any, rank: int) -> Finding | None:
        if not isinstance(got, str):
            return Finding(f"{got!r:.60} is not a backend's name")
        if ",".join(sorted(got.lower().split(","))) in taken:
            return None
        return Finding(f"{got!r:.60}, but {right!r} is right: {why(gpus, ranks, nccl, device)}")

    return Case(
        f"{plural(gpus, 'GPU')}, {plural(ranks, 'rank')}, {'' if nccl else 'no '}NCCL, tensors on {device}",
        [(gpus, ranks, nccl, device)],
        right=judged,
    )


def why(gpus: int, ranks: int, nccl: bool, device: str) -> str:
    if device == "cpu":
        return "NCCL communicates only tensors that are on a GPU."
    if not nccl:
        return "this torch was built without NCCL."
    if gpus < ranks:
        return "NCCL needs a GPU for each rank and refuses two ranks on one."
    if device == "both":
        return "every rank has a GPU of its own, and each device type gets its backend as device:backend."
    return "every rank has a GPU of its own, and its tensors are there."


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
