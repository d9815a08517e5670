"""Run a program as a script under `course run`. Its ranks write their values to files, as plain ranks do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from helpers.ranks.display import NoDisplay
from helpers.scripts.read_script import read_script
from helpers.scripts.run_script import ScriptJob, run_job
from tests.conformance.entry import Entry
from tests.conformance.in_kernel import outcome_of
from tests.conformance.in_rank import FOLDER, read_value
from tests.conformance.outcome import VALUE, Outcome
from tests.conformance.plain import BUDGET_S, HANG_S, ROOT

_TAIL = """

if __name__ == "__main__":
    import sys

    sys.path.append({root!r})
    from tests.conformance.in_rank import {start}

    {start}(main, {world_size}, {init})
"""


def run_as_script(entry: Entry) -> Outcome:
    """Run a program in a new folder, and return how it ended.

    Programs written for mp.spawn call it, and the ranks take the place of its processes.
    """
    with tempfile.TemporaryDirectory(prefix="cf-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        for name in ("notes", "work", "temp"):
            (place / name).mkdir()
        start = "script_rank" if entry.like == "torchrun" else "spawn_script_ranks"
        tail = _TAIL.format(
            root=str(ROOT), start=start, world_size=entry.world_size, init=entry.init
        )
        script = place / "program.py"
        script.write_text(entry.source + tail)
        with _working_in(place / "work"):
            job = ScriptJob(
                read_script(script),
                entry.world_size,
                env={FOLDER: str(place / "notes"), "TMPDIR": str(place / "temp")},
                timeout=HANG_S if entry.hangs else BUDGET_S,
            )
            # Use the terminal's output, because a Run keeps less of a long output
            shown = [bytearray() for _ in range(entry.world_size)]
            run = run_job(job, NoDisplay(), show_output=lambda rank, data: shown[rank].extend(data))
        outcome = replace(
            outcome_of(run), output=tuple(data.decode(errors="replace") for data in shown)
        )
        if outcome.kind != VALUE:
            return outcome
        values = tuple(read_value(place / "notes", rank) for rank in range(entry.world_size))
        return replace(outcome, values=values)


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
