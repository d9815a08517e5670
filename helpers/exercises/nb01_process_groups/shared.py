"""Explain why the ranks of a job did not find each other, for exercises of notebook 01."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import INIT_SPAN_PREFIX
from helpers.ranks.failures import Deadlock, RankTimeout

TCP_STORE_ENV = {"RES_OPTIONS": "timeout:1 attempts:1"}
"""Variables for ranks that open a TCPStore. Without them, glibc's resolver waits 5 s for a lost reply."""
_ATTEMPT_PATTERN = re.compile(
    rf"{INIT_SPAN_PREFIX}rank (?P<rank>\S*) of (?P<size>\S*) by (?P<place>.*)"
)
Call = re.Match[str]


def starts_of(trace: Trace, rank: int) -> list[Call]:
    """Return (passed rank, address) for each time that a rank starts a group."""
    return [match for e in trace.spans.of(rank) if (match := _ATTEMPT_PATTERN.fullmatch(e.call))]


def start_rounds(case: Case, run: Run) -> list[list[Call | None]]:
    """Return each job's first starts by rank, then its second starts, and so on; a missing start is None."""
    found: list[list[Call | None]] = []
    for job in case.facts["jobs"]:
        calls = [starts_of(run.trace, rank) for rank in job]
        found += [list(each) for each in zip_longest(*calls)]
    return found


def _any_round(test: Callable[[Sequence[Call]], bool]) -> Callable[[Case, Run], bool]:
    return lambda case, run: any(
        test([call for call in calls if call is not None]) for calls in start_rounds(case, run)
    )


def _has_rank_beyond_size(calls: Sequence[Call]) -> bool:
    return any(call["rank"].isdigit() and int(call["rank"]) >= int(call["size"]) for call in calls)


def _differs_between_ranks(key: str) -> Callable[[Sequence[Call]], bool]:
    return lambda calls: len({call[key] for call in calls}) > 1


def _has_equal_ranks(calls: Sequence[Call]) -> bool:
    ranks = [call["rank"] for call in calls if call["rank"].isdigit()]
    return len(set(ranks)) < len(ranks)


def _is_blocked(case: Case, run: Run) -> bool:
    return isinstance(run.failure, (Deadlock, RankTimeout))


def _waits_at_different_addresses(case: Case, run: Run) -> bool:
    return _is_blocked(case, run) and _any_round(_differs_between_ranks("place"))(case, run)


def _lacks_a_start(case: Case, run: Run) -> bool:
    return _is_blocked(case, run) and any(None in calls for calls in start_rounds(case, run))


def find_mismatched_start(trace: Trace, case: Case) -> str:
    """Return the rank whose last start does not fit its job. No other rule checks a start's arguments."""
    for job in case.facts["jobs"]:
        ports = set[str]()
        for own, rank in enumerate(job):
            calls = starts_of(trace, rank)
            if not calls:
                return f"rank {rank} has a process group, but no call of `init_process_group` was recorded."
            last = calls[-1]
            if (last["rank"], last["size"]) != (str(own), str(len(job))):
                was = f"rank {last['rank']} of {last['size']}"
                return f"rank {rank} joined the job as {was}; expected: rank {own} of {len(job)}."
            ports |= {last["place"].rpartition(":")[2]} - {"a store"}
        if len(ports) > 1:
            return f"the ranks of one job use different addresses: {', '.join(sorted(ports))}."
    return ""


START_TOGETHER = Predicate(
    find_mismatched_start, "all ranks of a job use one address, each with its rank"
)
START_ADVICE = (
    CrashAdvice(
        ".",
        "A process starts with a rank that is not below the world size. Ranks are counted from 0, so the "
        "last one is `world_size - 1`.",
        when=_any_round(_has_rank_beyond_size),
    ),
    CrashAdvice(
        ".",
        "Several processes start with the same rank. Each process needs a different number in the whole "
        "job, so use its rank instead of its local rank.",
        when=_any_round(_has_equal_ranks),
    ),
    CrashAdvice(
        ".",
        "The ranks wait at different addresses, so they never find each other. All ranks of a job must "
        "use the same address.",
        when=_waits_at_different_addresses,
    ),
    CrashAdvice(
        ".",
        "Not all ranks reach `init_process_group`. A missing rank has returned without calling it or "
        "still waits at an earlier line.",
        when=_lacks_a_start,
    ),
    CrashAdvice(
        ".",
        "The ranks start with different world sizes. All ranks of a job need the same world size.",
        when=_any_round(_differs_between_ranks("size")),
    ),
    CrashAdvice(
        r"b'\d+'",
        "The port is a bytes value, such as b'29500', because a store's `get` returns bytes. Convert it "
        "by calling `int(store.get(...))`.",
    ),
    CrashAdvice(
        r"FileNotFoundError[\s\S]*/start \d",
        "A rank opens a file that hasn't been written yet. Wait for the file, or use a store, whose `get` "
        "waits until the key is set.",
    ),
    CrashAdvice(
        r"invalid literal for int\(\) with base 10: ''",
        "A rank reads an empty file, because a file exists before its content is written. Write it under "
        "another name and then rename it, or use a store, whose `get` waits until the key is set.",
    ),
    CrashAdvice(
        "port number missing",
        "The address has no port. If you read the port from a file, that file might still be empty. Write "
        "it under another name, then rename it.",
    ),
    CrashAdvice(
        "EADDRINUSE|address already in use",
        "The port is in use already, perhaps by the other job. A fixed or computed port might be taken, "
        "so let rank 0 ask the system for a free one.",
    ),
)


def group_advice(name: str, got: Parts) -> str:
    """Return the advice for an unexpected group."""
    said = str(got.get(name))
    if said.startswith("no process group"):
        return (
            "There is no process group when your function returns. Call `dist.init_process_group`, and "
            "don't destroy the group."
        )
    if "the previous job's file" in said:
        return (
            "Two jobs used the same file. This worked only because the first job cleaned up. A killed job "
            "leaves its file behind, with the addresses of processes that no longer exist."
        )
    if "met in a FileStore" in said:
        return (
            "The ranks connected through the file. Use it only to pass the port to the other ranks, and "
            "then connect through tcp://."
        )
    if "never checked" in said:
        return (
            "Rank 0 never checked that the port is free. Let the system choose a port by using "
            "`free_port()` or port 0."
        )
    return ""
