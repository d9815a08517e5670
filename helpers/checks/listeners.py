"""Pass finished checks to other parts of the course, if this copy includes them."""

from __future__ import annotations

from dataclasses import replace

from helpers import plugins
from helpers.check_result import CheckResult

CHECKED = "real_ranks.checked"


def tell_listeners(result: CheckResult) -> CheckResult:
    """Pass a finished check to each listener, and return the result with their additions.

    A failing listener adds a note instead of raising an error. Listeners are imported when the first check
    has finished.
    """
    for name in plugins.names(CHECKED):
        try:
            result = plugins.load(CHECKED, name)(result)
        except plugins.MissingFeature:
            continue
        except Exception as error:  # another package must not cost a learner the verdict
            note = f"{name} could not use this result ({type(error).__name__}: {error})"
            result = replace(result, notes=(*result.notes, note))
    return result
