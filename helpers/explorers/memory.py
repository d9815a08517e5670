"""What one rank holds of a model under DDP and the three stages of ZeRO."""

from __future__ import annotations

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.views.memory_bars import memory_bars
from helpers.views.plain import plural, short_bytes

_BILLION = 10**9
_SIZES = {f"{n:g} billion": int(n * _BILLION) for n in (0.1, 1, 3, 8, 13, 30, 70, 180, 405)}
CONTROLS: tuple[Control, ...] = (
    Control("parameters", "parameters", _SIZES),
    steps("ranks", "ranks", [2**k for k in range(11)]),
    choice("numbers", "numbers", {"float32": 4, "bfloat16, with a copy in float32": 2}),
    choice("gpu_gb", "memory of a GPU [GB]", (24, 40, 80, 141, 192)),
)
START = {"parameters": 8 * _BILLION, "ranks": 8, "numbers": 2, "gpu_gb": 80}


def show(parameters: int, ranks: int, numbers: int, gpu_gb: int) -> Shown:
    """Draw weights, gradients and Adam's state; activations come on top."""
    held = {name: parts(parameters, ranks, numbers, stage) for stage, name in enumerate(STAGES)}
    fits = [name for name, own in held.items() if sum(own.values()) <= gpu_gb * _BILLION]
    most = short_bytes(sum(held["ZeRO-3"].values()))
    words = f"On {plural(ranks, 'rank')} with {gpu_gb} GB each, before any activation: " + (
        f"{', '.join(fits)} fit." if fits else f"nothing fits; ZeRO-3 needs {most} a rank."
    )
    return Shown(words, (memory_bars({name: [own] for name, own in held.items()}),))


STAGES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")


def parts(parameters: int, ranks: int, numbers: int, stage: int) -> dict[str, int]:
    """Return the bytes of each part on one rank: stage 1 shards Adam's state, 2 gradients too, 3 all.

    In float32 a parameter has 4 bytes of weight, 4 of gradient and 8 of state; in bfloat16 2 and 2, and its
    state has a copy in float32 besides: 16 either way.
    """
    state = 8 if numbers == 4 else 12
    shard = -(-parameters // ranks)
    return {
        "weights": numbers * (shard if stage >= 3 else parameters),
        "gradients": numbers * (shard if stage >= 2 else parameters),
        "optimizer's state": state * (shard if stage >= 1 else parameters),
    }
