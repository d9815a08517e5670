"""The first thing to look at in an answer of notebook 05, from its case and its run.

Called by `judge` through `Exercise.look`, with a run that failed or gave a wrong value; each gives
"" where the general advice is as good.
"""

from __future__ import annotations

import torch

from helpers.exercises.keep_input import look_at_input
from helpers.exercises.model import Case
from helpers.ranks.failures import Deadlock, RankFailed, RankTimeout
from helpers.ranks.run import Run

_TO_ITSELF = "should not be the same as the rank of the current process"
"""What torch says of a message to oneself."""


def doublings(case: Case) -> int:
    """Give how often a world can be halved: the exponent of the largest power of two in it."""
    return case.world_size.bit_length() - 1


def extra(case: Case) -> int:
    """How many ranks there are beyond the largest power of two."""
    return int(case.world_size - 2 ** doublings(case))


def look_at_tree(case: Case, run: Run) -> str:
    x, src = case.inputs[case.inputs[0][1]]
    if of_calls := _look_at_calls(run):
        return of_calls
    failed = isinstance(run.failure, Deadlock | RankFailed)
    overwritten = (
        run.failure is None and run.values[src] is not None and not _same(run.values[src], x)
    )
    if src != 0 and (failed or overwritten):
        return (
            f"Here the root is rank {src}. Number the ranks from the root, "
            f"`me = (rank - src) % world_size`, plan the tree with `me`, and turn a number back "
            f"into a rank by `(number + src) % world_size`."
        )
    if extra(case) and failed:
        return (
            f"{case.world_size} is no power of two: in the last round some ranks have nobody left to "
            f"send to. Test that the number of the receiver is below {case.world_size}."
        )
    return ""


def look_at_doubling(case: Case, run: Run) -> str:
    if found := _look_at_calls(run) or _look_at_sends(run) or look_at_input(case, run):
        return found
    if not extra(case) and _some_right(case, run):
        return (
            "Some ranks are right and some are not, with the same code: is a tensor changed while an "
            "`isend` of it is still on its way? `wait()` first, then add."
        )
    nobody = run.failure is None and all(value is None for value in run.values)
    if extra(case) and not nobody and isinstance(run.failure, Deadlock | RankFailed | None):
        most = 2 ** doublings(case)
        return (
            f"{case.world_size} is not a power of two. Ranks {most} and above first send their `x` "
            f"to rank - {most}, sit out the doubling, and are sent the sum at the end."
        )
    return ""


def look_at_ring(case: Case, run: Run) -> str:
    if of_calls := _look_at_calls(run) or _look_at_sends(run):
        return of_calls
    length, p = case.inputs[0][0].numel(), case.world_size
    split = (
        f"{p} does not divide {length}. `x.tensor_split({p})` always makes {p} chunks, which differ "
        "by one element at most and cover all; some may be empty."
    )
    if run.failure is not None:
        return split if isinstance(run.failure, RankFailed) and length % p else ""
    if changed := look_at_input(case, run):
        return changed
    found = [value for value in run.values if isinstance(value, torch.Tensor)]
    if len(found) < p or case.expected is None:
        return ""
    if any(value.shape != wanted.shape for value, wanted in zip(found, case.expected, strict=True)):
        return split
    right = [value == wanted for value, wanted in zip(found, case.expected, strict=True)]
    whole = length // p * p
    if length % p and all(those[:whole].all() for those in right):
        return split
    parts = [those.tensor_split(p) for those in right]
    if length >= p and all(mine[rank].all() for rank, mine in enumerate(parts)):
        return (
            "The finished chunk of rank 0 is number 0, and after a first trip it is number 1: did the "
            "first trip write into the tensor that you return? `chunks[i] = a + b` puts another "
            "tensor into the list; `chunks[i] += b` writes into the chunk itself."
        )
    if length >= p and all(mine[(rank + 1) % p].all() for rank, mine in enumerate(parts)):
        return (
            "Each rank has a finished chunk, so the first trip is right. On the second trip the "
            "finished chunks go around, and what comes in replaces the chunk that is there."
        )
    return (
        f"After the first trip alone, rank r must hold the whole sum in its chunk (r + 1) % {p}. "
        "Return the tensor there and look."
    )


def look_at_star(case: Case, run: Run) -> str:
    server = case.inputs[0][1]
    if of_calls := _look_at_calls(run):
        return of_calls
    if run.failure is not None:
        return f"The server is rank {server} in this case." if server else ""
    if changed := look_at_input(case, run):
        return changed
    if case.expected is None:
        return ""
    without = case.expected[server] - case.inputs[server][0]
    if all(_same(value, without) for value in run.values):
        return f"The gradient of the server itself, rank {server}, is missing in the sum."
    if _same(run.values[server], case.expected[server]) and all(
        isinstance(value, torch.Tensor) for value in run.values
    ):
        return "The server has the whole sum, some worker has not: first all push, then all pull."
    return ""


def _look_at_self(run: Run) -> str:
    """gloo's own words for a message to oneself speak of a pair that is not connected."""
    if isinstance(run.failure, RankFailed) and _TO_ITSELF in run.failure.error.message:
        return (
            f"Rank {run.failure.rank} sends to itself or receives from itself. What it has already "
            "needs no message: leave the rank itself out of the loop."
        )
    for event in run.trace.calls:
        if event.peer == event.rank:
            to_or_from = "sends to" if event.op == "send" else "receives from"
            return (
                f"Rank {event.rank} {to_or_from} itself: nobody is at the other end of that call."
            )
    return ""


def _look_at_sends(run: Run) -> str:
    """Tell ranks that all send first what makes an exchange of one round out of it."""
    if isinstance(run.failure, Deadlock) and run.failure.diagnosis.kind == "cycle":
        waiting = [wait.call for wait in run.failure.waits]
        if "send" in waiting and "recv" not in waiting:
            return (
                "Both directions can go in one round: begin your message with `isend`, receive, then "
                "`wait()` for what you sent."
            )
    return ""


def _some_right(case: Case, run: Run) -> bool:
    if run.failure is not None or case.expected is None:
        return False
    sends = any(event.op == "send" and event.asynchronous for event in run.trace.calls)
    pairs = zip(run.values, case.expected, strict=True)
    return sends and 0 < sum(_same(value, wanted) for value, wanted in pairs) < case.world_size


def _look_at_waits(run: Run) -> str:
    """Tell of a Work that was thrown away: gloo then drops its message, and the receiver hangs."""
    for event in run.trace.calls:
        stuck = isinstance(run.failure, (RankTimeout, Deadlock))
        if stuck and event.asynchronous and event.wait_ns is None:
            where = f" ({event.where})" if event.where else ""
            return (
                f"Rank {event.rank} has not waited for its {event.call}{where}. Does your code keep "
                f"what {event.call} returns, and call `wait()` on it? If it is thrown away, gloo may "
                "drop the message."
            )
    return ""


def _look_at_calls(run: Run) -> str:
    return _look_at_self(run) or _look_at_waits(run)


def _same(one: object, other: object) -> bool:
    both = isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)
    return both and torch.equal(one, other)  # type: ignore[arg-type]
