"""Inside a rank: build the function or class that an answer's source defines."""

from __future__ import annotations

import linecache
import sys
from typing import Any

ANSWER_FILE = "<answer>"
"""Python's file name for an answer's source. `check_answer.py` maps its lines to the learner's notebook."""


def build(source: str, name: str) -> Any:
    """Execute an answer's source in `__main__` and return the object called `name`."""
    # code that reads a function's source, such as torch.jit.script, should find it, as in a notebook
    linecache.cache[ANSWER_FILE] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        ANSWER_FILE,
    )
    # in `__main__`, because pickle looks there for objects that an answer sends to other ranks
    namespace = sys.modules["__main__"].__dict__
    exec(compile(source, ANSWER_FILE, "exec"), namespace)
    return namespace[name]
