"""Inside a rank: build the function or class that an answer's source defines."""

from __future__ import annotations

import linecache
import sys
from typing import Any

ANSWER_FILE = "<answer>"
"""Python's file name for an answer's source. `check_answer.py` maps its lines to the learner's notebook."""


def build(source: str, name: str) -> Any:
    """Execute an answer's source in `__main__` and return the object called `name`."""
    # as in a notebook, code such as torch.jit.script should be able to read a function's source
    linecache.cache[ANSWER_FILE] = (
        len(source),
        None,
        source.splitlines(keepends=True),
        ANSWER_FILE,
    )
    # use `__main__`, because pickle looks there for objects that an answer sends to other ranks
    namespace = sys.modules["__main__"].__dict__
    exec(compile(source, ANSWER_FILE, "exec"), namespace)
    return namespace[name]
