"""Find the answer in a running kernel, from its typed cells.

`check` passes the function (or its name) and the kernel's input history. `build` builds the answer. This
module only finds the object's name in the history.
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

_KERNEL_MODULE = "__main__"


def input_number(index: int) -> str:
    """Return a history cell's name for messages: the number in its margin."""
    return f"cell [{index}]"


def answer_from_history(
    target: object,
    inputs: Sequence[str],
    namespace: Mapping[str, object] | None = None,
) -> Answer | Problem:
    """Build the answer for a function, a class or a name from a kernel's inputs.

    Args:
        target: The function, the class or its name.
        inputs: IPython's `In` or, better, `history_manager.input_hist_raw`, which contains the lines as
            typed. They are in execution order, so the definition that ran last is used.
        namespace: The kernel's `user_ns`, used to find the object's name; by default, the function's globals.
    """
    listing = Listing(inputs)
    if isinstance(target, str):
        return build_answer(listing, target, where=input_number, from_history=True)
    inner = _innermost(target)
    if namespace is None:
        namespace = _own_namespace(inner)
    name = _variable_of(target, namespace, listing) or _name_of(target) or _name_of(inner)
    if not name:
        message = "This object has no name: pass a function or class of your own."
        return Problem("unresolved", message)
    # the name is not sufficient: an import or `%run` may have bound it after the cell that defines it
    at_home = _is_from_kernel(target, inner, name, namespace) and not _is_from_run_file(inner)
    if not at_home or not listing.binders(name):
        return _other_module_message(inner, name)
    return build_answer(listing, name, where=input_number, from_history=True)


def _innermost(target: object) -> object:
    """Return the function inside all decorators and `functools.partial` objects."""
    while isinstance(target, functools.partial):
        target = target.func
    try:
        return inspect.unwrap(target) if callable(target) else target
    except ValueError:  # __wrapped__ is circular
        return target


def _own_namespace(inner: object) -> Mapping[str, object]:
    """Return the kernel's names if the function was defined in the kernel, because they are its globals."""
    names = inner.__globals__ if isinstance(inner, FunctionType) else {}
    return names if names.get("__name__") == _KERNEL_MODULE else {}


def _variable_of(target: object, namespace: Mapping[str, object], listing: Listing) -> str:
    """Return the name of the object's variable, because lambdas and partials have no useful names."""
    # use a copy, because the kernel's names may change meanwhile, for example in a widget's callback
    names = [name for name, value in list(namespace.items()) if value is target]
    if (own := _name_of(target)) in names:
        return own
    # `_` and `_12` are the kernel's names for results: no cell binds them
    typed = [name for name in names if not name.startswith("_") and listing.binders(name)]
    return typed[-1] if typed else ""


def _name_of(target: object) -> str:
    name = getattr(target, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""


def _is_from_kernel(
    target: object, inner: object, name: str, namespace: Mapping[str, object]
) -> bool:
    """Return whether a cell of the kernel defined the object, not a module that uses the same name."""
    if namespace.get(name) is target:
        return True
    if isinstance(inner, FunctionType) and inner.__globals__ is namespace:
        return True
    return getattr(inner, "__module__", None) == _KERNEL_MODULE


def _is_from_run_file(inner: object) -> bool:
    """Return whether `%run` executed a file that bound the name after a cell had bound it."""
    functions = [inner, *(vars(inner).values() if isinstance(inner, type) else ())]
    for function in functions:
        if isinstance(function, FunctionType):
            path = Path(function.__code__.co_filename)
            # JupyterLab's debugger keeps cells as files, in a folder called ipykernel_PID
            if path.is_file() and not path.parent.name.startswith("ipykernel_"):
                return True
    return False


def _other_module_message(inner: object, name: str) -> Problem:
    module = getattr(inner, "__module__", None)
    source = f"module `{module}`" if module not in (None, _KERNEL_MODULE) else "a file or a `%run`"
    message = (
        f"`{name}` was not defined in a cell: it comes from {source}, which is not handed in. "
        "Copy its code into a cell, run the cell, and check again."
    )
    return Problem("unresolved", message, name)
