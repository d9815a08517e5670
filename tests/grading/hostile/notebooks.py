"""Files that are notebooks only by name: their cost is bounded, and the batch continues.

Functions that make the files' contents, by name, for files with and without a readable answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.grading.notebooks import IMPORTS, RIGHT


def _cell(source: Any, kind: Any = "code", **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "outputs": [], "source": source, **more}


def _notebook(*cells: Any, **more: Any) -> bytes:
    whole = {"cells": [_cell(IMPORTS), *cells], "metadata": {}, "nbformat": 4, **more}
    return json.dumps(whole).encode()


UNREADABLE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "nested a million deep": lambda: b'{"cells":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "no JSON": lambda: bytes(range(256)) * 100,
    "another thing": lambda: b"[]",
    "larger than any notebook": lambda: b" " * 21_000_000,
    "a number of a million digits": lambda: b'{"cells": ' + b"9" * 1_000_000 + b"}",
    "a hundred thousand cells": lambda: _notebook(*[_cell("x = 1")] * 100_000),
}

READABLE: dict[str, Callable[[], bytes]] = {
    "a gigantic cell": lambda: _notebook(_cell("x = 1\n" * 200_000), _cell(RIGHT)),
    "thousands of shell lines": lambda: _notebook(_cell("!ls\n" * 4000), _cell(RIGHT)),
    "thousands of magics": lambda: _notebook(_cell("%time 1\n?x\nx??\n" * 1000), _cell(RIGHT)),
    "an expression without end": lambda: _notebook(
        _cell("x = " + "-" * 50_000 + "1"), _cell(RIGHT)
    ),
    "brackets without end": lambda: _notebook(_cell("(" * 5000), _cell(RIGHT)),
    "half a surrogate": lambda: _notebook(_cell("x = '\ud800'"), _cell(RIGHT)),
    "odd Unicode": lambda: _notebook(_cell("ｘ = '\u202e\u0000\ufeff'\n\u2028"), _cell(RIGHT)),
    "cells that are not cells": lambda: _notebook(
        None, 3, [], {}, _cell(None), _cell([1]), _cell(RIGHT)
    ),
    "names of NUL": lambda: _notebook(_cell(RIGHT, id="\0", metadata={"name": "\0/../x"})),
    "twice the same key": lambda: _notebook(_cell(RIGHT)).replace(
        b'"nbformat"', b'"nbformat": 3, "nbformat"'
    ),
}
"""Contents in which the right answer to `ping_pong` is found, whatever surrounds it."""
