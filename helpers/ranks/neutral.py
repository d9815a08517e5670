"""Compute in a kernel as a grader's process does, whatever cells have set there.

A check draws its cases and what is right in the process of the notebook. After a cell's
`torch.set_grad_enabled(False)` it could not differentiate, and after `torch.set_default_dtype(torch.float64)`
it would expect other values than `course check`, which runs no cell. Its ranks begin with the environment,
folder and path of the kernel, which cells can set as well.

Not covered: functions of torch or Python that a cell has replaced, and settings that `setting_kinds` does
not know.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.ranks.cells import is_learner_file
from helpers.ranks.seeds import all_states, restore_states
from helpers.ranks.setting_kinds import SETTINGS, forget_filters

_COURSE = str(Path(__file__).parents[2])
# What a new process has. A kernel may import torch only after a cell, so it cannot be read there.
_FRESH: dict[str, Callable[[Any], Any]] = {
    "the default dtype": lambda torch: torch.float32,
    "grad mode": lambda torch: True,
    "deterministic algorithms": lambda torch: (False, False),
    "print options of torch": lambda torch: vars(type(torch._tensor_str.PRINT_OPTS)()),
}


@dataclass(frozen=True)
class _Start:
    """What a kernel had when it imported the course, before its cells could set anything else."""

    environment: Mapping[str, str]
    cwd: str
    path: Sequence[str]


_start: list[_Start] = []


def remember_start() -> None:
    """Note what this kernel has now, for the checks to come."""
    _start[:] = [_Start(dict(os.environ), os.getcwd(), list(sys.path))]


def environment_at_start() -> Mapping[str, str]:
    """Return the environment that this kernel began with; outside a kernel the one it has now."""
    return _start[0].environment if _start else dict(os.environ)


@contextmanager
def as_in_a_new_process() -> Iterator[None]:
    """Have the block run with a new process's settings, and leave all as it was, random states included.

    What a check draws must not be what a launch after it begins with.
    """
    torch = sys.modules["torch"]
    with ExitStack() as stack:
        stack.callback(restore_states, all_states())
        for start in _start:
            stack.enter_context(_place_of(start))
        stack.enter_context(warnings.catch_warnings())
        forget_filters()
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.autocast("cpu", enabled=False))
        if torch.get_default_device().type != "cpu":
            # Not set_default_device(None): it does not end the `with torch.device(...)` of a cell.
            stack.enter_context(torch.device("cpu"))
        for setting in SETTINGS:
            if setting.name in _FRESH and (before := setting.read()) != (
                value := _FRESH[setting.name](torch)
            ):
                stack.callback(setting.apply, before)
                setting.apply(value)
        yield


@contextmanager
def without_own_files() -> Iterator[None]:
    """Start ranks in an empty folder, with nothing but packages and the course to import.

    Only the notebook is handed in, so what lies next to it must not decide whether an answer passes.
    """
    path = list(sys.path)
    cwd = os.open(".", os.O_RDONLY)
    with tempfile.TemporaryDirectory(prefix="real-ranks-check-") as empty:
        try:
            os.chdir(empty)
            packages = [each for each in path if each and not is_learner_file(f"{each}/")]
            sys.path[:] = [_COURSE, *packages]
            yield
        finally:
            sys.path[:] = path
            os.fchdir(cwd)
            os.close(cwd)


@contextmanager
def _place_of(start: _Start) -> Iterator[None]:
    """Have the environment, folder and path of a kernel's start: what ranks and jobs begin with."""
    environment, path = dict(os.environ), list(sys.path)
    cwd = os.open(".", os.O_RDONLY)  # leads back to a folder that was renamed or removed, too
    try:
        with contextlib.suppress(OSError):  # the folder of the start may have gone
            os.chdir(start.cwd)
        _set_environment(start.environment)
        sys.path[:] = start.path
        yield
    finally:
        sys.path[:] = path
        _set_environment(environment)
        os.fchdir(cwd)
        os.close(cwd)


def _set_environment(wanted: Mapping[str, str]) -> None:
    """Change only what differs: other threads may read it."""
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()
