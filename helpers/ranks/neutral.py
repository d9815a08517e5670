"""Compute in a kernel as a grader's process does, whatever cells have set there.

A check draws its cases and what is right in the process of the notebook. After a cell's
`torch.set_grad_enabled(False)` it could not differentiate, and after `torch.set_default_dtype(torch.float64)`
it would expect other values than `course check`, which runs no cell.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from helpers.ranks.seeds import all_states, set_states
from helpers.ranks.settings import SETTINGS, forget_filters

_FRESH: dict[str, Callable[[], Any]] = {
    "the default dtype": lambda: sys.modules["torch"].float32,
    "the default device": lambda: None,
    "grad mode": lambda: True,
    "float32 matmul precision": lambda: "highest",
    "deterministic algorithms": lambda: (False, False),
    "anomaly detection": lambda: (False, True),
    "flushing of denormals": lambda: False,
    "autocast": lambda: [(False, dtype) for dtype in _autocast_dtypes()],
    "numpy's error handling": lambda: {
        "divide": "warn",
        "over": "warn",
        "under": "ignore",
        "invalid": "warn",
    },
}
"""What a new process has, by the names in SETTINGS: those on which numbers, or whether they come, depend."""


def _autocast_dtypes() -> list[Any]:
    torch = sys.modules["torch"]
    return [torch.bfloat16, torch.float16]


@contextmanager
def as_in_a_new_process() -> Iterator[None]:
    """Have the block run with a new process's settings, and leave all as it was, random states included.

    What a check draws must not be what a launch after it begins with.
    """
    chosen = [setting for setting in SETTINGS if setting.name in _FRESH]
    before = [(setting, setting.read()) for setting in chosen]
    drawn = all_states()
    changed = []
    with warnings.catch_warnings():
        forget_filters()
        try:
            for setting, value in before:
                fresh = _FRESH[setting.name]()
                if str(value) != str(fresh) and not _is_default_device(setting.name, value):
                    changed.append((setting, value))
                    setting.apply(fresh)
            yield
        finally:
            for setting, value in changed:
                setting.apply(value)
            set_states(drawn)


def _is_default_device(name: str, value: Any) -> bool:
    # Set to None, torch says that it is the CPU.
    return name == "the default device" and str(value) == "cpu"
