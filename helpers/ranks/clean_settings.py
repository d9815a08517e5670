"""Run a check in a kernel as in a grader's process, whatever cells have set.

A check draws its cases and computes the expected results in the notebook's process. After a cell's
`torch.set_grad_enabled(False)` it could not differentiate, and after `torch.set_default_dtype(torch.float64)`
it would expect different values from `course check`, which runs no cell. Its ranks start with the kernel's
environment, folder and path, which cells can also change.

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
# Values in a new process. They cannot be read here: cells may run before a kernel imports torch.
_FRESH: dict[str, Callable[[Any], Any]] = {
    "the default dtype": lambda torch: torch.float32,
    "grad mode": lambda torch: True,
    "deterministic algorithms": lambda torch: (False, False),
    "print options of torch": lambda torch: vars(type(torch._tensor_str.PRINT_OPTS)()),
}


@dataclass(frozen=True)
class _Start:
    """The state of a kernel when it imported the course, before its cells could change anything."""

    environment: Mapping[str, str]
    cwd: str
    path: Sequence[str]


_start: list[_Start] = []


def remember_start() -> None:
    """Store the kernel's present state for later checks."""
    _start[:] = [_Start(dict(os.environ), os.getcwd(), list(sys.path))]


def environment_at_start() -> Mapping[str, str]:
    """Return the environment with which this kernel started; outside a kernel, the present one."""
    return _start[0].environment if _start else dict(os.environ)


@contextmanager
def as_in_a_new_process() -> Iterator[None]:
    """Run the block with a new process's settings. Restore everything after it, including random states.

    The draws of a check must not change the random numbers of a later launch.
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
            # Not set_default_device(None), which does not end a cell's `with torch.device(...)`.
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
    """Start ranks in an empty folder, where only packages and the course can be imported.

    Learners hand in only the notebook, so files next to it must not decide whether an answer passes.
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
    """Use the environment, folder and path of the kernel's start, and let ranks and jobs inherit them."""
    environment, path = dict(os.environ), list(sys.path)
    # The descriptor finds the folder even if the folder is renamed or removed.
    cwd = os.open(".", os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # The first folder may no longer exist.
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
    """Set the environment. Change only what differs, because other threads may read it."""
    for name in [name for name in os.environ if name not in wanted]:
        del os.environ[name]
    for name, value in wanted.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()
