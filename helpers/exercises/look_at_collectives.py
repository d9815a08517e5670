"""The first thing to look at in an answer to an exercise of notebook 04 that is not right yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.model import Case
from helpers.ranks.failures import RankDied, RankFailed
from helpers.ranks.run import Run


def look_at_broadcast(case: Case, run: Run) -> str:
    src = case.inputs[0][3]
    if wrong := _other_root(run, src, "src"):
        return wrong
    if isinstance(run.failure, RankDied) or "NoneType" in _error(run):
        return (
            f"Only rank {src} has `x`. On the others make a tensor to receive into: "
            "`torch.empty(shape, dtype=dtype)`."
        )
    if run.failure is None and any(value is None for value in run.values):
        return "Every rank returns the tensor, also the one that it received into."
    return ""


def look_at_rows(case: Case, run: Run) -> str:
    (x, src), each = case.inputs[0], _each(case)
    if wrong := _other_root(run, src, "src"):
        return wrong
    if _sizes_differ(run):
        return (
            f"All parts of one scatter have the same shape, and so has each rank's `out`. "
            f"{len(x)} rows for {case.world_size} ranks: {each} rows each, so add rows of zeros on "
            "`src` and drop them after."
        )
    if "on non-source ranks" in _error(run):
        return "The list of parts is given on rank `src` only; the others give None."
    lengths = [len(v) if _is_tensor(v) and v.dim() else -1 for v in run.values]
    if run.failure is None and _some_added(lengths, len(x), each):
        return "Added rows are still there: each rank drops those beyond the end of the matrix."
    return _other_shares(lengths, len(x), "rows") if run.failure is None else ""


def look_at_gather(case: Case, run: Run) -> str:
    if "on non-destination ranks" in _error(run):
        return "The list to gather into is given on rank `dst` only; the others give None."
    total, dst = case.inputs[0][1:]
    if wrong := _other_root(run, dst, "dst"):
        return wrong
    if _sizes_differ(run):
        return (
            "All parts of one gather have the same shape: hand in the padding too, and cut at "
            "`total` on `dst`."
        )
    if run.failure is not None:
        return ""
    got = run.values[dst]
    if not _is_tensor(got):
        return ""
    if _same(got[:total], torch.cat([given[0] for given in case.inputs])[: len(got[:total])]):
        return (
            "The parts stand one after the other, but rank 0 has samples 0, "
            f"{case.world_size}, ...: they must be dealt back like cards."
        )
    if all(len(set(turn.tolist())) == 1 for turn in got.split(case.world_size)):
        return (
            "All parts hold the same: `[t] * n` is one tensor, n times. Make one for each rank, in a "
            "comprehension."
        )
    if len(got) > total:
        return f"{len(got)} predictions for {total} samples: the last ones are padding, cut them."
    return ""


def look_at_moments(case: Case, run: Run) -> str:
    wanted = case.expected[0] if case.expected else None
    if run.failure is not None or wanted is None:
        return ""
    pair = _numbers(run.values[0])
    if len(pair) != 2:
        return "Return two numbers, the mean and the variance."
    mean, variance = pair
    parts = [given[0].double() for given in case.inputs]
    counted = sum(map(len, parts))
    if any(p.numel() == 0 for p in parts) and mean != mean:
        return "One rank has no numbers at all: its own mean is nan, but its sum is 0."
    if _near(mean, wanted[0]) and _near(variance, wanted[1] * counted / (counted - 1)):
        return "That is the variance with n - 1 below. Here all numbers are known: divide by n."
    if _near(mean, wanted[0]) and _near(variance, wanted[1] ** 0.5):
        return "That is the standard deviation, the root of the variance."
    means = [p.mean().item() for p in parts if p.numel()]
    if not _near(mean, wanted[0]) and _near(mean, sum(means) / len(means)):
        return (
            "That is the mean of the ranks' means. It is right only where all ranks have as many "
            "numbers: add up sums and counts."
        )
    if _near(mean, wanted[0]) and abs(wanted[0]) > 100:
        return (
            "The mean is right, the variance is not: the sum of squares is large here, and float32 "
            "keeps about 7 digits of it. Use float64 before you square, and for the tensor of the "
            "sums: `dtype=torch.float64`."
        )
    return ""


def look_at_argmax(case: Case, run: Run) -> str:
    if run.failure is not None or case.expected is None:
        return ""
    owner, index = case.expected[0]
    pair = _numbers(run.values[0])
    if len(pair) != 2:
        return "Return two whole numbers: the rank that has the largest value, and its index there."
    parts = [given[0] for given in case.inputs]
    if "very large" in case.label and pair[0] != owner:
        return "Near 2**60 neighbouring whole numbers become equal as float: keep the dtype of `x`."
    if "all negative" in case.label and pair[0] != owner:
        return "All numbers are negative in this case: does a comparison begin at 0?"
    if pair[0] == parts[owner].max():
        return "The first number is the largest value itself; the rank that has it is wanted."
    tied = [r for r, part in enumerate(parts) if part.max() == parts[owner].max()]
    if pair[0] in tied[1:]:
        return f"Ranks {', '.join(map(str, tied))} have the same largest value: the lowest counts."
    if tuple(pair) == (index, owner):
        return "The right two numbers, in the other order: first the rank, then the index."
    if pair[0] == owner:
        return (
            f"The owner, rank {owner}, is right; its index is {index}. Only the owner knows it: "
            "how do the others learn it?"
        )
    return ""


def look_at_transpose(case: Case, run: Run) -> str:
    if "contiguous" in _error(run):
        return (
            "A block of columns and a transposed block are views. `.contiguous()` makes a copy "
            "whose elements lie side by side."
        )
    if run.failure is not None or case.expected is None:
        return ""
    got, wanted = run.values[0], case.expected[0]
    if not _is_tensor(got) or _same(got, wanted):
        return ""
    rows, columns = len(case.inputs[0][0]), len(wanted)
    blocks = [given[0][:, :columns] for given in case.inputs]
    if _same(got, torch.cat(blocks, dim=1)) or _same(got, torch.cat(blocks)):
        return "The right blocks have come, but each must be transposed in itself as well."
    if _same(got, torch.cat([b.T for b in blocks])):
        return "Each block is right. They belong side by side: `torch.cat(..., dim=1)`."
    if _same(got, torch.cat([b.reshape(columns, rows) for b in blocks], dim=1)):
        return "`reshape` and `view` do not transpose: they keep the elements in their order."
    if got.shape == wanted.shape and _same(got.flatten().sort()[0], wanted.flatten().sort()[0]):
        return (
            "The right elements, in wrong places: is a tensor that you hand in, or one that "
            "receives, not contiguous? `torch.empty_like` of a transposed block is one; make it by "
            "`torch.empty(rows, columns, dtype=x.dtype)`."
        )
    if got.dim() != 2 or got.shape[0] != columns:
        return (
            f"Each rank returns {columns} rows of the transposed matrix, which were {columns} "
            "columns of `x`: cut `x` by columns, `x.chunk(world_size, dim=1)`."
        )
    return ""


def look_at_split_sum(case: Case, run: Run) -> str:
    x, each = case.inputs[0][0], _each(case)
    if _sizes_differ(run) or "ProcessGroupGloo.cpp" in _error(run):
        return (
            f"{len(x)} elements for {case.world_size} ranks: {each} each. Add zeros at the end "
            f"until there are {each * case.world_size}, and drop them after."
        )
    if run.failure is not None:
        return ""
    lengths = [len(v) if _is_tensor(v) and v.dim() else -1 for v in run.values]
    if _some_added(lengths, len(x), each):
        return "Added zeros are still there: each rank drops those beyond the end of `x`."
    if all(_is_tensor(v) and len(v) == len(x) for v in run.values if v is not None):
        return f"Each rank returns its own part of the sum only, here at most {each} elements."
    return _other_shares(lengths, len(x), "elements")


def look_at_columns(case: Case, run: Run) -> str:
    if "on non-source ranks" in _error(run):
        return "The list of parts is given on rank `src` only; the others give None."
    src = case.inputs[0][1]
    if other := _other_root(run, src, "src"):
        return other
    if run.failure is not None or case.expected is None:
        return ""
    in_rows = case.inputs[src][0].reshape(-1).chunk(case.world_size)[1]
    if _is_tensor(run.values[1]) and _same(run.values[1].reshape(-1), in_rows):
        return "Rank 1 has a stretch of rows: cut along the columns, `x.chunk(world_size, dim=1)`."
    wrong = [
        rank
        for rank, (got, wanted) in enumerate(zip(run.values, case.expected, strict=True))
        if _is_tensor(got) and got.shape == wanted.shape and not _same(got, wanted)
    ]
    if wrong and _scrambled(case, run):
        return (
            "Elements of the right matrix, in wrong places: a part, or the tensor that receives, is "
            "not contiguous. Print `is_contiguous()` of both; `clone()` and `torch.empty_like` keep "
            "the memory order of a transposed tensor."
        )
    return ""


def _other_root(run: Run, wanted: int, word: str) -> str:
    """Tell when a collective with a source or a destination names another rank than it should."""
    for event in run.trace.calls:
        if event.root is not None and event.root != wanted:
            return f"In this case `{word}` is {wanted}, but the {event.op} names rank {event.root}."
    return ""


def _some_added(lengths: list[int], count: int, each: int) -> bool:
    """Tell whether some ranks kept things that were added, and all others what is theirs."""
    own = [len(range(count)[r * each : (r + 1) * each]) for r in range(len(lengths))]
    return lengths != own and all(n in (mine, each) for n, mine in zip(lengths, own, strict=True))


def _other_shares(lengths: list[int], count: int, things: str) -> str:
    """Tell which other way of dealing out `count` things gives these numbers of them."""
    ranks = len(lengths)
    each = -(-count // ranks)
    right = [len(range(count)[r * each : (r + 1) * each]) for r in range(ranks)]
    if lengths == right:
        return ""
    for rank, (length, own) in enumerate(zip(lengths, right, strict=True)):
        if length > own == 0:
            return (
                f"No {things} are left for rank {rank}. Is the end of a slice negative there? Such an "
                "end counts from the back: take max(0, ...)."
            )
    if lengths == [count // ranks] * ranks:
        lost = count % ranks
        return (
            f"{lost} of {count} {things} {'is' if lost == 1 else 'are'} lost: round up, not down."
        )
    shares = [len(part) for part in torch.empty(count).tensor_split(ranks)]
    if lengths == shares:
        return (
            f"These are fair shares ({', '.join(map(str, shares))}). Here every rank gets {each} "
            f"while there are some: {', '.join(map(str, right))} {things}."
        )
    return ""


def _scrambled(case: Case, run: Run) -> bool:
    x = case.inputs[case.inputs[0][1]][0]
    there = set(x.flatten().tolist())
    return all(set(v.flatten().tolist()) <= there for v in run.values if _is_tensor(v))


def _each(case: Case) -> int:
    return -(-len(case.inputs[0][0]) // case.world_size)


def _error(run: Run) -> str:
    return run.failure.error.message if isinstance(run.failure, RankFailed) else ""


def _sizes_differ(run: Run) -> bool:
    said = _error(run)
    words = ("invalid tensor size", "Incorrect input list size", "Check failed", "input list")
    return isinstance(run.failure, RankDied) or any(word in said for word in words)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _same(one: Any, other: torch.Tensor) -> bool:
    return isinstance(one, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-5 * max(1.0, abs(other))


def _numbers(value: Any) -> list[float]:
    """Give what was returned as numbers, or nothing."""
    as_number: Callable[[Any], Any] = lambda v: v.item() if hasattr(v, "item") else v  # noqa: E731
    if isinstance(value, torch.Tensor):
        value = value.flatten().tolist()
    if not isinstance(value, (list, tuple)):
        return []
    if any(_is_tensor(v) and v.numel() != 1 for v in value):
        return []
    numbers = [as_number(v) for v in value]
    return numbers if all(isinstance(n, (int, float)) for n in numbers) else []
