"""Right solutions of earlier exercises, for learners who have not solved them yet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def define_if_missing(right: Callable[..., Any]) -> None:
    """Define a right function if the learner's function is missing or still a stub."""
    names = vars(sys.modules["__main__"])
    own = names.setdefault(right.__name__, right)

    def call_own_or_right(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except NotImplementedError:
            return right(*args, **kwargs)

    if own is not right and getattr(own, "__name__", "") != "call_own_or_right":
        names[right.__name__] = call_own_or_right
