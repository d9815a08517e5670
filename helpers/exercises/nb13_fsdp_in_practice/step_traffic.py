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

SHARD = "A rank hands its shard to an all_gather, one part of `ranks`; the whole layer is what comes out."
WHOLE = "A rank hands whole gradients to a reduce_scatter; a shard is what comes out."
AGAIN = "`True` and `False` are ints to Python, too: ask `reshard is True`, or look for them first."


def case(draw: Draw) -> Case:
    ranks = draw.of(4, 6, 8, 64)
    k = draw.of(True, False, 2, ranks // 2)
    param, reduce = draw.of((4, 4), (2, 2), (2, 4))
    microbatches, wait = draw.whole(2, 6), draw.of(True, False)
    layers = [ranks * draw.whole(1, 10**6) for _ in range(draw.whole(1, 12))]
    n, given = sum(layers), (layers, ranks, k, param, reduce, microbatches, wait)
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

    scatters = 1 if wait else microbatches
    return Case(
        f"{plural(len(layers), 'layer')}, {ranks} ranks, reshard {k}, {microbatches} microbatches"
        f"{', wait' * wait}",
        [given],
        right=right,
        mistakes=[
            Mistake(lambda got, rank: not isinstance(got, (tuple, list)) or len(got) != 3, THREE),
            part(0, right[0] * ranks, SHARD),
            part(0, microbatches * 2 * n * param, SHARD),
            part(
                0,
                right[0] // microbatches * (microbatches - wait * (microbatches - 1)),
                "`wait` takes gradients together. Weights are gathered for every microbatch all the same.",
            ),
            part(0, right[0] // microbatches, "Each microbatch gathers again."),
            *([] if k is True else [gathers(True, KINDS[type(k)])]),
            *([] if k is False else [gathers(False, "Backward gathers again here: {again}.")]),
            part(0, microbatches * (n // ranks + n // 1) * param, AGAIN),
            part(0, right[0] // param * reduce, "Weights are gathered in param_dtype."),
            part(0, right[0] // param * 4, "Weights are gathered in param_dtype, not in float32."),
            part(1, right[1] // ranks, WHOLE),
            part(1, right[1] // scatters * (microbatches + 1 - scatters), WAIT),
            part(1, right[1] // scatters * microbatches, WAIT),
            part(1, right[1] // reduce * param, "Gradients are scattered in reduce_dtype."),
            part(1, right[1] // reduce * 4, "Gradients are scattered in reduce_dtype."),
            part(2, n * reduce, HELD_SHARD),
            part(2, n * 4, HELD_SHARD if not wait else HELD_WHOLE),
            part(2, n // ranks * reduce, HELD_SHARD if not wait else HELD_WHOLE),
            part(2, n // ranks * 4, HELD_WHOLE),
            part(2, n * param, HELD_WHOLE if wait else HELD_SHARD),
            part(
                2,
                0,
                "Gradients stay until the optimizer's step: they add up over the microbatches.",
            ),
            part(
                2,
                right[2] * microbatches,
                "Gradients add up in place: one sum is held, however many.",
            ),
            part(2, right[2] * (microbatches - 1), "Gradients add up in place: one sum is held."),
        ],
        facts={
            "again": "the same shard"
            if k is True
            else f"a {k}th of each layer, among {k} ranks"
            if k != 2
            else "half of each layer, among two ranks"
        },
    )


THREE = "Return three whole numbers: gathered, scattered, held."
WAIT = "With `wait` only the last microbatch scatters, without it each one does."
HELD_SHARD = (
    "Who has scattered keeps the shard only, and adds it up in the weights' own dtype, float32."
)
HELD_WHOLE = "Who waits keeps whole gradients, in the dtype in which they will be scattered."
KINDS = {
    bool: "With `False` the whole weights stay: backward gathers nothing.",
    int: "With a number a rank keeps a larger part after forward, one of that many, and hands that in.",
}


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
