"""The answer that a running kernel holds, taken from what was typed into it.

Called by `check` with the function (or its name) and the kernel's input history. The steps are those
of `build`; here is only how an object leads to the name under which the history knows it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType

from helpers.answers.build import build_answer
from helpers.answers.data import Answer, Problem
from helpers.answers.listing import Listing

_HOME = "__main__"


def input_number(index: int) -> str:
    """Name a cell of the history by the number in its margin."""
    return f"cell [{index}]"


def answer_from_history(
    target: object,
    inputs: Sequence[str],
    namespace: Mapping[str, object] | None = None,
) -> Answer | Problem:
    """Build the answer for a function, a class or a name from a kernel's inputs.

    inputs: IPython's `In`, or better `history_manager.input_hist_raw`, whose lines are as typed.
    The order is that of execution, so the definition that was run last is taken. namespace: the
    kernel's `user_ns`, to find by which name it knows the object; by default the function's own.
    """
    listing = Listing(inputs)
    if isinstance(target, str):
        return build_answer(listing, target, where=input_number, history=True)
    inner = _innermost(target)
    if namespace is None:
        namespace = _own_namespace(inner)
    name = _known_as(target, namespace, listing) or _own_name(target) or _own_name(inner)
    if not name:
        message = "This object has no name: pass a function or class of your own."
        return Problem("unresolved", message)
    # a name alone is not enough: an import or `%run` may have bound it since the cell that defines it
    at_home = _is_at_home(target, inner, name, namespace) and not _is_in_a_file(inner)
    if not at_home or not listing.binders(name):
        return _from_elsewhere(inner, name)
    return build_answer(listing, name, where=input_number, history=True)


def _innermost(target: object) -> object:
    """What decorators and `functools.partial` were put around."""
    while isinstance(target, functools.partial):
        target = target.func
    try:
        return inspect.unwrap(target) if callable(target) else target
    except ValueError:  # __wrapped__ goes in a circle
        return target


def _own_namespace(inner: object) -> Mapping[str, object]:
    """The kernel's names, if the function was made there: then they are its globals."""
    names = inner.__globals__ if isinstance(inner, FunctionType) else {}
    return names if names.get("__name__") == _HOME else {}


def _known_as(target: object, namespace: Mapping[str, object], listing: Listing) -> str:
    """The variable that holds the very object: a lambda or partial has no telling name itself."""
    # a copy: the kernel's names may change meanwhile, as in a callback of a widget
    names = [name for name, value in list(namespace.items()) if value is target]
    if (own := _own_name(target)) in names:
        return own
    # `_` and `_12` are what the kernel calls results: no cell has bound them
    typed = [name for name in names if not name.startswith("_") and listing.binders(name)]
    return typed[-1] if typed else ""


def _own_name(target: object) -> str:
    name = getattr(target, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""


def _is_at_home(target: object, inner: object, name: str, namespace: Mapping[str, object]) -> bool:
    """Whether the kernel's cells made the object, and not a module that has the same name in it."""
    if namespace.get(name) is target:
        return True
    if isinstance(inner, FunctionType) and inner.__globals__ is namespace:
        return True
    return getattr(inner, "__module__", None) == _HOME


def _is_in_a_file(inner: object) -> bool:
    """Whether a file that `%run` executed has bound the name, over what an older cell had typed."""
    functions = [inner, *(vars(inner).values() if isinstance(inner, type) else ())]
    for function in functions:
        if isinstance(function, FunctionType):
            path = Path(function.__code__.co_filename)
            # the debugger of JupyterLab keeps cells as files, in a folder called ipykernel_PID
            if path.is_file() and not path.parent.name.startswith("ipykernel_"):
                return True
    return False


def _from_elsewhere(inner: object, name: str) -> Problem:
    module = getattr(inner, "__module__", None)
    source = f"module `{module}`" if module not in (None, _HOME) else "a file or a `%run`"
    message = (
        f"`{name}` was not defined in a cell: it comes from {source}, which is not handed in. "
        "Copy its code into a cell, run that, and check again."
    )
    return Problem("unresolved", message, name)
