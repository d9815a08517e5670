"""All-reduce step by step: who sends to whom in each round of ring and tree, and what both cost."""

from __future__ import annotations

from collections.abc import Iterator

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.trace.events import Event, Trace
from helpers.views.curve import curves
from helpers.views.plain import plural, short_bytes
from helpers.views.rounds import rounds

_NETWORKS = {
    "10 µs, 50 GB/s": (10e-6, 50e9),
    "20 µs, 10 GB/s": (20e-6, 10e9),
    "50 µs, 1 GB/s": (50e-6, 1e9),
}
CONTROLS: tuple[Control, ...] = (
    choice("algorithm", "algorithm", ("ring", "tree")),
    steps("ranks", "ranks p", range(2, 9)),
    steps("rounds_shown", "rounds shown", range(1, 15)),
    Control("nbytes", "bytes n", {short_bytes(4**k): 4**k for k in range(3, 16)}),
    choice("network", "α and 1/β", tuple(_NETWORKS)),
)
START = {
    "algorithm": "ring",
    "ranks": 4,
    "rounds_shown": 14,
    "nbytes": 4**10,
    "network": "20 µs, 10 GB/s",
}

Round = list[tuple[int, int]]
"""Who sends to whom at the same time."""


def show(algorithm: str, ranks: int, rounds_shown: int, nbytes: int, network: str) -> Shown:
    """Draw the first rounds, and the cost of both for messages of all lengths."""
    plan = {"ring": ring, "tree": tree}[algorithm](ranks)
    each = nbytes // ranks if algorithm == "ring" else nbytes
    shown = plan[:rounds_shown]
    alpha, bandwidth = _NETWORKS[network]
    lengths = [4**k for k in range(3, 16)]
    lines = {
        "ring": [(n, _cost(len(ring(ranks)), n / ranks, alpha, bandwidth)) for n in lengths],
        "tree": [(n, _cost(len(tree(ranks)), n, alpha, bandwidth)) for n in lengths],
    }
    mine = _cost(len(plan), each, alpha, bandwidth)
    lines[f"{algorithm}, n = {short_bytes(nbytes)}"] = [(nbytes, mine)]
    words = (
        f"{algorithm} on {plural(ranks, 'rank')}: {plural(len(plan), 'round')} of "
        f"{short_bytes(each)} each, by α + β n {mine * 1e6:,.0f} µs in all."
    )
    cost = curves(lines, x="message length n [bytes]", y="predicted time [s]", log="xy")
    label = f"{algorithm}, {len(shown)} of {plural(len(plan), 'round')}"
    return Shown(words, (rounds({label: _planned(ranks, shown, each)}), cost))


def _cost(count: int, nbytes: float, alpha: float, bandwidth: float) -> float:
    return count * (alpha + nbytes / bandwidth)


def ring(ranks: int) -> list[Round]:
    """Return the rounds of reduce-scatter and all-gather around the ring: 2 (p - 1) of them."""
    return [[(rank, (rank + 1) % ranks) for rank in range(ranks)] for _ in range(2 * (ranks - 1))]


def tree(ranks: int) -> list[Round]:
    """Return the rounds of a reduce down a binomial tree and of a broadcast up again."""
    up: list[Round] = []
    step = 1
    while step < ranks:
        pairs = ((rank + step, rank) for rank in range(0, ranks, 2 * step))
        up.append([(src, dst) for src, dst in pairs if src < ranks])
        step *= 2
    return up + [[(dst, src) for src, dst in pairs] for pairs in reversed(up)]


def _planned(ranks: int, plan: list[Round], nbytes: int) -> Trace:
    """Write rounds as the trace that they would leave."""
    events = sorted(_events(ranks, plan, nbytes), key=lambda e: (e.rank, e.start_ns, e.op))
    return Trace(ranks, tuple(events))


def _events(ranks: int, plan: list[Round], nbytes: int) -> Iterator[Event]:
    for number, pairs in enumerate(plan):
        for src, dst in pairs:
            for rank, op, peer in ((src, "send", dst), (dst, "recv", src)):
                yield Event(
                    rank,
                    2 * number + (op == "recv"),
                    op,
                    op,
                    "plan",
                    tuple(range(ranks)),
                    peer=peer,
                    nbytes=nbytes,
                    start_ns=number * 1000,
                    wait_ns=number * 1000,
                    end_ns=number * 1000 + 900,
                )
