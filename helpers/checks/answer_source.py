"""An answer's source becomes the function or class that it defines, inside a rank."""

from __future__ import annotations

import linecache
import sys
from typing import Any

FILE = "<answer>"
"""What Python calls the file that an answer's source would be; `grade.py` turns its lines back into
places in the learner's notebook."""


def build(source: str, name: str) -> Any:
    """Execute an answer's source in `__main__` and return the object called `name`."""
    # what reads the source of a function, as torch.jit.script does, finds it as in a notebook
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    # not a namespace of its own: pickle finds by name in `__main__` what an answer sends to other ranks
    namespace = sys.modules["__main__"].__dict__
    exec(compile(source, FILE, "exec"), namespace)
    return namespace[name]
