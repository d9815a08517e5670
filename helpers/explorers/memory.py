"""Show how much of a model one rank holds under DDP and the three stages of ZeRO."""

from __future__ import annotations

from typing import Any

from helpers.explorers.form import Control, choice, steps
from helpers.views.memory_bars import LOOKS

_BILLION = 10**9
_SIZES = {f"{n:g} billion": int(n * _BILLION) for n in (0.1, 1, 3, 7, 8, 13, 30, 70, 180, 405)}
TITLE = "What a rank holds: DDP to ZeRO-3"
CONTROLS: tuple[Control, ...] = (
    Control("parameters", "parameters", _SIZES),
    steps("ranks", "ranks", [2**k for k in range(11)]),
    choice("numbers", "numbers", {"float32": 4, "bfloat16, with a copy in float32": 2}),
    choice("gpu_gb", "GPU memory [GB]", (24, 32, 40, 80, 141, 192)),
)
START_SETTING = {"parameters": 8 * _BILLION, "ranks": 8, "numbers": 2, "gpu_gb": 80}
SENTENCE_TEMPLATES = {
    "row": "{name}: weights {weights:bytes}, gradients {gradients:bytes}, optimizer state {state:bytes}; "
    "{total:bytes} in total",
    "fits": "On {ranks:rank} with {gpu_gb} GB each, before any activation, there is room for {fitting}.",
    "nothing": "On {ranks:rank} with {gpu_gb} GB each nothing fits: even ZeRO-3 needs {least:bytes} on "
    "each, before any activation.",
}


def page_data() -> dict[str, Any]:
    return {"looks": [color for color, _ in LOOKS[:3]]}


def plan(parameters: int, ranks: int, numbers: int, gpu_gb: int) -> dict[str, Any]:
    """Return weights, gradients and Adam's state at each stage, without activations."""
    rows = [parts(parameters, ranks, numbers, stage) for stage in range(len(STAGES))]
    fits = [row["name"] for row in rows if row["total"] <= gpu_gb * _BILLION]
    return {
        "fitting": ", ".join(fits),
        "least": rows[-1]["total"],
        "says": ["fits" if fits else "nothing"],
        "rows": rows,
    }


STAGES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")


def parts(parameters: int, ranks: int, numbers: int, stage: int) -> dict[str, Any]:
    """Return the bytes of each part on one rank.

    Stage 1 shards Adam's state, stage 2 also shards the gradients, and stage 3 shards everything.

    In float32, a parameter needs 4 bytes for the weight, 4 for the gradient and 8 for the state. In bfloat16,
    it needs 2 and 2, and 12 for the state, which includes a copy in float32. The sum is 16 in both cases.
    """
    shard = -(-parameters // ranks)
    weights = numbers * (shard if stage >= 3 else parameters)
    gradients = numbers * (shard if stage >= 2 else parameters)
    state = (8 if numbers == 4 else 12) * (shard if stage >= 1 else parameters)
    sizes = {"weights": weights, "gradients": gradients, "state": state}
    return {"name": STAGES[stage], **sizes, "total": sum(sizes.values())}
