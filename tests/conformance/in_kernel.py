"""Print, inside the kernel, the outcome of a launch or a %%ranks cell as one marked line of JSON."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankFailure, RankTimeout
from helpers.ranks.process_settings import SETTINGS, learner_loggers
from helpers.ranks.run import Run
from tests.conformance.outcome import HANG, VALUE, Outcome, text_of

SAID = "@@conformance "


def tell(run: Run) -> None:
    """Print the outcome of a run."""
    _say(outcome_of(run))


def tell_cell(ok: bool) -> None:
    """Print the outcome of the last %%ranks cell: a Run as its value, or an error."""
    from IPython import get_ipython

    if ok:
        # Not `_`: if a program defines it (`@show.register`, `def _(x)`), IPython no longer updates it.
        tell(list(get_ipython().user_ns["_oh"].values())[-1])
        return
    error = sys.last_value
    if isinstance(error, RankFailure) and error.run is not None:
        tell(error.run)
    else:
        _say(Outcome(type(error).__name__, message=str(error).split("\n", 1)[0]))


def names() -> list[str]:
    """Return the names in the reader's namespace."""
    from IPython import get_ipython

    return list(get_ipython().user_ns)


def keep_settings() -> None:
    """Remember the settings of this kernel before any program changes them."""
    import torch

    torch.seed()
    for setting in SETTINGS:
        if setting.name not in _ADDED:
            with contextlib.suppress(ValueError):
                _kept[setting.name] = setting.read()


_kept: dict[str, Any] = {}
_ADDED = {"warnings", "operators"}
"""Settings that are added to existing ones, and removed one by one."""


def forget(kept: list[str]) -> None:
    """Undo the definitions and settings of a program, and forget the text of the cells."""
    import warnings

    import torch
    from IPython import get_ipython

    space = get_ipython().user_ns
    for name in set(space) - set(kept):
        if not name.startswith("_"):
            del space[name]
    space["In"].clear()
    for setting in SETTINGS:
        if setting.name in _kept:
            setting.apply(_kept[setting.name])
    warnings.filters[:] = [f for f in warnings.filters if f[0] != "error"]  # type: ignore[index]
    for _, logger in learner_loggers():
        logger.handlers.clear()
    torch.seed()


def outcome_of(run: Run) -> Outcome:
    """Describe how a run ended."""
    kind, rank, message = _kind(run.failure)
    values = tuple(text_of(value) for value in run.values) if kind == VALUE else ()
    named = type(run.failure).__name__ if run.failure is not None else ""
    return Outcome(kind, values, tuple(run.output), rank, message, named, round(run.seconds, 2))


def _kind(failure: RankFailure | None) -> tuple[str, int | None, str]:
    if failure is None:
        return VALUE, None, ""
    if isinstance(failure, RankFailed):
        return failure.error.kind, failure.rank, failure.error.message.split("\n", 1)[0]
    if isinstance(failure, RankDied):
        return failure.signal or f"exit {failure.exitcode}", failure.rank, failure.title
    if isinstance(failure, (Deadlock, RankTimeout)):
        return HANG, None, str(failure)[:600].replace("\n", " | ")
    return type(failure).__name__, None, failure.title


def _say(outcome: Any) -> None:
    print(f"\n{SAID}{json.dumps(outcome.as_json())}")
