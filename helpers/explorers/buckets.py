"""Show gradient buckets during backward: when each can be sent, and how much of the sending is hidden."""

from __future__ import annotations

from typing import Any

from helpers.explorers.form import Control, choice, steps

_SPEEDS = {
    "slow (a layer takes 2 ms)": 2.0,
    "as fast as backward (1 ms)": 1.0,
    "fast (0.3 ms)": 0.3,
}
TITLE = "Gradient buckets behind backward"
CONTROLS: tuple[Control, ...] = (
    steps("layers", "layers", range(2, 17)),
    steps("bucket", "layers in a bucket", range(1, 17)),
    choice("network", "network", tuple(_SPEEDS)),
    choice("latency_ms", "start of a call [ms]", (0.0, 0.1, 0.5, 1.0)),
)
START_SETTING = {
    "layers": 8,
    "bucket": 2,
    "network": "as fast as backward (1 ms)",
    "latency_ms": 0.1,
}
SENTENCE_TEMPLATES = {
    "row": "bucket {bucket}, {size:layer}: ready after {ready:1} ms, all_reduce from "
    "{begins:1} to {done:1} ms",
    "says": "{buckets:bucket}: the step takes {end:1} ms. Of {alone:1} ms of communication {exposed:1} ms "
    "are exposed, after backward; the rest is hidden behind it.",
}


def page_data() -> dict[str, Any]:
    return {"speeds": _SPEEDS}


def plan(layers: int, bucket: int, network: str, latency_ms: float) -> dict[str, Any]:
    """Return one step: 0.5 ms of forward and 1 ms of backward per layer, and each bucket's all_reduce."""
    sizes = bucket_sizes(layers, bucket)
    calls = reduction_times(sizes, layers / 2, _SPEEDS[network], latency_ms)
    end = max(layers * 1.5, calls[-1][2])
    return {
        "buckets": len(sizes),
        "end": end,
        "exposed": end - layers * 1.5,
        "alone": sum(size * _SPEEDS[network] + latency_ms for size in sizes),
        "rows": [
            {"bucket": i, "size": size, "ready": ready, "begins": begins, "done": done}
            for i, (size, (ready, begins, done)) in enumerate(zip(sizes, calls, strict=True), 1)
        ],
    }


def bucket_sizes(layers: int, bucket: int) -> list[int]:
    """Return the number of layers in each bucket, in the order in which backward computes gradients."""
    bucket = min(bucket, layers)
    whole, rest = divmod(layers, bucket)
    return [bucket] * whole + ([rest] if rest else [])


def reduction_times(
    sizes: list[int], backward_ms: float, layer_ms: float, latency_ms: float
) -> list[tuple[float, float, float]]:
    """Return the times in ms at which each bucket's all_reduce is ready, begins and ends.

    The calls run one after another. backward_ms: the time when backward begins. Backward takes 1 ms per
    layer, and a bucket waits for its last gradient.
    """
    calls, ready, free = [], backward_ms, 0.0
    for size in sizes:
        ready += size
        begins = max(ready, free)
        free = begins + latency_ms + size * layer_ms
        calls.append((ready, begins, free))
    return calls
