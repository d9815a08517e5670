"""13.1 The bytes of a step (10 min, ●●○○○)

- Begin with one layer and one microbatch. What does a rank pass to a gather, its shard or the whole layer?
  And what does it pass to a scatter?
- To gather weights for forward, a rank passes n // ranks elements of param_bytes in each microbatch. With
  `reshard`, it passes the same number again for backward. A scatter gets n elements of reduce_bytes. With
  `wait`, there is only one scatter in all; otherwise, there is one for each microbatch.
- n = sum(layers); gathers = 2 if reshard else 1; gathered = microbatches * gathers * n // ranks *
  param_bytes; scattered = (1 if wait else microbatches) * n * reduce_bytes; held = n * reduce_bytes if
  wait else n // ranks * 4.
"""

from helpers.checks.author import *


def case(draw: Draw) -> Case:
    ranks = draw.of(4, 6, 8, 64)
    reshard = draw.of(True, False)
    param, reduce = draw.of((4, 4), (2, 2), (2, 4))
    microbatches, wait = draw.whole(2, 6), draw.of(True, False)
    layers = [ranks * draw.whole(1, 10**6) for _ in range(draw.whole(1, 12))]
    given = layers, ranks, reshard, param, reduce, microbatches, wait

    return Case(
        f"{plural(len(layers), 'layer')}, {ranks} ranks, reshard {reshard}, {microbatches} microbatches"
        f"{', wait' * wait}",
        [given],
        right=traffic_of(*given),
        parts=("gathered", "scattered", "held"),
    )


def traffic_of(
    layers: list[int],
    ranks: int,
    reshard: bool,
    param_bytes: int,
    reduce_bytes: int,
    microbatches: int,
    wait: bool,
) -> tuple[int, int, int]:
    """Return the bytes sent and retained by torch 2.13's fully_shard."""
    n = sum(layers)
    return (
        microbatches * (1 + reshard) * n // ranks * param_bytes,
        (1 if wait else microbatches) * n * reduce_bytes,
        n * reduce_bytes if wait else n // ranks * 4,
    )


EXERCISE = Exercise(case, kind=Kind.LOCAL)
