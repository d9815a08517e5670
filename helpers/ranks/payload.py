"""The learner's function and its arguments, pickled by value for the ranks.

Pickle (cloudpickle) is safe in this direction: the objects belong to the launcher, and the ranks exist only
to run them. Data from ranks is never unpickled (`wire.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.ranks.carried_settings import NO_SETTINGS, SentSettings
from helpers.ranks.cells import Source
from helpers.ranks.failures import CannotSend, LaunchError
from helpers.ranks.launch_options import Task


@dataclass(frozen=True)
class Payload:
    """Bytes for the ranks: (fn, args) in `shared` for all ranks, more arguments for rank r in `per_rank[r]`.

    `per_rank[r]` continues `shared` and is read by the same Unpickler, so an object that occurs in both is
    one object on the rank.

    has_settings: whether `shared` begins with settings made in cells, which must be applied before the rest
    is read. sources: {file: cell} for the cells whose code is sent, so that a rank can show their lines.
    """

    shared: bytes
    per_rank: tuple[bytes, ...]
    has_settings: bool = False
    sources: dict[str, Source] = field(default_factory=dict)

    def task(self, source: str | None = None, file: str = "") -> Task:
        """Return the task for this payload. source, file: a cell to run instead of `fn`."""
        return Task(len(self.shared), self.has_settings, self.sources, source, file)


def make_payload(
    fn: Callable[..., Any],
    world_size: int,
    args: Sequence[Any],
    per_rank: Sequence[Any] | None,
    settings: SentSettings = NO_SETTINGS,
) -> Payload:
    """Pickle the function and its arguments. Raise CannotSend with the name of an unsendable variable."""
    from helpers.ranks import sending, unsendable  # Import these here, because they import torch.

    if not callable(fn):
        raise LaunchError(
            f"launch() takes a function; got {type(fn).__name__}. Write launch(f), not launch(f())."
        )
    if not isinstance(args, (tuple, list)):
        raise LaunchError(f"args must be a tuple, such as args=(x,); got {type(args).__name__}.")
    rank_args = _check_per_rank(world_size, per_rank)
    check_call(fn, world_size, args, rank_args)
    _check_arguments(args, rank_args)
    try:
        shared, pickled_args, sources = sending.dumps_with_parts(
            (fn, tuple(args)), rank_args, earlier_objects=settings.values
        )
    except Exception as error:
        raise unsendable.explain_unsendable(error, fn, args, rank_args) from None
    return Payload(shared, pickled_args, bool(settings.values), sources)


def names_payload(names: Mapping[str, Any], settings: SentSettings = NO_SETTINGS) -> Payload:
    """Pickle variables by name, for `%%ranks --send`. Raise CannotSend if one cannot be sent."""
    if not names and not settings.values:
        return Payload(b"", ())
    from helpers.ranks import sending, unsendable

    try:
        # Do not use __main__, because live ranks may have other variables under these names.
        shared, sources = sending.dumps(
            dict(names), use_main=False, earlier_objects=settings.values
        )
    except Exception:
        for name, value in names.items():
            if unsendable.pickling_problem(value):
                raise CannotSend(unsendable.describe_unsendable(name, value), name) from None
        raise
    return Payload(shared, (), bool(settings.values), sources)


def _check_arguments(args: Sequence[Any], rank_args: Sequence[Sequence[Any]]) -> None:
    """Refuse locks and queues as arguments, because the ranks would not share them.

    A lock that a function only mentions is allowed: each process that runs a script creates a separate lock.
    """
    from helpers.ranks import unsendable

    arguments = {f"args[{i}]": value for i, value in enumerate(args)}
    arguments |= {
        f"per_rank[{r}][{i}]": v for r, values in enumerate(rank_args) for i, v in enumerate(values)
    }
    for name, value in arguments.items():
        if type(value).__module__ in {"_thread", "threading", "queue", "_queue"}:
            raise CannotSend(unsendable.describe_unsendable(name, value), name)


def check_call(
    fn: Callable[..., Any], world_size: int, args: Sequence[Any], rank_args: Sequence[Sequence[Any]]
) -> None:
    """Raise LaunchError if `fn` cannot be called with these arguments."""
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
    for rank, values in enumerate(rank_args):
        try:
            signature.bind(rank, world_size, *args, *values)
        except TypeError as error:
            names = ["rank", "world_size", *(f"args[{i}]" for i in range(len(args)))]
            names += [f"per_rank[{rank}][{i}]" for i in range(len(values))]
            advice = "" if len(names) > 2 else f" Write def {name}(rank, world_size): ..."
            raise LaunchError(
                f"launch() calls {name}({', '.join(names)}), but it is {name}{signature}: {error}.{advice}"
            ) from None


def _check_per_rank(world_size: int, per_rank: Sequence[Any] | None) -> list[tuple[Any, ...]]:
    if per_rank is None:
        return [()] * world_size
    if not isinstance(per_rank, Sequence) or len(per_rank) != world_size:
        count = len(per_rank) if isinstance(per_rank, Sequence) else type(per_rank).__name__
        raise LaunchError(
            f"per_rank needs one tuple of arguments for each of {world_size} ranks; got {count}."
        )
    for rank, values in enumerate(per_rank):
        if not isinstance(values, (tuple, list)):
            raise LaunchError(
                f"per_rank[{rank}] must be a tuple of arguments, such as (x,); "
                f"got {type(values).__name__}."
            )
    return [tuple(values) for values in per_rank]
