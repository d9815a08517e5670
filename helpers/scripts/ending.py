"""Describe the end of a script's run for people and programs: exit code, text, and the line to look at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.ranks.advice import advice_for
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout, describe_wait
from helpers.ranks.run import RankFailure, Run
from helpers.scripts.own_spawn import StartsProcesses
from helpers.scripts.step_findings import CERTAIN, Finding
from helpers.trace.events import Place, Wait

FAILED, DEADLOCKED, TIMED_OUT, NOT_STARTED, FOUND_FAULTS = 1, 2, 3, 4, 5
"""Exit codes of `course run`, in addition to 0 if all ranks succeeded."""

_KNOWN_MESSAGES = (
    (
        ("ValueError", "trying to initialize the default process group twice"),
        "init_process_group is called twice. Leave one call out, or make it only "
        "`if not dist.is_initialized()`.",
    ),
    (
        ("ValueError", "Default process group has not been initialized"),
        "Call dist.init_process_group() before this line, on every rank.",
    ),
    (
        ("DistNetworkError", "EADDRINUSE"),
        "This port is in use, perhaps by a run that has not ended. As under torchrun, a free port "
        "is already in MASTER_PORT. To use it, leave out init_method=, or only set the variable if it is "
        "missing: os.environ.setdefault('MASTER_PORT', '29500').",
    ),
    (
        ("BdbQuit", ""),
        "Ranks have no stdin, so a debugger cannot prompt. Print the values, or start the script with "
        "plain python on one rank.",
    ),
    (
        ("EOFError", "EOF when reading a line"),
        "Ranks have no stdin. Pass the value as an argument of the script.",
    ),
)
_WORDS: Mapping[str, str] = {
    **{advice_for(*error): advice for error, advice in _KNOWN_MESSAGES},
    ", pass timeout=SECONDS to launch().": ", raise the limit: --timeout SECONDS, or timeout=SECONDS in "
    "run_script().",
    "The function did not return: os._exit() and similar calls end a rank immediately.": "The script, or a "
    "library that it uses, ended its process with os._exit() or a similar call.",
}
"""The engine's texts that mention `launch`, and their replacements for a script."""


def explain_as_script(run: Run) -> Run:
    """Reword a run's failure for a reader who ran a script."""
    failure = run.failure
    if failure is not None:
        text = str(failure)
        if isinstance(failure, RankFailed) and failure.error.kind == StartsProcesses.__name__:
            text = failure.error.message
        for words, script_words in _WORDS.items():
            text = text.replace(words, script_words)
        failure.args = (text,)
    return run


def exit_code(run: Run, findings: Sequence[Finding] = ()) -> int:
    """Return the exit code of `course run` for a run."""
    if run.failure is None:
        return FOUND_FAULTS if findings else 0
    if isinstance(run.failure, Deadlock):
        return DEADLOCKED
    return TIMED_OUT if isinstance(run.failure, RankTimeout) else FAILED


def outcome_name(run: Run) -> str:
    """Return a name for the outcome of a run, for programs."""
    failure = run.failure
    names = {Deadlock: "deadlock", RankTimeout: "timeout", RankDied: "died", RankFailed: "failed"}
    return "passed" if failure is None else names.get(type(failure), "failed")


def place_to_look(run: Run) -> tuple[int, Place | None]:
    """Return the rank to look at first, and its line if known."""
    failure = run.failure
    if isinstance(failure, RankFailed):
        return failure.rank, failure.error.frames[-1] if failure.error.frames else None
    if isinstance(failure, RankDied):
        return failure.rank, _last_line(run, failure.rank)
    waits = _waits(failure)
    guilty = failure.diagnosis.guilty if isinstance(failure, Deadlock) else ()
    ordered = sorted(waits, key=lambda wait: (wait.rank not in guilty, wait.rank))
    for wait in ordered:
        if wait.event is not None and wait.event.where is not None:
            return wait.rank, wait.event.where
    return (ordered[0].rank if ordered else 0), None


def _last_line(run: Run, rank: int) -> Place | None:
    """Return the line of a rank's last call, if its process has ended without an exception."""
    places = [event.where for event in run.trace.events if event.rank == rank and event.where]
    return places[-1] if places else None


def _waits(failure: RankFailure | None) -> tuple[Wait, ...]:
    return failure.waits if isinstance(failure, Deadlock | RankTimeout) else ()


def ending_data(run: Run, findings: Sequence[Finding] = ()) -> dict[str, Any]:
    """Return the end of a run as plain data; see docs/json.md."""
    return {
        "outcome": outcome_name(run),
        "exit_code": exit_code(run, findings),
        "ranks": run.world_size,
        "seconds": round(run.seconds, 3),
        "failure": _failure_data(run),
        "waits": [_wait_data(wait) for wait in _waits(run.failure)],
        "findings": [_finding_data(finding) for finding in findings],
        "notes": list(run.notes),
        "thread_errors": list(run.thread_errors),
        "output": list(run.output),
    }


def _failure_data(run: Run) -> dict[str, Any] | None:
    if run.failure is None:
        return None
    rank, place = place_to_look(run)
    return {
        "kind": type(run.failure).__name__,
        "rank": rank,
        "title": run.failure.title,
        "message": str(run.failure),
        **_place_data(place),
    }


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "sure": finding.sure,
        "ranks": list(finding.ranks),
        "message": finding.text,
        **_place_data(finding.place),
    }


def _wait_data(wait: Wait) -> dict[str, Any]:
    event = wait.event
    return {
        "rank": wait.rank,
        "call": event.call if event is not None else None,
        "words": describe_wait(wait),
        "waits_for": list(wait.waits_for),
        **_place_data(event.where if event is not None else None),
        "callers": [
            {"file": place.file, "line": place.line, "function": place.function}
            for place in (event.callers if event is not None else ())
        ],
    }


def _place_data(place: Place | None) -> dict[str, Any]:
    return {
        "file": place.file if place else None,
        "line": place.line if place else None,
        "source": place.source.strip() if place else None,
    }


def github_commands(run: Run, findings: Sequence[Finding], script: Path) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for a failed run, and for each silent fault.

    script: the file to report if the line is unknown.
    """
    if run.failure is not None:
        _, place = place_to_look(run)
        title = f"{type(run.failure).__name__}: {run.failure.title}"
        yield github_command("error", place, script, title[:200], str(run.failure))
    for finding in findings:
        level = "error" if finding.sure == CERTAIN else "warning"
        yield github_command(level, finding.place, script, "Silent fault", finding.text)


def github_command(level: str, place: Place | None, script: Path, title: str, message: str) -> str:
    """Return a workflow command, escaped in the same way as actions/toolkit (packages/core, command.ts)."""
    file, line = (place.file, place.line) if place else (str(script), 1)
    fields = {"file": _from_repository(file), "line": str(line), "title": title}
    properties = ",".join(f"{name}={_escape_property(text)}" for name, text in fields.items())
    return f"::{level} {properties}::{_escape_data(message)}"


def _from_repository(file: str) -> str:
    """Return a file's path relative to the repository's root, as expected by GitHub."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.getcwd()
    return os.path.relpath(file, root) if Path(file).is_relative_to(root) else file


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
