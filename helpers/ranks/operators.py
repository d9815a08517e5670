"""Take apart operators made by torch.library.custom_op, and recreate them in another process.

The dispatcher's record of an operator is in C++, but torch keeps the operator's parts in Python.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_OPERATOR_FUNCTIONS = ("_abstract_fn", "_setup_context_fn", "_backward_fn", "_vmap_fn")


def describe_operator(op: Any) -> dict[str, Any]:
    """Return the parts of an operator from which `make_operator` can recreate it."""
    parts = {part: vars(op)[part] for part in _OPERATOR_FUNCTIONS}
    # In `_backend_fns` the functions are inside torch's wrappers, which refer to the operator.
    kernels = {kind: _unwrap(fn) for kind, fn in op._backend_fns.items()}
    dispatch = dict(op._torch_dispatch_fns)
    autocast = dict(op._autocast_dtype)
    return {
        "made of": (op._namespace, op._name, op._schema, op._init_fn, op._tags),
        "kernels": kernels,
        "dispatch": dispatch,
        "autocast": autocast,
        **parts,
    }


def _unwrap(fn: Callable[..., Any]) -> Callable[..., Any]:
    while type(fn).__name__ == "function" and getattr(fn, "__module__", "").startswith("torch."):
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        if "fn" not in cells:
            break
        fn = cells["fn"].cell_contents
    return fn


def make_operator(description: dict[str, Any]) -> Any:
    """Create an operator, unless one with this name already exists, for example from an earlier run."""
    from torch._library import custom_ops

    namespace, name, schema, fn, tags = description["made of"]
    existing = custom_ops.OPDEFS.get(f"{namespace}::{name}")
    if existing is not None:
        return existing
    op = custom_ops.CustomOpDef(namespace, name, schema, fn, tags)
    for kind, kernel in description["kernels"].items():
        op.register_kernel(kind)(kernel)
    if description["_abstract_fn"] is not None:
        op.register_fake(description["_abstract_fn"])
    if description["_backward_fn"] is not None:
        op.register_autograd(
            description["_backward_fn"], setup_context=description["_setup_context_fn"]
        )
    if description["_vmap_fn"] is not None:
        op.register_vmap(description["_vmap_fn"])
    for kind, function in description["dispatch"].items():
        op.register_torch_dispatch(kind, function)
    for kind, dtype in description["autocast"].items():
        op.register_autocast(kind, dtype)
    return op


def learner_operators() -> list[Any]:
    """Return the operators that cells have created."""
    registry = sys.modules["torch._library.custom_ops"].__dict__["OPDEFS"]
    return [op for op in list(registry.values()) if op._init_fn.__module__ == "__main__"]
