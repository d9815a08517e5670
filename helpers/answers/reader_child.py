"""Read a notebook file in a capped child process: one request in, one reply out.

`reader` starts it as `python -m helpers.answers.reader_child`. The limits are set before the file is
opened. Any later failure is sent as a reply, or ends this process.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

from helpers.answers.build import build_answer, cell_number, defines
from helpers.answers.data import Answer, Problem
from helpers.answers.listing import Listing
from helpers.answers.notebook import Notebook, UnreadableNotebook, printable_name, read_notebook

MAX_MEMORY_BYTES = 1 << 30


def main() -> None:
    """Answer the one request on standard input, then exit."""
    request = json.loads(sys.stdin.buffer.read())
    _limit_process(request["timeout_s"])
    try:
        reply = json.dumps({"answers": _read_answers(request["path"], request["names"])})
    except UnreadableNotebook as error:
        reply = json.dumps({"unreadable": str(error)})
    # exceeded limits raise exceptions first, so that they can be reported
    except (MemoryError, RecursionError):
        name = printable_name(request["path"])
        reply = json.dumps({"unreadable": f"{name} needs more memory than any notebook does."})
    sys.stdout.write(reply)


def _read_answers(path: str, names: Sequence[str]) -> dict[str, Any]:
    notebook = read_notebook(path)
    # use one listing for all names, so that each cell is parsed only once
    listing = Listing([cell.code for cell in notebook.cells])
    found = {name: build_answer(listing, name, others=names) for name in names}
    found = {name: _with_cause(each, notebook) for name, each in found.items()}
    return {
        name: {**asdict(each), "notes": [*notebook.repairs, *each.notes]}
        for name, each in found.items()
    }


def _with_cause(answer: Answer | Problem, notebook: Notebook) -> Answer | Problem:
    """Add the cause to a problem if parts of the file other than its code cells show the cause."""
    if not isinstance(answer, Problem):
        return answer
    here = ".".join(map(str, sys.version_info[:2]))
    if answer.kind == "syntax_error" and notebook.python_version > sys.version_info[:2]:
        written = ".".join(map(str, notebook.python_version))
        message = (
            f"{answer.message} The notebook was written with Python {written}, and "
            f"the line may be valid there. The course is graded with Python {here}: write it differently."
        )
        return replace(answer, kind="newer_syntax", message=message)
    if answer.kind == "syntax_error" and not notebook.python_version:
        message = (
            f"{answer.message} If the cell runs in your Python, your Python is newer. The course is "
            f"graded with Python {here}: write it differently."
        )
        return replace(answer, message=message)
    if answer.kind == "not_defined":
        for cell in notebook.cells:
            if cell.cell_type != "code" and defines(cell.source, answer.name):
                kind = "a Markdown" if cell.cell_type == "markdown" else "a raw"
                message = (
                    f"`{answer.name}` is defined in {cell_number(cell.index)}, which is {kind} cell, so it "
                    "is not code: make it a code cell (select it, press Esc and then Y)."
                )
                return replace(answer, kind="unresolved", message=message)
    return answer


def _limit_process(timeout_s: float) -> None:
    """Limit this process's resources, in case the caller is killed and cannot end it at the deadline."""
    seconds = int(timeout_s) + 1
    limits = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: MAX_MEMORY_BYTES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        # macOS defines some of these limits but does not implement them
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (limit, limit))


if __name__ == "__main__":
    main()
