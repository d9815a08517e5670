"""Run a check in a kernel as in a grader's process, independent of settings made by cells.

A check draws its cases and computes the expected results in the notebook's process. After a cell's
`torch.set_grad_enabled(False)` it could not differentiate, and after `torch.set_default_dtype(torch.float64)`
it would expect different values from `course check`, which runs no cell. Its ranks start with the kernel's
environment, folder and path, which cells can also change.

This does not cover functions of torch or Python that a cell has replaced, or settings that are unknown to
`process_settings`.
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
from helpers.ranks.process_settings import SETTINGS, reset_filters
from helpers.ranks.seeds import generator_states, restore_states

_COURSE = str(Path(__file__).parents[2])
# Values in a new process. They can't be read from torch, because cells may run before a kernel imports it.
_DEFAULTS: dict[str, Callable[[Any], Any]] = {
    "the default dtype": lambda torch: torch.float32,
    "grad mode": lambda torch: True,
    "deterministic algorithms": lambda torch: (False, False),
    "print options of torch": lambda torch: vars(type(torch._tensor_str.PRINT_OPTS)()),
}


@dataclass(frozen=True)
class _KernelStart:
    """The state of a kernel when it imported the course, before its cells could change anything."""

    environment: Mapping[str, str]
    cwd: str
    path: Sequence[str]


_kernel_start: list[_KernelStart] = []


def remember_kernel_start() -> None:
    """Store the kernel's current state for later checks."""
    _kernel_start[:] = [_KernelStart(dict(os.environ), os.getcwd(), list(sys.path))]


def environment_at_start() -> Mapping[str, str]:
    """Return the environment with which this kernel started; outside a kernel, return the current one."""
    return _kernel_start[0].environment if _kernel_start else dict(os.environ)


@contextmanager
def use_fresh_settings() -> Iterator[None]:
    """Run the block with a new process's settings. Restore everything afterwards, including random states.

    Otherwise the draws of a check would change the random numbers of a later launch.
    """
    torch = sys.modules["torch"]
    with ExitStack() as stack:
        stack.callback(restore_states, generator_states())
        for start in _kernel_start:
            stack.enter_context(_use_kernel_start(start))
        stack.enter_context(warnings.catch_warnings())
        reset_filters()
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.autocast("cpu", enabled=False))
        if torch.get_default_device().type != "cpu":
            # set_default_device(None) would not leave a cell's `with torch.device(...)`.
            stack.enter_context(torch.device("cpu"))
        for setting in SETTINGS:
            if setting.name in _DEFAULTS and (previous := setting.read()) != (
                default := _DEFAULTS[setting.name](torch)
            ):
                stack.callback(setting.apply, previous)
                setting.apply(default)
        yield


@contextmanager
def hide_own_files() -> Iterator[None]:
    """Start ranks in an empty folder, where only packages and the course can be imported.

    Learners hand in only the notebook, so files next to the notebook must not decide whether an answer
    passes.
    """
    path = list(sys.path)
    cwd = os.open(".", os.O_RDONLY)
    with tempfile.TemporaryDirectory(prefix="real-ranks-check-") as folder:
        try:
            os.chdir(folder)
            packages = [entry for entry in path if entry and not is_learner_file(f"{entry}/")]
            sys.path[:] = [_COURSE, *packages]
            yield
        finally:
            sys.path[:] = path
            os.fchdir(cwd)
            os.close(cwd)


@contextmanager
def _use_kernel_start(start: _KernelStart) -> Iterator[None]:
    """Use the environment, folder and path from the kernel's start, so that ranks and jobs inherit them."""
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


def _set_environment(environment: Mapping[str, str]) -> None:
    """Set the environment. Change only the variables that differ, because other threads may read it."""
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    time.tzset()
