"""Gradient buckets over the backward pass: when each can go, and what of it backward hides."""

from __future__ import annotations

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.trace.events import Event, Trace
from helpers.views.plain import plural
from helpers.views.step_lanes import step_lanes

_MS = 1_000_000
_SPEEDS = {
    "slow (a layer takes 2 ms)": 2.0,
    "as fast as backward (1 ms)": 1.0,
    "fast (0.3 ms)": 0.3,
}
CONTROLS: tuple[Control, ...] = (
    steps("layers", "layers", range(2, 17)),
    steps("bucket", "layers in a bucket", range(1, 17)),
    choice("network", "network", tuple(_SPEEDS)),
    choice("latency_ms", "start of a call [ms]", (0.0, 0.1, 0.5, 1.0)),
)
START = {"layers": 8, "bucket": 2, "network": "as fast as backward (1 ms)", "latency_ms": 0.1}


def show(layers: int, bucket: int, network: str, latency_ms: float) -> Shown:
    """Draw one step: forward 0.5 ms and backward 1 ms for each layer, an all-reduce for each bucket."""
    sizes = bucket_sizes(layers, bucket)
    calls = reduced(sizes, layers / 2, _SPEEDS[network], latency_ms)
    end = max(layers * 1.5, calls[-1][2])
    exposed = end - layers * 1.5
    alone = sum(size * _SPEEDS[network] + latency_ms for size in sizes)
    words = (
        f"{plural(len(sizes), 'bucket')}: the step takes {end:.1f} ms. Of {alone:.1f} ms of communication "
        f"{exposed:.1f} ms are exposed, after backward; the rest is hidden behind it."
    )
    return Shown(words, (step_lanes({plural(len(sizes), "bucket"): _trace(layers, calls)}),))


def bucket_sizes(layers: int, bucket: int) -> list[int]:
    """Fill buckets with the gradients of layers, in the order in which backward makes them."""
    bucket = min(bucket, layers)
    whole, rest = divmod(layers, bucket)
    return [bucket] * whole + ([rest] if rest else [])


def reduced(
    sizes: list[int], backward_ms: float, layer_ms: float, latency_ms: float
) -> list[tuple[float, float, float]]:
    """Return each bucket's all-reduce: ready, begun and done, in ms; one after the other.

    backward_ms: when backward begins. It takes 1 ms a layer, and a bucket waits for its last gradient.
    """
    calls, ready, free = [], backward_ms, 0.0
    for size in sizes:
        ready += size
        begins = max(ready, free)
        free = begins + latency_ms + size * layer_ms
        calls.append((ready, begins, free))
    return calls


def _trace(layers: int, calls: list[tuple[float, float, float]]) -> Trace:
    spans = [("forward", 0.0, layers / 2), ("backward", layers / 2, layers * 1.5)]
    events = [
        Event(0, seq, "span", name, start_ns=int(start * _MS), end_ns=int(end * _MS))
        for seq, (name, start, end) in enumerate(spans)
    ]
    events += [
        Event(
            0,
            seq,
            "all_reduce",
            "all_reduce",
            "plan",
            (0,),
            asynchronous=True,
            start_ns=int(begins * _MS),
            end_ns=int(done * _MS),
        )
        for seq, (_, begins, done) in enumerate(calls, start=2)
    ]
    return Trace(1, tuple(events))
