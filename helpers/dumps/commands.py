"""`course explain`: explain a hang from the dumps of a job on a cluster."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from helpers.course.command_parts import TO_LEARN, CommandWithCode, as_json_option

if TYPE_CHECKING:
    from helpers.dumps.explain import Explanation
    from helpers.trace.events import Event, Wait


_NOT_READ = 1
"""The exit code if the folder cannot be read. (2 means a hang.)"""


@click.command(cls=CommandWithCode, usage_code=_NOT_READ, title=TO_LEARN)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the lanes of all ranks to this file.",
)
@as_json_option
def explain(folder: Path, report: Path | None, as_json: bool) -> None:
    """Explain a hang from the flight-recorder dumps in FOLDER.

    Reads the dumps that torch 2.5 to 2.15 writes with NCCL or gloo, as pickles or JSON, in one file for each
    rank, with the rank's number in its name. Adds stacks of py-spy or torch's debug server in text files
    (rank0.txt).

    Exit code: 0 if nothing is suspicious, 2 if a hang was explained, 1 if dumps could not be read.
    """
    from helpers.course.as_json import write
    from helpers.dumps.explain import explain_folder

    explanation = explain_folder(folder)
    if report is not None:
        from helpers.dumps.report import report_page

        _write_file(report, report_page(explanation, folder.resolve().name))
    if as_json:
        write(explanation_json(explanation))
    else:
        click.echo(explanation.text)
    raise SystemExit(explanation.exit_code)


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data, for CI."""
    diagnosis, merged = explanation.diagnosis, explanation.merged
    return {
        "exit_code": explanation.exit_code,
        "world_size": merged.trace.world_size,
        "dumps": sorted(merged.dumps),
        "stacks": sorted(merged.stacks),
        "hang": diagnosis is not None,
        "kind": diagnosis.kind if diagnosis else "",
        "summary": diagnosis.summary if diagnosis else explanation.verdict,
        "advice": diagnosis.advice if diagnosis else "",
        "look_first": list(diagnosis.guilty) if diagnosis else [],
        "ranks": [_wait_json(wait) for wait in diagnosis.waits] if diagnosis else [],
        "notes": list(explanation.notes),
        "not_read": list(explanation.problems),
    }


def _wait_json(wait: Wait) -> dict[str, Any]:
    call = {} if wait.event is None else _call_json(wait.event)
    return {"rank": wait.rank, "state": wait.state, "waits_for": list(wait.waits_for), **call}


def _call_json(event: Event) -> dict[str, Any]:
    where = event.where
    place = {} if where is None else {"file": where.file, "line": where.line}
    return {"call": event.call, "op": event.op, "group": list(event.group_ranks), **place}


def _write_file(path: Path, text: str) -> None:
    """Write a file atomically, so that a reader never sees an incomplete file."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent or Path())
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from error
