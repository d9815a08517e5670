"""What a function of the learner's may need of an earlier exercise that is not solved yet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lend(right: Callable[..., Any]) -> None:
    """Let the answer use a right function where its own is missing or still a stub."""
    names = vars(sys.modules["__main__"])
    own = names.setdefault(right.__name__, right)

    def lent(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except NotImplementedError:
            return right(*args, **kwargs)

    if own is not right and getattr(own, "__name__", "") != "lent":
        names[right.__name__] = lent
