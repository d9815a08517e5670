"""Inside a rank: the answer's source becomes a function, and the exercise's kind says how to call it.

Sent to the ranks by name; only the answer's source and this rank's inputs travel with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

FILE = "<answer>"
"""What Python calls the file that an answer's source would be; `check.py` turns its lines back into
places in the learner's notebook."""


def drive(
    rank: int,
    world_size: int,
    source: str,
    name: str,
    kind: str,
    programme: str,
    inputs: Sequence[Any],
) -> Any:
    """Execute the answer in an empty `__main__`, then call it as its kind wants. Runs in ranks only."""
    if kind == "script":
        from helpers.exercises.scripts import Source

        answer: Any = Source(source, name)  # its programme decides which process executes it
    else:
        answer = build(source, name)
    if programme:
        module, _, function = programme.partition(":")
        return getattr(import_module(module), function)(answer, rank, world_size, *inputs)
    if kind in {"local", "judgement"}:
        return answer(*inputs)
    return answer(rank, world_size, *inputs)


def build(source: str, name: str) -> Any:
    """Execute an answer's source and give the object called `name`."""
    namespace = sys.modules["__main__"].__dict__
    exec(compile(source, FILE, "exec"), namespace)
    return namespace[name]
