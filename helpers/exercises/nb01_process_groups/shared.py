"""What exercises of notebook 01 share: why the ranks of a job did not find each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

from helpers.checks.author import *
from helpers.exercises.nb01_process_groups.in_ranks import INIT
from helpers.ranks.failures import Deadlock, RankTimeout
from helpers.ranks.run import Run

ENV = {"RES_OPTIONS": "timeout:1 attempts:1"}
"""For ranks that open a TCPStore: glibc's resolver waits 5 s by default for an answer that is lost."""
_ATTEMPT = re.compile(rf"{INIT}rank (?P<rank>\S*) of (?P<size>\S*) by (?P<place>.*)")
Call = re.Match[str]


def rounds(case: Case, run: Run) -> list[list[Call | None]]:
    """Give the starts of each job, the n-th ones of its ranks together, None where a rank made none."""
    found: list[list[Call | None]] = []
    for job in case.facts["jobs"]:
        calls = [
            [match for e in run.trace.spans.of(rank) if (match := _ATTEMPT.fullmatch(e.call))]
            for rank in job
        ]
        found += [list(each) for each in zip_longest(*calls)]
    return found


def _some(test: Callable[[Sequence[Call]], bool]) -> Callable[[Case, Run], bool]:
    return lambda case, run: any(
        test([call for call in calls if call is not None]) for calls in rounds(case, run)
    )


def _beyond(calls: Sequence[Call]) -> bool:
    return any(call["rank"].isdigit() and int(call["rank"]) >= int(call["size"]) for call in calls)


def _differ(part: str) -> Callable[[Sequence[Call]], bool]:
    return lambda calls: len({call[part] for call in calls}) > 1


def _twins(calls: Sequence[Call]) -> bool:
    ranks = [call["rank"] for call in calls if call["rank"].isdigit()]
    return len(set(ranks)) < len(ranks)


def _not_all(case: Case, run: Run) -> bool:
    stuck = isinstance(run.failure, (Deadlock, RankTimeout))
    return stuck and any(None in calls for calls in rounds(case, run))


STARTS = (
    Failed(".", "A rank is one of 0, 1, ...: ranks are counted from 0.", when=_some(_beyond)),
    Failed(
        ".",
        "Several processes start as one and the same rank. A rank is a process's number in the whole job "
        "(RANK), a local_rank its number on one machine (LOCAL_RANK).",
        when=_some(_twins),
    ),
    Failed(
        ".",
        "Each rank waits at a place of its own: they must agree on one.",
        when=_some(_differ("place")),
    ),
    Failed(".", "Every rank must call init_process_group: here not all do.", when=_not_all),
    Failed(".", "The ranks do not agree on the world size.", when=_some(_differ("size"))),
    Failed(
        "EADDRINUSE|address already in use",
        "Two jobs on one machine want the same port. A port that is written down is free only until "
        "somebody else writes down the same: ask the system for a free one.",
    ),
)


def about_group(name: str, got: Parts) -> str:
    """Say what to do about a group that is not what it should be."""
    said = str(got.get(name))
    if said.startswith("no process group"):
        return (
            "There is no group when the function has returned: call `dist.init_process_group`, and leave it "
            "open for whoever called you."
        )
    if "the file of the job before" in said:
        return (
            "Two jobs met in one file. That went well only because the first one cleaned up: a job that is "
            "killed leaves its file, with addresses of processes that are gone."
        )
    if "met in a FileStore" in said:
        return "Use the file to tell the others the port, and meet by tcp:// there."
    if "never asked" in said:
        return "A port that nobody has asked for may be taken: let the system choose a free one."
    return ""
