"""20.4 Which rank computes wrong? (20 min, ●●●○○)

- Which ranks must have the same bits? And if two of them disagree, how do you find out which one is wrong?
- Compute digests of the shard, of this rank's five gradients, and of the previous rank's five gradients. Then
  gather all digests. A shard is wrong if its digest differs from the digests of all its copies. A rank that
  computes wrong numbers disagrees with both of its neighbors.
- own = torch.tensor([digest(shard), five of gradient(rank, step), five of gradient((rank - 1) % world_size,
  step)]); all_gather; pair r disagrees if row r's own five differ from the last five of row (r + 1) %
  world_size. Rank r is wrong if pair r and pair r - 1 disagree.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.wrong_rank import STEPS, flip_bit, run_search

NUMBERS = 600
MAX_BYTES = 1000
MAX_CALLS = 2 * STEPS


def case(draw: Draw) -> Case:
    n = draw.ranks
    shards = draw.of(2, 2, 1) if n >= 6 else 1  # so that there are three copies
    dtype = draw.dtype(torch.float32, torch.bfloat16)
    whole = torch.randn(shards, NUMBERS, generator=draw.generator()).to(dtype)
    whole[:, 7] = 0
    kind = draw.of("both", "a wrong shard", "a wrong gradient", "one rank", "both", "none wrong")
    first, second = draw.rank(), draw.of(draw.rank(), draw.rank(), 0)
    if draw.of(False, True, False):
        first %= shards  # the first copy is wrong
    if kind == "both" and first == second:
        second = (first + 1) % n
    wrong_shard = first if kind in ("both", "a wrong shard", "one rank") else None
    computes_wrong = {"both": second, "a wrong gradient": second, "one rank": first}.get(kind)
    ours = [whole[r % shards].clone() for r in range(n)]
    where = ""
    if wrong_shard is not None:
        place, bit = draw.of((7, -1), (300, 0), (draw.whole(100, 500), 3), (599, -2))
        if shards > 1 and draw.of(True, False):
            ours[wrong_shard] = whole[(wrong_shard + 1) % shards].clone()
            where = f"it has the shard of rank {(wrong_shard + 1) % n}"
        else:
            ours[wrong_shard] = flip_bit(ours[wrong_shard], place, bit)
            where = f"its shard differs in {describe_bit(place, bit)}"
    step, seed = draw.of(4, 0, 2, 4, 1, 3, 0), draw.whole(0, 10**6)
    place, bit = draw.of((250, 0), (0, -1), (499, -2), (draw.whole(100, 400), 2))
    wrong = None if computes_wrong is None else (computes_wrong, step, place, bit)
    when = f"in step {step}, it flips {describe_bit(-1, bit)}"
    return Case(
        f"{kind}, {shards} {'shard' if shards == 1 else 'shards'}, {dtype}",
        [(shards, own, wrong, seed) for own in ours],
        right=make_judge((wrong_shard, where), (computes_wrong, when)),
        like={"found": None, "calls": 0, "hashed": ""},
        facts={"bytes": MAX_BYTES},
        shown=f"{shards} {'shard' if shards == 1 else 'shards'} for each replica",
        telling=kind != "none wrong",
    )


def describe_bit(place: int, bit: int) -> str:
    """Describe the bit that `flip_bit` flips. The number at place 7 is a zero."""
    if bit == -1:
        return "the sign of a zero" if place == 7 else "the sign of one number"
    return "the lowest bit of one number" if bit == 0 else "one bit of one number"


WANTED = "Return a pair: the rank with the wrong shard, and the rank that computes wrong gradients, or None."


def make_judge(shard: tuple[int | None, str], computes: tuple[int | None, str]) -> Any:
    """Return the judge of one rank's pair and of its number of microbatches.

    shard, computes: for each fault, the rank that has it (or None) and a description.
    """
    parts = (
        ("the rank with the wrong shard", *shard),
        ("the rank that computes wrong gradients", *computes),
    )

    def judge(got: Any, rank: int) -> Finding | None:
        found = got["found"]
        if found is None:
            return Finding("nothing was returned", WANTED)
        if not (isinstance(found, list) and len(found) == 2):
            return Finding(f"it returns {found!r}", WANTED)
        for (name, right, why), own in zip(parts, found, strict=True):
            if not is_rank_or_none(own):
                return Finding(f"it returns {own!r} as {name}", WANTED)
            if own != right:
                missed = f" ({why})" if own is None else ""
                advice = HASHED.format(kind=got["hashed"]) if got["hashed"] else ()
                return Finding(f"it returns {own} instead of {right} as {name}{missed}", advice)
        if got["calls"] > MAX_CALLS:
            return Finding(
                f"it calls `gradient` {got['calls']} times, but {MAX_CALLS} are enough",
                "Each rank should run its five microbatches and those of the rank before it.",
            )
        return None

    return judge


def is_rank_or_none(own: Any) -> bool:
    if isinstance(own, torch.Tensor):
        return own.numel() == 1
    return own is None or (isinstance(own, (int, float)) and not isinstance(own, bool))


HASHED = (
    "Python's `hash` of {kind} differs between processes that were started separately, as this check "
    "simulates. Use a digest of the bytes instead: `digest`, hashlib or zlib."
)

EXERCISE = Exercise(
    case,
    (
        Calls(
            total_bytes="bytes",
            text="sends digests, not tensors",
            why="A digest has eight bytes, however large the tensor is.",
            large_advice="A digest has eight bytes, however large the tensor is.",
        ),
        WaitsForAll(),
    ),
    failed=(
        CrashAdvice(
            "unsupported ScalarType BFloat16",
            "NumPy has no bfloat16. View the same bytes as another type first: "
            "`x.view(torch.uint8).numpy()`.",
        ),
        CrashAdvice(
            "Overflow when unpacking long|too large to convert|int too big to convert",
            "int64 has 63 bits and a sign. Make the number from fewer bytes of the digest, for example "
            "seven.",
        ),
        CrashAdvice(
            "cannot pickle '_hashlib",
            "hashlib's object is not the digest yet. Call its `digest()` or `hexdigest()`.",
        ),
        HangAdvice("Every rank must make the same calls, in the same order."),
    ),
    kind=Kind.MODULE,
    driver=run_search,
    reported=("calls", "hashed"),
    sizes=(3, 4, 6, 8),
    count=20,
)
