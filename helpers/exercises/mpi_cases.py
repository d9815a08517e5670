"""Cases of `mpi_all_reduce`: tensors and ops for real MPI ranks, and what to say of what came back."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.draws import tensors
from helpers.exercises.model import Case
from helpers.ranks.failures import RankFailed, RankTimeout
from helpers.ranks.run import Run
from helpers.views.plain import plural
from helpers.views.values import short_value

_ONE = (["Allreduce"], ["Iallreduce"])
_N = 3
_WHOLE, _PARTS = (0, 0, 0), (0, 1, 0)
_ROWS: tuple[tuple[tuple[int, ...], torch.dtype, str, int, tuple[int, ...]], ...] = (
    ((5,), torch.float32, "sum", 1, _WHOLE),
    ((2, 3), torch.float64, "max", 1, _WHOLE),
    ((4,), torch.int64, "sum", 1, _WHOLE),
    ((3,), torch.float64, "mean", 1, _WHOLE),
    ((4,), torch.float32, "mean", 2, _WHOLE),
    ((3, 2), torch.float32, "sum", 2, _WHOLE),
    ((3,), torch.float64, "mean", 1, _PARTS),
    ((2,), torch.int64, "max", 2, _PARTS),
)


def mpi_cases(rng: random.Random) -> Iterator[Case]:
    """Draw tensors of several shapes and dtypes, some of them every second element of a longer one.

    One case, since each takes seconds to start: for some tensors `world` is a part of the ranks.
    """
    given = [tensors(rng, _N, *row[0], dtype=row[1]) for row in _ROWS]
    given = [rng.sample(row, _N) for row in given]  # the largest is not always the last rank's
    ops, strides, colours = ([row[i] for row in _ROWS] for i in (2, 3, 4))
    yield Case(
        f"{_N} MPI ranks, {len(_ROWS)} tensors, some of them on a part of the ranks",
        _N,
        [(_N, given, ops, strides, colours)] * _N,
        judge=partial(_problem, given),
        given="a communicator, x, op: once for each tensor",
        timeout_s=30.0,
    )


def _reduced(row: Sequence[torch.Tensor], op: str) -> torch.Tensor:
    stacked = torch.stack(list(row))
    if op == "max":
        return stacked.amax(0)
    return stacked.sum(0) if op == "sum" else stacked.mean(0)


def _problem(given: Sequence[Sequence[torch.Tensor]], run: Run) -> str:
    for rank, found in enumerate(run.values):
        if not isinstance(found, list) or len(found) != len(_ROWS):
            return f"rank {rank} sent no result."
        for row, drawn, said in zip(_ROWS, given, found, strict=True):
            members = [r for r in range(_N) if row[4][r] == row[4][rank]]
            kind = "every second element of a longer tensor, " if row[3] > 1 else ""
            where = f" over {plural(len(members), 'rank')}" if len(members) < _N else ""
            name = f"{row[2]}{where} of {kind}{str(row[1]).removeprefix('torch.')}"
            mine = [drawn[r] for r in members]
            said = said if isinstance(said, dict) else {}
            if words := _one(said, drawn[rank], mine, row[2], row[3], _reduced(drawn, row[2])):
                return f"rank {rank}, {name}: {words}"
    return ""


def _one(
    said: dict[str, Any],
    mine: torch.Tensor,
    all_of_them: Sequence[torch.Tensor],
    op: str,
    stride: int,
    over_all: torch.Tensor,
) -> str:
    """Say what is wrong with one tensor. over_all: the reduction over every rank that there is."""
    wanted = _reduced(all_of_them, op)
    x, calls = said.get("x"), said.get("calls")
    made = [str(call) for call in calls] if isinstance(calls, list) else []
    if difference(wanted, x):
        shown = f"x is {short_value(x, 80)} and should be {short_value(wanted, 80)}."
        if not difference(over_all, x):
            return (
                f"{shown} That is over all ranks: use the communicator `world` that you are given."
            )
        return (
            f"{shown} {_why(x, mine, all_of_them, op, stride, bool(said.get('returned')))}".rstrip()
        )
    if pickled := [call for call in made if call[0].islower()]:
        return (
            f"right, but `{pickled[0]}` in small letters pickles the tensor. `Allreduce` with a "
            "capital letter sends its memory as it is."
        )
    if not made:
        return "right, but not by `world`: call its methods, not those of MPI.COMM_WORLD."
    if made not in _ONE:
        return f"right, but by {', '.join(made)}; one `Allreduce` does it."
    if said.get("returned"):
        return "right, but your function returns something: it works in place and returns None."
    return ""


def _why(
    x: Any,
    mine: torch.Tensor,
    all_of_them: Sequence[torch.Tensor],
    op: str,
    stride: int,
    returned: bool,
) -> str:
    wanted, n = _reduced(all_of_them, op), len(all_of_them)
    if not difference(mine, x):
        if returned:
            return "x is unchanged, and something is returned: the result belongs into x itself."
        if stride > 1:
            return (
                "x is unchanged: `x.contiguous()` is a copy here, so its result has to be copied "
                "back with `x.copy_(...)`."
            )
        return "x is unchanged: the result has to be written into x itself, by `copy_` or IN_PLACE."
    if op == "mean" and not difference(wanted * n, x):
        return f"That is the sum: MPI has no op for the mean, so divide by the {plural(n, 'rank')}."
    if op == "mean" and n < _N and not difference(wanted * n / _N, x):
        return f"Divided by {_N}, but `world` has {n} ranks here: `world.Get_size()` says so."
    if op == "mean" and not difference(wanted / n, x):
        return "Divided by the number of ranks twice."
    if op == "max" and not difference(_reduced(all_of_them, "sum"), x):
        return "That is the sum: give `op=MPI.MAX`."
    if op == "sum" and not difference(wanted / n, x):
        return "That is the mean; divide only where the op is 'mean'."
    return ""


def look_at_mpi(case: Case, run: Run) -> str:
    """Say what an exception on an MPI rank mostly comes from, or in which calls the ranks hang."""
    if isinstance(run.failure, RankTimeout):
        return _hang(run.values)
    if not isinstance(run.failure, RankFailed):
        return ""
    error = run.failure.error
    if error.kind == "BufferError" or "contiguous" in error.message:
        return (
            "The elements of this x do not lie side by side, and MPI sends one piece of memory: "
            "reduce `x.contiguous()`, then copy the result back into x."
        )
    if "aliased" in error.message:
        return (
            "`Allreduce` may not get one memory as both its arguments: `MPI.IN_PLACE` as the first "
            "says that the result replaces what is in the second."
        )
    if error.kind == "TypeError" and "MPI.Op" in error.message:
        return "'sum' and 'max' are words of this exercise; MPI's ops are MPI.SUM and MPI.MAX."
    if error.kind in {"KeyError", "AttributeError"} and "AVG" in error.message.upper():
        return "MPI has no op for the mean: take the sum and divide."
    if error.kind == "ValueError" and "process group" in error.message:
        return "No process group was joined here: the ranks are MPI's. Use the methods of `world`."
    return ""


def _hang(values: Sequence[Any]) -> str:
    """Say who waits in which call of `world`; "" where nobody does."""
    said = [value.get("waits_in") if isinstance(value, Mapping) else "" for value in values]
    calls = {rank: str(name) for rank, name in enumerate(said) if name}
    if not calls:
        return ""
    if len(set(calls.values())) > 1:
        who = ", ".join(f"rank {rank} in {name}" for rank, name in calls.items())
        return (
            f"Ranks wait in several calls ({who}): all must make the same ones in the same order."
        )
    name = next(iter(calls.values()))
    ranks = ", ".join(map(str, calls))
    who = f"Rank {ranks} waits" if len(calls) == 1 else f"Ranks {ranks} wait"
    if name.lower() in {"send", "recv"}:
        return f"{who} in {name}: which rank has to answer, and does it reach its line?"
    if len(calls) == len(values):
        return f"All ranks wait in {name}: do they all give it the same root and the same op?"
    return f"{who} in {name} for ranks that never call it: does every rank reach the line?"
