"""13.1 The bytes of a step (10 min, ●●○○○)

- Take one layer and one microbatch first. What does a rank hand to a gather, its shard or the whole? And to a
  scatter?
- Each microbatch gathers for forward: n // ranks elements of param_bytes. True gathers the same again for
  backward, a number k gathers n // k, False nothing. Scatters: n elements of reduce_bytes, each time or once.
- n = sum(layers); again = 0 if reshard is False else n // ranks if reshard is True else n // reshard;
  gathered = microbatches * (n // ranks + again) * param_bytes; scattered = (1 if wait else microbatches) * n
  * reduce_bytes; held = n * reduce_bytes if wait else n // ranks * 4.
"""

from typing import Any

from helpers.checks.author import *
from helpers.views.plain import plural

AGAIN = "`True` and `False` are ints to Python, too: ask `reshard is True`, or look for them first."


def case(draw: Draw) -> Case:
    ranks = draw.of(4, 6, 8, 64)
    k = draw.of(True, False, 2, ranks // 2)
    param, reduce = draw.of((4, 4), (2, 2), (2, 4))
    microbatches, wait = draw.whole(2, 6), draw.of(True, False)
    layers = [ranks * draw.whole(1, 10**6) for _ in range(draw.whole(1, 12))]
    _n, given = sum(layers), (layers, ranks, k, param, reduce, microbatches, wait)
    right = traffic_of(*given)

    def part(i: int, value: int, words: str) -> Mistake:
        """Make a mistake of one of the three numbers, where those before it are right."""
        return Mistake(
            lambda got, rank: (
                isinstance(got, (tuple, list))
                and len(got) == 3
                and tuple(got[:i]) == right[:i]
                and got[i] == value != right[i]
            ),
            words,
        )

    def gathers(again: Any, words: str) -> Mistake:
        return part(0, traffic_of(layers, ranks, again, *given[3:])[0], words)

    return Case(
        f"{plural(len(layers), 'layer')}, {ranks} ranks, reshard {k}, {microbatches} microbatches"
        f"{', wait' * wait}",
        [given],
        right=right,
        facts={
            "again": "the same shard"
            if k is True
            else f"a {k}th of each layer, among {k} ranks"
            if k != 2
            else "half of each layer, among two ranks"
        },
    )


def traffic_of(
    layers: list[int],
    ranks: int,
    reshard: bool | int,
    param_bytes: int,
    reduce_bytes: int,
    microbatches: int,
    wait: bool,
) -> tuple[int, int, int]:
    """Give what fully_shard hands in and holds, as torch 2.13 does."""
    n = sum(layers)
    again = 0 if reshard is False else n // ranks if reshard is True else n // reshard
    return (
        microbatches * (n // ranks + again) * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL)
