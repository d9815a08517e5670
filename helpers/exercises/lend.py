"""Inside a rank: an answer that needs an earlier exercise which is not written yet gets a right one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def lend(answer: Any, name: str, right: Callable[..., Any]) -> None:
    """Let `answer` call `right` where its own function `name` still raises NotImplementedError.

    answer: a function, or a class of the answer's file.
    """
    made_by = vars(answer).get("__init__") if isinstance(answer, type) else answer
    names: dict[str, Any] = getattr(made_by, "__globals__", {})
    own = names.get(name)
    if not callable(own):
        return

    def lent(*args: Any, **kwargs: Any) -> Any:
        try:
            return own(*args, **kwargs)
        except NotImplementedError:
            return right(*args, **kwargs)

    names[name] = lent
