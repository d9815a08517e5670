"""What goes to the ranks: the learner's function and its arguments, pickled by value.

Towards a rank cloudpickle is fine: the launcher's own objects, read by processes that exist to run
them. Nothing that comes back is ever unpickled (`wire.py`).
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.failures import CannotSend, LaunchError

MAX_WORLD_SIZE = 256


@dataclass(frozen=True)
class Payload:
    """Bytes for the ranks: `shared` holds (fn, args) for all, `own[r]` the rest for rank r alone."""

    shared: bytes
    own: tuple[bytes, ...]


def check_world_size(world_size: Any) -> int:
    """Give a usable number of ranks. Raise LaunchError with what to write instead."""
    if isinstance(world_size, bool) or not isinstance(world_size, int):
        advice = f" Write {world_size}." if str(world_size).isdigit() else ""
        raise LaunchError(
            f"world_size must be a whole number of ranks; got {world_size!r}, "
            f"a {type(world_size).__name__}.{advice}"
        )
    if not 1 <= world_size <= MAX_WORLD_SIZE:
        raise LaunchError(
            f"world_size must be from 1 to {MAX_WORLD_SIZE} on one machine; got {world_size}."
        )
    return world_size


def make_payload(
    fn: Callable[..., Any], world_size: int, args: Sequence[Any], per_rank: Sequence[Any] | None
) -> Payload:
    """Pickle the function and its arguments. Raise CannotSend, naming the variable that cannot go."""
    import cloudpickle

    if not callable(fn):
        raise LaunchError(
            f"launch() takes a function; got {type(fn).__name__}. Write launch(f), not launch(f())."
        )
    if not isinstance(args, (tuple, list)):
        raise LaunchError(f"args must be a tuple, such as args=(x,); got {type(args).__name__}.")
    parts = _per_rank(world_size, per_rank)
    try:
        shared = cloudpickle.dumps((fn, tuple(args)))
        own = tuple(cloudpickle.dumps(part) for part in parts)
    except Exception as error:
        raise _explain(error, fn, args, parts) from None
    return Payload(shared, own)


def names_payload(names: Mapping[str, Any]) -> bytes:
    """Pickle variables by name, for `%%ranks --send`. Raise CannotSend for the one that cannot go."""
    import cloudpickle

    for name, value in names.items():
        problem = _problem(value)
        if problem:
            raise CannotSend(_message(name, value, problem), name)
    return bytes(cloudpickle.dumps(dict(names)))


def _per_rank(world_size: int, per_rank: Sequence[Any] | None) -> list[tuple[Any, ...]]:
    if per_rank is None:
        return [()] * world_size
    if not isinstance(per_rank, Sequence) or len(per_rank) != world_size:
        count = len(per_rank) if isinstance(per_rank, Sequence) else type(per_rank).__name__
        raise LaunchError(
            f"per_rank needs one tuple of arguments for each of {world_size} ranks; got {count}."
        )
    for rank, part in enumerate(per_rank):
        if not isinstance(part, (tuple, list)):
            raise LaunchError(
                f"per_rank[{rank}] must be a tuple of arguments, such as (x,); "
                f"got {type(part).__name__}."
            )
    return [tuple(part) for part in per_rank]


def _explain(
    error: Exception, fn: Callable[..., Any], args: Sequence[Any], parts: list[tuple[Any, ...]]
) -> CannotSend:
    """Find the variable because of which pickling failed."""
    for name, value in _candidates(fn, args, parts):
        problem = _problem(value)
        if problem:
            return CannotSend(_message(name, value, problem), name)
    name = getattr(fn, "__name__", "the function")
    return CannotSend(f"{name} cannot be sent to the ranks: {error}", name)


def _candidates(
    fn: Callable[..., Any], args: Sequence[Any], parts: list[tuple[Any, ...]]
) -> Iterator[tuple[str, Any]]:
    for i, value in enumerate(args):
        yield f"args[{i}]", value
    for rank, part in enumerate(parts):
        for i, value in enumerate(part):
            yield f"per_rank[{rank}][{i}]", value
    seen: set[int] = set()
    queue: list[Any] = [fn]
    while queue:
        found = queue.pop()
        if id(found) in seen or not isinstance(found, types.FunctionType):
            continue
        seen.add(id(found))
        used = dict(zip(found.__code__.co_freevars, found.__closure__ or (), strict=False))
        values = {name: _content(cell) for name, cell in used.items()}
        names = _names(found.__code__)
        values |= {n: found.__globals__[n] for n in names if n in found.__globals__}
        values |= found.__kwdefaults__ or {}
        for name, value in values.items():
            if isinstance(value, types.FunctionType):
                queue.append(value)
            else:
                yield name, value
        yield from ((f"a default of {found.__name__}", v) for v in found.__defaults__ or ())
    bound = getattr(fn, "__self__", None)
    if bound is not None:
        yield f"the object that {getattr(fn, '__name__', 'it')} belongs to", bound


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _problem(value: Any) -> str:
    import cloudpickle

    try:
        cloudpickle.dumps(value)
    except Exception as error:
        return str(error).split("\n", 1)[0][:200] or type(error).__name__
    return ""


def _message(name: str, value: Any, problem: str) -> str:
    return (
        f"{name} cannot be sent to the ranks: it is a {type(value).__name__} ({problem}). "
        "Ranks are processes of their own, so an open file, a socket, a lock or a generator cannot "
        "travel to them. Make it inside the function, or pass the plain data that it is made from."
    )
