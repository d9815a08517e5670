"""What to look at first in an answer of notebook 06 that is not right yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.ranks.failures import Deadlock, RankFailed
from helpers.ranks.run import Run


def steps(case: Case, rank: int) -> int:
    """Give the all_reduces that `repair_missing_rank` needs: the longest list, and one to agree."""
    return max(len(given[0]) for given in case.inputs) + 1


def look_at_mismatch(case: Case, run: Run) -> str:
    """Say what `repair_mismatch` mostly gets wrong."""
    if isinstance(run.failure, Deadlock):
        return (
            "A rank alone knows its own loss. Let all ranks learn all losses first; then every rank "
            "finds the same winner, and calls `broadcast` with the same `src`."
        )
    if run.failure is not None or case.expected is None:
        return ""
    weight, mean = case.expected[0]
    for rank, value in enumerate(run.values):
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return "Return two things: the best rank's weights and the mean of all losses."
        got, loss = value
        worst = case.inputs[_extreme(case, max)][1]
        if case.world_size > 2 and all(_same(each[0], worst) for each in run.values if each):
            return "These are the weights of the rank with the largest loss; the smallest is best."
        if _same(got, case.inputs[rank][1]) and not _same(got, weight):
            negative = float(case.inputs[0][0]) < 0
            return f"Rank {rank} returns its own weights: who is best?" + (
                " Losses may be negative: a 0 in an empty place must not take part." * negative
            )
        if _is_tie(case) and not _same(got, weight):
            return "Two ranks share the smallest loss here: the lowest of them is the winner."
        if difference(mean * case.world_size, loss) == "":
            return "The second part is the sum of the losses; their mean is wanted."
        if _same(got, weight) and difference(mean, loss) != "":
            return "The weights are right; the second value is not the mean of all losses."
    return ""


def _extreme(case: Case, pick: Callable[..., Any]) -> int:
    losses = [float(given[0]) for given in case.inputs]
    return losses.index(pick(losses))


def _is_tie(case: Case) -> bool:
    losses = [float(given[0]) for given in case.inputs]
    return losses.count(min(losses)) > 1


def look_at_missing(case: Case, run: Run) -> str:
    """Say what `repair_missing_rank` mostly gets wrong."""
    absent = case.inputs[0][2]
    if isinstance(run.failure, Deadlock):
        calls = {wait.call for wait in run.failure.waits if wait.call}
        if "monitored_barrier" in calls and len(calls) > 1:
            return "`monitored_barrier` is a call for every rank, not for some of them alone."
        if absent:
            return (
                f"In this case ranks {' and '.join(map(str, absent))} never come. Before the first "
                "all_reduce, `monitored_barrier` with `timeout=patience` would name them."
            )
        return (
            "A rank with fewer batches has left the loop. All ranks must make the same number of "
            "steps: agree on the largest number first, and add 0 where you have no batch."
        )
    if isinstance(run.failure, RankFailed) and run.failure.error.kind == "IndexError":
        return "A rank that has no batch for this step adds 0 instead of `batches[step].sum()`."
    if run.failure is not None and "SIGABRT" in str(run.failure):
        return (
            "All ranks must hand in the same dtype: where there is no batch, add a zero of the dtype "
            "of the sums, such as torch.zeros(()), not an int."
        )
    if run.failure is None and absent:
        return (
            "Here ranks are missing. Hand `patience` on as the timeout, name them all by "
            "`wait_all_ranks=True`, and let the error pass: whoever catches it must raise it again."
        )
    if run.failure is None and not absent:
        lengths = {len(value) for value in run.values if isinstance(value, list)}
        if lengths and max(lengths) < steps(case, 0) - 1:
            return (
                "Some steps are missing: the rank with the most batches decides how many there are."
            )
    return ""


def look_at_shapes(case: Case, run: Run) -> str:
    """Say what `repair_shape_mismatch` mostly gets wrong."""
    longest = max(len(given[0]) for given in case.inputs)
    if isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "different_shapes":
        return (
            "Every rank must hand in the same number of elements. Gather the lengths first, then make "
            "all tensors as long as the longest."
        )
    if run.failure is not None and "SIGABRT" in str(run.failure):
        return (
            "gloo gave up because sizes differ: gather the lengths first, then pad to the longest."
        )
    if run.failure is None and case.expected is not None:
        for value in run.values:
            if isinstance(value, torch.Tensor) and value.shape == (longest * case.world_size,):
                total = len(case.expected[0])
                if total != len(value):
                    return "The padding is still in it: cut each part to its own length."
            if isinstance(value, torch.Tensor) and value.numel() < len(case.expected[0]):
                return (
                    "Elements are missing: cut by length, not by value; a 0 may belong to the data."
                )
    return ""


def look_at_barrier(case: Case, run: Run) -> str:
    """Say what `repair_rank0_only_barrier` mostly gets wrong."""
    if isinstance(run.failure, Deadlock):
        return "`barrier` is a collective: a line that only some ranks reach is the wrong place for it."
    if isinstance(run.failure, RankFailed) and run.failure.error.kind == "FileNotFoundError":
        return (
            f"Rank {run.failure.rank} read before rank 0 had prepared. `prepare` comes before the "
            "barrier, `read` after it, and every rank passes the barrier."
        )
    return ""


def look_at_dumps(case: Case, run: Run) -> str:
    """Say what `who_hangs` mostly gets wrong."""
    if run.failure is not None or case.expected is None:
        return ""
    value, wanted = run.values[0], case.expected[0]
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return "Return three things: the kind, the collective_seq_id, the list of ranks."
    kind, seq, ranks = value
    if "lost" in case.label and kind == "missing" and seq < wanted[1]:
        return (
            "A ring buffer forgets its oldest entries. A rank whose dump begins later did not miss "
            "them: begin at the first number that every dump still has."
        )
    if kind != wanted[0]:
        if wanted[0] == "none":
            return "Every rank has made the same calls here, to the last: nothing hangs."
        return (
            f"In this dump the first thing that is wrong is of the kind {wanted[0]!r}. {_at(case)}"
        )
    if seq != wanted[1]:
        return (
            "Which collective is the first that goes wrong? Entries after it only follow from it, and "
            f"collective_seq_id numbers them, not their place in the list. {_at(case)}"
        )
    if isinstance(ranks, (list, tuple)) and sorted(ranks) != wanted[2]:
        if set(ranks) == set(range(len(case.inputs[0][0]))) - set(wanted[2]):
            if kind == "missing":
                return "These are the ranks that wait. Name those for which they wait."
            return f"Most of the ranks are right; name those who differ from them. {_at(case)}"
        return f"Not all of these ranks are the right ones. {_at(case)}"
    return ""


def _at(case: Case) -> str:
    """Say what each rank's dump holds for the collective that goes wrong."""
    seq = case.expected[0][1] if case.expected else 0
    if not seq:
        return ""
    held = []
    for rank, dump in enumerate(case.inputs[0][0]):
        entry = next((e for e in dump["entries"] if e["collective_seq_id"] == seq), None)
        made = f"{entry['profiling_name']} {entry['input_sizes']}" if entry else "nothing"
        held.append(f"rank {rank} {made}")
    return f"Number {seq}: {', '.join(held)}."


def _same(one: object, other: object) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and torch.equal(one, other)  # type: ignore[arg-type]
