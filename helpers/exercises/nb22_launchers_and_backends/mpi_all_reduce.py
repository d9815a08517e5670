"""22.1 All-reduce in MPI's words (10 min, ●●○○○, further)

- `x.numpy()` shares the tensor's memory under a different name. What does `Allreduce` do when its first
  argument is `MPI.IN_PLACE`?
- Reduce `x.contiguous()` in place. If x is contiguous, `x.contiguous()` is x; otherwise it is a copy, so you
  need `x.copy_(...)` to copy the result back. A mean is a sum divided by the number of ranks.
- whole = x.contiguous(); world.Allreduce(MPI.IN_PLACE, whole.numpy(), op=MPI.MAX if op == 'max' else
  MPI.SUM); if op == 'mean': whole /= world.Get_size(); x.copy_(whole)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb22_launchers_and_backends.in_ranks.mpi import run_on_mpi_ranks
from helpers.views.values import short_value

RANKS, ROWS = 3, 12
WORLD_COLORS = ((0, 0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1))
"""The color of each rank. Ranks of the same color reduce among themselves."""


@dataclass(frozen=True)
class ReduceInputs:
    """One tensor on each rank, and the settings for reducing it."""

    given: list[torch.Tensor]
    op: str
    stride: int
    color: tuple[int, ...]

    def expected(self, ranks: Sequence[int], op: str = "") -> torch.Tensor:
        stacked = torch.stack([self.given[r] for r in ranks])
        if (op or self.op) == "max":
            return stacked.amax(0)
        return stacked.sum(0) if (op or self.op) == "sum" else stacked.mean(0)

    def members(self, rank: int) -> list[int]:
        return [r for r in range(RANKS) if self.color[r] == self.color[rank]]

    def name(self, rank: int) -> str:
        many = len(self.members(rank))
        kind = "every second element of a longer tensor, " if self.stride > 1 else ""
        where = f" over {plural(many, 'rank')}" if many < RANKS else ""
        return f"{self.op}{where} of {kind}{str(self.given[0].dtype).removeprefix('torch.')}"


def case(draw: Draw) -> Case:
    """Draw a dozen tensors for one start of MPI ranks, because each start takes a second."""
    rows = []
    for _ in range(ROWS):
        dtype = draw.dtype(torch.float32, torch.float64, torch.int64)
        ops = ("sum", "max", "mean") if dtype.is_floating_point else ("sum", "max")
        given = draw.tensors(draw.shape((1, 2, 3), least=1), dtype)
        rows.append(ReduceInputs(given, draw.of(*ops), draw.of(1, 2), draw.of(*WORLD_COLORS)))
    asked = (
        [r.given for r in rows],
        [r.op for r in rows],
        [r.stride for r in rows],
        [r.color for r in rows],
    )

    def problem(got: list[Any], rank: int) -> Finding | None:
        found = (judge_tensor(row, rank, told) for row, told in zip(rows, got, strict=True))
        return next(filter(None, found), None)

    return Case(
        f"{RANKS} MPI ranks, {ROWS} tensors, some of them on a part of the ranks",
        [(RANKS, *asked)] * RANKS,
        right=problem,
        like=[{}] * ROWS,
        shown="a communicator, x, op: once for each tensor",
        seconds=30.0,
    )


def judge_tensor(row: ReduceInputs, rank: int, got: Mapping[str, Any]) -> Finding | None:
    """Return the problem with one tensor of one rank."""
    members, x = row.members(rank), got["x"]
    wanted, calls = row.expected(members), [str(call) for call in got["calls"]]
    scale = largest(*row.given)
    problem = difference(wanted, x, scale=scale)
    if problem:
        shown = f"x is {short_value(x, 80)} and should be {short_value(wanted, 80)} ({problem})"
        return Finding(
            f"{row.name(rank)}: {shown}", tuple(explain_wrong_tensor(row, rank, x, got["returned"]))
        )
    if not got["kept"]:
        what = "but the elements between those of `x` have changed, although they aren't part of x"
        advice = "Reduce `x.contiguous()`, then copy the result back into x."
    elif pickled := [call for call in calls if call[0].islower()]:
        what, advice = f"but `{pickled[0]}` in lowercase pickles the tensor", MEMORY_ADVICE
    elif not calls:
        what, advice = (
            "but not computed by `world`: call its methods instead of MPI.COMM_WORLD's",
            "",
        )
    elif calls not in (["Allreduce"], ["Iallreduce"]):
        what, advice = f"but computed by {', '.join(calls)}; one `Allreduce` is enough", ""
    elif got["returned"]:
        what, advice = (
            "but your function returns something; it should work in place and return None",
            "",
        )
    else:
        return None
    return Finding(f"{row.name(rank)}: right, {what}", advice)


MEMORY_ADVICE = "`Allreduce` with a capital letter sends the tensor's memory without pickling it."


def explain_wrong_tensor(row: ReduceInputs, rank: int, x: Any, returned: bool) -> Iterator[str]:
    """Yield each sentence that explains a wrong tensor."""
    members, own, total = row.members(rank), row.given[rank], row.expected(row.members(rank), "sum")
    n, scale = len(members), largest(*row.given)
    if same(own, x, 0):
        if returned:
            yield "x is unchanged, and your function returns something. Write the result into x instead."
        elif row.stride > 1:
            yield "x is unchanged: `x.contiguous()` is a copy. Copy its result back with `x.copy_(...)`."
        yield "x is unchanged: write the result into x, using `copy_` or `MPI.IN_PLACE`."
    usual = (
        (True, row.expected(range(RANKS)), "the reduction over all ranks: use the given `world`."),
        (row.op == "mean", total, "the sum: MPI has no op for the mean, so divide by the number of ranks."),
        (
            row.op == "mean",
            total / RANKS,
            f"divided by {RANKS}, the number of all ranks, but `world` may have fewer.",
        ),
        (row.op == "mean", total / n / n, "divided by the number of ranks twice."),
        (row.op == "max", total, "the sum: pass `op=MPI.MAX`."),
        (row.op == "sum" and n > 1, total / n, "the mean: divide only where `op` is 'mean'."),
    )  # fmt: skip
    for asked, value, words in usual:
        if asked and same(value, x, scale=scale):
            yield f"This is {words}"


def waiting_calls(run: Run) -> dict[int, str]:
    """Return the call of `world` in which each blocked rank waits."""
    said = [value.get("waits_in") if isinstance(value, Mapping) else "" for value in run.values]
    return {rank: str(name) for rank, name in enumerate(said) if name}


def waits_in_rank_subset(case: Case, run: Run) -> bool:
    """Return whether ranks wait in a call that the other ranks never make."""
    calls = waiting_calls(run)
    return 0 < len(calls) < RANKS and len(set(calls.values())) == 1


EXERCISE = Exercise(
    case,
    failed=(
        CrashAdvice(
            ".",
            "Some ranks wait in a call of `world` for ranks that never make this call. Do all ranks reach "
            "the line?",
            when=waits_in_rank_subset,
        ),
        CrashAdvice(
            ".",
            "Ranks are waiting in calls of `world`. All ranks must make the same calls in the same order, "
            "with the same root and op.",
            when=lambda case, run: bool(waiting_calls(run)),
        ),
        CrashAdvice(
            "BufferError|contiguous",
            "The elements of this x aren't contiguous, but MPI sends one piece of memory. Reduce "
            "`x.contiguous()`, then copy the result back into x.",
        ),
        CrashAdvice(
            "aliased",
            "The two arguments of `Allreduce` must not share memory. Pass `MPI.IN_PLACE` as the first, so "
            "that the result replaces the second.",
        ),
        CrashAdvice(
            "TypeError.*MPI.Op",
            "'sum' and 'max' are this exercise's names, but MPI's ops are MPI.SUM and MPI.MAX.",
        ),
        CrashAdvice(
            "(KeyError|AttributeError).*(?i:avg|mean)",
            "MPI has no op for the mean: compute the sum, and divide by the number of ranks.",
        ),
        CrashAdvice(
            "ValueError.*process group",
            "There is no process group here, because the ranks are MPI's. Use the methods of `world`.",
        ),
    ),
    kind=Kind.SCRIPT,
    driver=run_on_mpi_ranks,
    sizes=(RANKS,),
    count=2,
)
