"""Show all-reduce step by step: the messages in each round of ring and tree, and the cost of both."""

from __future__ import annotations

from typing import Any

from helpers.explorers.form import Control, choice, steps

_NETWORKS = {
    "10 µs, 50 GB/s": (10e-6, 50e9),
    "20 µs, 10 GB/s": (20e-6, 10e9),
    "50 µs, 1 GB/s": (50e-6, 1e9),
}


def _label(nbytes: int) -> str:
    """Write a size with three digits, so that a size and a quarter of it agree (1.05 MB, 262 kB)."""
    exponent = (len(str(nbytes)) - 1) // 3
    return f"{float(f'{nbytes / 1000**exponent:.3g}'):g} {('B', 'kB', 'MB', 'GB')[exponent]}"


TITLE = "Ring and tree, round by round"
CONTROLS: tuple[Control, ...] = (
    choice("algorithm", "algorithm", ("ring", "tree")),
    choice("network", "α and 1/β", tuple(_NETWORKS)),
    steps("ranks", "ranks p", range(2, 9)),
    steps("rounds_shown", "most rounds shown", range(1, 15)),
    Control("nbytes", "bytes n", {_label(4**k): 4**k for k in range(3, 16)}),
)
START_SETTING = {
    "algorithm": "ring",
    "ranks": 4,
    "rounds_shown": 14,
    "nbytes": 4**10,
    "network": "20 µs, 10 GB/s",
}
SENTENCE_TEMPLATES = {
    "row": "round {round}: {listed}",
    "says": "{algorithm}, {ranks:rank}: {rounds:round} of {each:bytes} each, predicted by α + βn: "
    "{time:seconds}.",
    "always": "With this many ranks both take the same number of rounds, and the ring's are shorter.",
    "from": "From {crossing:bytes} on the ring is cheaper than the tree.",
}

Round = list[tuple[int, int]]
"""Pairs (sender, receiver) that communicate at the same time."""


def page_data() -> dict[str, Any]:
    return {"networks": _NETWORKS}


def plan(
    algorithm: str, ranks: int, rounds_shown: int, nbytes: int, network: str
) -> dict[str, Any]:
    """Return the first rounds, their cost, and the length above which the ring is cheaper."""
    rounds = {"ring": ring, "tree": tree}[algorithm](ranks)
    each = nbytes // ranks if algorithm == "ring" else nbytes
    alpha, bandwidth = _NETWORKS[network]
    more = len(ring(ranks)) - len(tree(ranks))
    saved = len(tree(ranks)) / bandwidth - len(ring(ranks)) / (ranks * bandwidth)
    return {
        "rounds": len(rounds),
        "each": each,
        "time": len(rounds) * (alpha + each / bandwidth),
        "crossing": alpha * more / saved,
        "says": ["says", "from" if more else "always"],
        "rows": [
            {
                "round": k,
                "pairs": pairs,
                "listed": ", ".join(f"{src} → {dst}" for src, dst in pairs),
            }
            for k, pairs in enumerate(rounds[:rounds_shown], 1)
        ],
    }


def ring(ranks: int) -> list[Round]:
    """Return the 2 (p - 1) rounds of reduce-scatter and all-gather around the ring."""
    return [[(rank, (rank + 1) % ranks) for rank in range(ranks)] for _ in range(2 * (ranks - 1))]


def tree(ranks: int) -> list[Round]:
    """Return the rounds of a reduce along a binomial tree, and of a broadcast back along the tree."""
    up: list[Round] = []
    step = 1
    while step < ranks:
        pairs = ((rank + step, rank) for rank in range(0, ranks, 2 * step))
        up.append([(src, dst) for src, dst in pairs if src < ranks])
        step *= 2
    return up + [[(dst, src) for src, dst in pairs] for pairs in reversed(up)]
