"""21.2 An all-reduce in int8 (25 min, ●●●●○, further)

- An all-reduce is a reduce-scatter and an all-gather. You can't add up codes with different scales. So
  what does each rank need to do between the two phases?
- Split x into p chunks. Send each rank its chunk's codes and scales by calling all_to_all_single twice. Then
  decode the received chunks and add them up in float32. Quantize this sum, gather its codes and scales from
  all ranks, and decode them.
- codes, scales = quantize_blocks(x, block); all_to_all_single into `theirs` and `steps` of the same shape;
  own = (theirs * steps[:, None]).view(world_size, -1).sum(0); codes, scales = quantize_blocks(own, block);
  all_gather_single both, and return codes * scales[:, None], flattened.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb21_little_communication.in_ranks import quantize_blocks, run_sum
from helpers.trace.volume import bytes_sent

ROUNDING_FACTOR = 1.0 + 1e-4
OWN_CHUNK_ADVICE = (
    "Each rank's chunk is more exact than the other ranks' copies of it, so replicas drift apart. The owner "
    "should also use the values that its codes represent."
)


def case(draw: Draw) -> Case:
    n, block = draw.ranks, draw.of(2, 4, 8)
    chunk = block * draw.whole(1, 4)
    sizes = [draw.of(1.0, 0.01, 100.0) for _ in range(n)]
    xs = [size * torch.randn(n * chunk, generator=draw.generator()) for size in sizes]
    total = torch.stack(xs).sum(0)
    steps = [quantize_blocks(x, block)[1] for x in xs]
    lost = sum(s.double() / 2 for s in steps)
    most = total.view(-1, block).abs().amax(1).double() + lost
    room = (lost + most / 254).repeat_interleave(block) * ROUNDING_FACTOR
    return Case(
        f"{n * chunk} numbers in blocks of {block}",
        [(x, block) for x in xs],
        right=AllRanks(make_rank_judge(total, room), judge_all_ranks),
        like={"x": "", "sum": total},
        facts={"most": 2 * (n - 1) * (chunk + chunk // block * 4)},
    )


def make_rank_judge(total: torch.Tensor, tolerance: torch.Tensor) -> Any:
    """Return the judge of one rank's sum, which allows the error of both quantizations."""

    def judge_rank(got: Any) -> Finding | None:
        if got["x"]:
            return Finding(got["x"], "The caller still needs `x`, so work on copies.")
        found = got["sum"]
        if found.shape != total.shape or found.dtype != total.dtype:
            return Finding(
                f"the sum is {found.dtype} of shape {tuple(found.shape)}, not {total.dtype} of shape "
                f"{tuple(total.shape)}"
            )
        wrong = ~((found.double() - total).abs() <= tolerance)
        if not wrong.any():
            return None
        i = int(wrong.nonzero()[0])
        return Finding(
            f"element {i} is {found[i]:.4g}, not {total[i]:.4g}; the codes may change it by "
            f"{tolerance[i]:.2g}"
        )

    return judge_rank


def judge_all_ranks(got: list[Any]) -> Finding | None:
    """Judge whether all ranks have the same bits."""
    for rank, each in enumerate(got):
        differ = (each["sum"] != got[0]["sum"]).nonzero()
        if len(differ):
            i = int(differ[0])
            return Finding(
                f"element {i} is {got[0]['sum'][i]:.9g} on rank 0 and {each['sum'][i]:.9g} on rank {rank}",
                OWN_CHUNK_ADVICE,
            )
    return None


def find_excess_traffic(trace: Trace, case: Case) -> str:
    """Return the rank that sends more than the codes and scales of one chunk to each rank, two times."""
    for rank in range(case.world_size):
        calls = trace.of(rank)
        sent = round(sum(bytes_sent(event) for event in calls))
        if sent > case.facts["most"]:
            largest = max(calls, key=bytes_sent)
            return (
                f"rank {rank} sends {sent:,} bytes, {round(bytes_sent(largest)):,} of them with "
                f"{largest.call} of {largest.dtype}{at(largest)}, but {case.facts['most']:,} are enough: "
                "each chunk's codes and scales, once to its owner and once from the owner to all ranks."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        WaitsForAll(),
        Predicate(
            find_excess_traffic, "codes and scales of one chunk are sent to each rank, twice"
        ),
    ),
    failed=(HangAdvice("Every rank must make the same calls, in the same order."),),
    kind=Kind.MODULE,
    driver=run_sum,
    reported=("x",),
)
