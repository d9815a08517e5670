"""The learner's function and its arguments, pickled by value for the ranks.

Pickle (cloudpickle) is safe in this direction: the objects are the launcher's own, and the ranks that
read them only exist to run them. Data from ranks is never unpickled (`wire.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.ranks.cells import Source
from helpers.ranks.failures import CannotSend, LaunchError
from helpers.ranks.options import Task
from helpers.ranks.settings import NONE, Carried


@dataclass(frozen=True)
class Payload:
    """Bytes for the ranks: `shared` holds (fn, args) for all, `own[r]` the arguments of rank r alone.

    settings: `shared` begins with what cells have set for their process, which must be set before the rest
    is read. sources: the cells from which code is sent, by file, so that a rank can show its lines.
    """

    shared: bytes
    own: tuple[bytes, ...]
    settings: bool = False
    sources: dict[str, Source] = field(default_factory=dict)

    def task(self, source: str | None = None, file: str = "") -> Task:
        """Return the task for this payload. source, file: a cell to run in place of `fn`."""
        return Task(len(self.shared), self.settings, self.sources, source, file)


def make_payload(
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any],
    per_rank: Sequence[Any] | None,
    settings: Carried = NONE,
) -> Payload:
    """Pickle the function and its arguments. Raise CannotSend, with the variable that cannot be sent."""
    from helpers.ranks import sending, unsendable  # Only now, because they import torch.

    if not callable(fn):
        raise LaunchError(
            f"launch() takes a function; got {type(fn).__name__}. Write launch(f), not launch(f())."
        )
    if not isinstance(args, (tuple, list)):
        raise LaunchError(f"args must be a tuple, such as args=(x,); got {type(args).__name__}.")
    parts = _per_rank(world_size, per_rank)
    check_call(fn, world_size, args, parts)
    _check_arguments(args, parts)
    try:
        shared, sources = sending.dumps((fn, tuple(args)), first=settings.values)
        own = tuple(sending.dumps(part)[0] if part else b"" for part in parts)
    except Exception as error:
        raise unsendable.explain(error, fn, args, parts) from None
    return Payload(shared, own, bool(settings.values), sources)


def names_payload(names: Mapping[str, Any], settings: Carried = NONE) -> Payload:
    """Pickle variables by name, for `%%ranks --send`. Raise CannotSend for one that cannot be sent."""
    if not names and not settings.values:
        return Payload(b"", ())
    from helpers.ranks import sending, unsendable

    try:
        # Not into __main__: live ranks have their own variables under these names.
        shared, sources = sending.dumps(dict(names), into_main=False, first=settings.values)
    except Exception:
        for name, value in names.items():
            if unsendable.problem(value):
                raise CannotSend(unsendable.message(name, value), name) from None
        raise
    return Payload(shared, (), bool(settings.values), sources)


def _check_arguments(args: Sequence[Any], parts: Sequence[Sequence[Any]]) -> None:
    """Refuse a lock or queue as an argument, because the ranks would not share it.

    One that a function only mentions is allowed: each process that runs a script makes its own.
    """
    from helpers.ranks import unsendable

    named = {f"args[{i}]": value for i, value in enumerate(args)}
    named |= {f"per_rank[{r}][{i}]": v for r, part in enumerate(parts) for i, v in enumerate(part)}
    for name, value in named.items():
        if type(value).__module__ in {"_thread", "threading", "queue", "_queue"}:
            raise CannotSend(unsendable.message(name, value), name)


def check_call(
    fn: Callable[..., Any], world_size: int, args: Sequence[Any], parts: Sequence[Sequence[Any]]
) -> None:
    """Raise LaunchError if ranks cannot call `fn` with these arguments, whatever it does."""
    name = getattr(fn, "__name__", type(fn).__name__)
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise LaunchError(
            f"{name} contains a `yield`, so a call only creates a generator and runs none of its "
            f"lines. Launch a function that returns the values, such as list({name}(...))."
        )
    if inspect.iscoroutinefunction(fn):
        raise LaunchError(
            f"{name} is an async function, so a call only creates a coroutine and runs none of its "
            f"lines. Launch a plain function that calls asyncio.run({name}(...))."
        )
    try:
        signature = inspect.signature(fn, follow_wrapped=False)
    except (TypeError, ValueError):  # Some functions in C have no signature.
        return
    for rank, part in enumerate(parts):
        try:
            signature.bind(rank, world_size, *args, *part)
        except TypeError as error:
            given = ["rank", "world_size", *(f"args[{i}]" for i in range(len(args)))]
            given += [f"per_rank[{rank}][{i}]" for i in range(len(part))]
            advice = "" if len(given) > 2 else f" Write def {name}(rank, world_size): ..."
            raise LaunchError(
                f"launch() calls {name}({', '.join(given)}), but it is {name}{signature}: {error}.{advice}"
            ) from None


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
