"""Exercises of notebook 00: what a rank is, what is its share, and how it can fail."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from helpers.checks.rules import OnlyCalls
from helpers.exercises.failing_programs import (
    TIMEOUT,
    Failure,
    misleading_failures,
    plain_failures,
)
from helpers.exercises.model import Case, Exercise, Kind
from helpers.exercises.slices import covers, judge_slices, pair_of, within
from helpers.ranks.run import Run
from helpers.views.plain import plural

NOTEBOOK = "00_start_here"


def _greeting(rank: int, world_size: int) -> str:
    return f"Hello from rank {rank} of {world_size}"


def _hello_rank(rng: random.Random) -> Iterator[Case]:
    for world_size in (2, rng.choice((3, 4)), rng.choice((5, 6))):
        expected = [_greeting(rank, world_size) for rank in range(world_size)]
        yield Case(f"{world_size} ranks", world_size, expected=expected)


def _look_at_greeting(case: Case, run: Run) -> str:
    n = case.world_size
    got = {rank: value for rank, value in enumerate(run.values) if value is not None}
    if run.failure is not None or len(got) < n:
        return ""
    if not all(isinstance(value, str) for value in got.values()):
        return "Return one string, not its parts: an f-string puts them together."
    if any("{" in value for value in got.values()):
        return 'Braces are filled in only where an f stands before the quotes: f"... {rank} ...".'
    if len(set(got.values())) == 1:
        return "Every rank says the same. Which of the two parameters tells them apart?"
    if all(_words(value) == _words(_greeting(rank, n)) for rank, value in got.items()):
        return "The words are right. Compare capital letters, spaces and full stops."
    if all(value == _greeting(rank + 1, n) for rank, value in got.items()):
        return "Ranks count from 0: use `rank` as it is."
    if all(value == _greeting(rank, n - 1) for rank, value in got.items()):
        return "`world_size` is how many ranks there are, not the number of the last one."
    for size in range(1, 9):
        if all(value == _greeting(rank, size) for rank, value in got.items()):
            return f"There are {n} ranks here, not {size}: let `world_size` say how many."
    return ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+", text.lower())


def _my_slice(rng: random.Random) -> Iterator[Case]:
    share = rng.randrange(2, 6)
    sizes = (
        (4, 4 * share + 2),  # two left over: too many for one rank, too few for all
        (2, 2 * share),
        (5, 5 * rng.randrange(2, 6) + 3),
        (5, rng.randrange(2, 5)),
        (3, 0),
    )
    for world_size, n in sizes:
        yield Case(
            f"{world_size} ranks, n = {n}",
            world_size,
            [(n,) for _ in range(world_size)],
            [within(n)] * world_size,
            judge=partial(judge_slices, n),
        )


def _look_at_slices(case: Case, run: Run) -> str:
    n = int(case.inputs[0][0])
    if run.failure is not None or any(value is None for value in run.values):
        return ""
    pairs = [pair_of(value) if isinstance(value, (tuple, list)) else None for value in run.values]
    slices = [pair for pair in pairs if pair is not None]
    if len(slices) < len(pairs):
        return "Return two whole numbers: `return start, stop`."
    if covers([(start, stop + 1) for start, stop in slices], n):
        return (
            "`stop` itself is not included, as in `x[start:stop]`: it is one past the last element."
        )
    if covers([(start, start + length) for start, length in slices], n):
        return "This is start and length. Wanted are start and stop."
    if covers(slices, n):
        left = n % case.world_size
        return (
            f"{n} // {case.world_size} leaves {left} over: spread them, one each to {left} ranks."
        )
    left = n % case.world_size
    if left and all(stop - start == n // case.world_size for start, stop in slices):
        return (
            f"{n} // {case.world_size} leaves {left} over: {left} of the ranks must take one more."
        )
    return "Where the slice of one rank stops, that of the next one starts."


def _diagnose_exit(rng: random.Random) -> Iterator[Case]:
    yield _failing("a signal, an exception, a timeout", plain_failures(rng))
    yield _failing("seven that mislead", misleading_failures(rng))


def _failing(label: str, failures: Sequence[Failure]) -> Case:
    programs = [failure.program for failure in failures]
    patience_s = [failure.patience_s for failure in failures]
    names = [failure.name for failure in failures]
    return Case(label, 1, [(programs, patience_s)], [names], init=False, timeout_s=6.0)


def _look_at_names(case: Case, run: Run) -> str:
    """Say where the first wrong name may come from, and what the function had been given."""
    if run.failure is not None or case.expected is None or not isinstance(run.values[0], list):
        return ""
    given = [line for line in run.output[0].splitlines() if line.startswith("returncode=")]
    for place, (wanted, got) in enumerate(zip(case.expected[0], run.values[0], strict=False)):
        if got != wanted:
            call = f" It was given {given[place]}." if place < len(given) else ""
            return _about_name(wanted, got) + call
    return ""


def _about_name(wanted: str, got: Any) -> str:
    if not isinstance(got, str):
        return "The function must return a string in every case."
    if wanted == TIMEOUT:
        return 'Its time was up, and only then was it killed: that is a "timeout".'
    if wanted.startswith("SIG"):
        if re.fullmatch(r"\D*\d+", got.strip()):
            return "A negative returncode is minus a signal's number: signal.Signals has the names."
        return "A negative returncode is a signal, whatever stands in stderr."
    if got.endswith("." + wanted):
        return "Give the exception's name without its module: what stands after the last dot."
    if got.startswith(wanted) or f"{wanted}:" in got:
        return "Give the exception's name alone: what stands before the colon."
    return "The last line of stderr begins with the exception that ended the process."


def _threads_per_rank(rng: random.Random) -> Iterator[Case]:
    ranks = rng.randrange(2, 9)
    each = rng.randrange(3, 9)
    for cores, count in (
        (ranks * each, ranks),
        (16 * each, 16),
        (rng.randrange(4, 65), 1),
        (4 * each + 3, 4),
        (each, 2 * each),
    ):
        label = f"{plural(cores, 'core')}, {plural(count, 'rank')}"
        yield Case(label, 1, [(cores, count)], [max(1, cores // count)])


def _look_at_threads(case: Case, run: Run) -> str:
    got = run.values[0]
    if run.failure is not None or isinstance(got, bool) or not isinstance(got, (int, float)):
        return ""
    cores, ranks = case.inputs[0]
    if got < 1:
        return "No rank can work with less than one thread."
    if isinstance(got, float):
        return "A number of threads is whole: `//` divides without a fraction."
    if got == max(1, ranks // cores):
        return "The cores are divided among the ranks, not the other way round."
    if got * ranks > cores >= ranks:
        return f"{ranks} ranks with {got} threads each are {got * ranks} threads for {cores} cores."
    return ""


EXERCISES = (
    Exercise(
        "hello_rank",
        "0.1",
        "Hello, rank",
        NOTEBOOK,
        Kind.RANKS,
        _hello_rank,
        (
            "The function is given both numbers. It has to put them into a text and return it.",
            'An f-string fills in what stands in braces: `f"{rank} is my number"`.',
            'return f"Hello from rank {rank} of {world_size}"',
        ),
        minutes=2,
        difficulty=1,
        points=5,
        look=_look_at_greeting,
    ),
    Exercise(
        "my_slice",
        "0.2",
        "My slice",
        NOTEBOOK,
        Kind.RANKS,
        _my_slice,
        (
            "Every rank gets `n // world_size` elements. How many are then left over, and "
            "who takes them?",
            "Let each of the first `n % world_size` ranks take one element more. A rank starts "
            "after all elements of the ranks before it.",
            "share, extra = divmod(n, world_size); start = rank * share + min(rank, extra); the "
            "length is share, plus 1 where rank < extra.",
        ),
        minutes=10,
        difficulty=2,
        rules=(OnlyCalls(()),),
        look=_look_at_slices,
    ),
    Exercise(
        "diagnose_exit",
        "0.3",
        "Diagnose an exit",
        NOTEBOOK,
        Kind.MODULE,
        _diagnose_exit,
        (
            "Which of the three arguments is sure to tell the truth, whatever the other two say? "
            "Test that one first.",
            "First `timed_out`, then a negative `returncode`, then `stderr`. "
            "`signal.Signals(11).name` gives a signal's name.",
            "For an exception: last = stderr.strip().splitlines()[-1]; the name is what stands "
            "before the first ':', and in it what stands after the last '.'.",
        ),
        minutes=10,
        difficulty=2,
        programme="helpers.exercises.failing_programs:run_and_ask",
        look=_look_at_names,
    ),
    Exercise(
        "threads_per_rank",
        "0.4",
        "Threads per rank",
        NOTEBOOK,
        Kind.LOCAL,
        _threads_per_rank,
        (
            "All ranks together should have about as many threads as there are cores.",
            "Divide without a fraction, downwards. What comes out when there are more ranks than "
            "cores?",
            "max(1, cores // ranks)",
        ),
        minutes=3,
        difficulty=1,
        points=5,
        look=_look_at_threads,
    ),
)
