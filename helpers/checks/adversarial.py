"""Inside a rank: run answers under adversarial timing, so that a race cannot pass by luck.

    async call -> its tensors hold poison values until wait(); what is sent must stay as it was
    torch.empty -> holds poison values, too, as reused memory may
    time.sleep  -> returns within 3 ms, after a random time on each rank: sleeping does not replace waiting

Only calls from the answer's own lines are treated in this way, because torch's code relies only on what is
guaranteed. gloo reads and writes a copy of a call's tensors, and `wait()` copies the result back.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import equal

from helpers.trace.frames import API, LEARNER, OTHER, code_kind
from helpers.trace.kernels import record_finished_work

# Method of ProcessGroup -> the arguments that gloo writes, and those that it reads.
_METHODS = {
    "send": (None, 0),
    "recv": (0, None),
    "recv_anysource": (0, None),
    "broadcast": (0, 0),
    "allreduce": (0, 0),
    "allreduce_coalesced": (0, 0),
    "reduce": (0, 0),
    "allgather": (0, 1),
    "_allgather_base": (0, 1),
    "all_gather_single": (0, 1),
    "allgather_coalesced": (0, 1),
    "reduce_scatter": (0, 1),
    "_reduce_scatter_base": (0, 1),
    "reduce_scatter_single": (0, 1),
    "gather": (0, 1),
    "scatter": (0, 1),
    "alltoall": (0, 1),
    "alltoall_base": (0, 1),
    "all_to_all_single": (0, 1),
}
# A number that float16 and bfloat16 can represent about equally well.
_SECOND = -1234.0
_POINT_TO_POINT = frozenset({"send", "recv", "recv_anysource"})


class BufferInUse(RuntimeError):
    """A tensor was written to while a transfer still read it, or before a transfer wrote its result there."""


@contextmanager
def adversarial_world(second: bool = False) -> Iterator[None]:
    """Run the answer's calls in the block under adversarial timing. second: see `poison_of`."""
    group, undo = dist.ProcessGroup, []
    for name in filter(functools.partial(hasattr, group), _METHODS):
        undo.append(_replace(group, name, functools.partial(_held_back, second)))
    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        undo.append(_replace(owner, name, functools.partial(_full_of_poison, second)))
    undo.append(_replace(time, "sleep", _at_once))
    try:
        yield
    finally:
        for owner, name, real in undo:
            setattr(owner, name, real)


def _replace(owner: Any, name: str, by: Callable[[str, Any], Any]) -> tuple[Any, str, Any]:
    real = getattr(owner, name)
    setattr(owner, name, functools.wraps(real)(by(name, real)))
    return owner, name, real


def _asked_by_the_answer() -> bool:
    """Return whether the answer's own lines made the current call, perhaps through torch.distributed."""
    frame = sys._getframe(2)
    # torch's own layers, such as DDP's hooks, also call methods of the group, and wait correctly
    while frame is not None and code_kind(frame.f_code) in {API, OTHER}:
        if frame.f_code.co_filename.endswith(_DRIVER):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and code_kind(frame.f_code) is LEARNER


# The check's own calls come from its driver. They are not the answer's, and are not changed.
_DRIVER = os.path.join("checks", "drive.py")
_LONGEST_SLEEP_S = 0.003


def _at_once(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def sleep(seconds: float) -> None:
        if code_kind(sys._getframe(1).f_code) is LEARNER and seconds >= 0:
            # Sleep for a random time on each rank, so that sleeping orders nothing. It is not 0, because
            # a rank that polls would then occupy a core. The kernel's random numbers leave the learner's
            # own as they are.
            real(os.urandom(1)[0] * _LONGEST_SLEEP_S / 255)
        else:
            real(seconds)

    return sleep


def _full_of_poison(second: bool, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def empty(*args: Any, **kwargs: Any) -> Any:
        made = real(*args, **kwargs)
        if code_kind(sys._getframe(1).f_code) is LEARNER and type(made) is torch.Tensor:
            _spoil(made, second)
        return made

    return empty


def poison_of(dtype: torch.dtype, second: bool = False) -> float | int:
    """Return NaN, or the largest whole number. second: a different value, to find what depends on it."""
    if dtype.is_floating_point or dtype.is_complex:
        return _SECOND if second else math.nan
    return torch.iinfo(dtype).max - second


def _spoil(tensor: torch.Tensor, second: bool) -> None:
    with torch.no_grad():
        if tensor.dtype is not torch.bool:  # either value of a bool would look normal
            tensor.fill_(poison_of(tensor.dtype, second))


# --- calls in flight ------------------------------------------------------------------------------


def _held_back(second: bool, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    writes, reads = _METHODS[name]

    def call(group: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not _is_asynchronous(name, args) or not _asked_by_the_answer():
            return real(group, *args, **kwargs)
        in_flight = _InFlightCall(args, writes, reads, second)
        return _DeferredWork(real(group, *in_flight.args), in_flight)

    return call


def _is_asynchronous(name: str, args: tuple[Any, ...]) -> bool:
    return name in _POINT_TO_POINT or bool(getattr(args[-1], "asyncOp", False) if args else False)


_Pairs = list[tuple[torch.Tensor, torch.Tensor]]


class _InFlightCall:
    """The tensors of one call: pairs of the answer's own tensor and gloo's copy of it.

    args: the call's arguments for gloo. home: the pairs whose copy gloo writes.
    """

    def __init__(
        self, args: tuple[Any, ...], writes: int | None, reads: int | None, second: bool
    ) -> None:
        self.args: tuple[Any, ...] = args
        self.home: _Pairs = []
        self._sent: _Pairs = []
        self._versions: list[int] = []
        self._over = False
        places = {place for place in (writes, reads) if place is not None}
        if not all(_may_be_copied(t) for place in places for t in _tensors(args[place])):
            return  # pass this argument to gloo as it is: gloo takes it, or raises its own error
        given = {place: _shadow_copies(args[place]) for place in places}
        self.args = tuple(given.get(place, each) for place, each in enumerate(args))
        pairs: dict[int | None, _Pairs] = {
            place: list(zip(_tensors(args[place]), _tensors(copies), strict=True))
            for place, copies in given.items()
        }
        self.home = pairs.get(writes, [])
        written = [own for own, _ in self.home]
        for own in written:
            _spoil(own, second)
        # read the versions after the poison was written, so that later changes are the answer's own
        self._versions = [_version(own) for own in written]
        # gloo may reduce within the buffer that it reads, so what was passed is kept in a separate copy.
        # A tensor that is only sent needs no such copy, which would count as memory of the answer.
        self._sent = [
            (own, copy if writes is None else copy.clone())
            for own, copy in pairs.get(reads, [])
            if not any(_share(own, other) for other in written)
        ]

    def end(self) -> None:
        """Copy the results back; raise BufferInUse if the call's tensors were changed meanwhile."""
        if self._over:
            return
        self._over = True
        for own, copy in self._sent:
            if not _same_bits(own, copy):
                raise BufferInUse(
                    "a tensor that was passed to a call was changed before wait(): the receiver may "
                    "get old values, new values or a mixture. Wait before you write, or write into a "
                    "different tensor."
                )
        if self._versions != [_version(own) for own, _ in self.home]:
            raise BufferInUse(
                "a tensor that a call writes its result to was changed before wait(): your write "
                "races with the result. Wait before you write."
            )
        with torch.no_grad():
            for own, copy in self.home:
                own.copy_(copy)


def _shadow_copies(given: Any) -> Any:
    """Copy the tensors of one argument, with their lists and strides."""
    if isinstance(given, (list, tuple)):
        return [_shadow_copies(part) for part in given]
    if not isinstance(given, torch.Tensor):
        return given
    with torch.no_grad():
        copy = torch.empty_strided(given.shape, given.stride(), dtype=given.dtype)
        return copy.copy_(given)


def _version(tensor: torch.Tensor) -> int:
    """Return how often a tensor was written to, even NaN over NaN; 0 for a view, which shares its base's
    count."""
    return 0 if tensor._is_view() or tensor.is_inference() else tensor._version


class _DeferredWork(dist.Work):
    """A Work whose result appears when the answer has waited for it, and not before."""

    def __init__(self, work: dist.Work, in_flight: _InFlightCall) -> None:
        super().__init__()
        self._work, self._in_flight = work, in_flight

    def wait(self, timeout: timedelta | None = None) -> bool:
        done = self._work.wait() if timeout is None else self._work.wait(timeout)
        self._in_flight.end()
        return done

    def synchronize(self) -> None:
        self._work.synchronize()
        self._in_flight.end()

    def is_completed(self) -> bool:
        done = self._work.is_completed()
        if done:
            # gloo has written its result, so the recorder may count this as a wait
            record_finished_work(self._work)
            self._in_flight.end()
        return done

    def get_future(self) -> torch.futures.Future[Any]:
        def arrived(future: torch.futures.Future[Any]) -> Any:
            value = future.value()
            record_finished_work(self._work)
            self._in_flight.end()
            # the future holds gloo's copies: return the answer's own tensors in their place
            homes = [own for own, _ in self._in_flight.home]
            return homes if isinstance(value, list) and len(value) == len(homes) else value

        return self._work.get_future().then(arrived)

    def is_success(self) -> bool:
        return self._work.is_success()

    def exception(self) -> Any:
        return self._work.exception()

    def source_rank(self) -> int:
        return self._work.source_rank()

    def _source_rank(self) -> int:
        return self._work._source_rank()

    def result(self) -> list[torch.Tensor]:
        self._in_flight.end()
        return [own for own, _ in self._in_flight.home]


def _tensors(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    if isinstance(given, (list, tuple)):
        return [tensor for part in given for tensor in _tensors(part)]
    return []


def _may_be_copied(tensor: torch.Tensor) -> bool:
    """Return whether a copy can have the same strides: no shared elements, and no gaps."""
    return (
        type(tensor) in {torch.Tensor, torch.nn.Parameter}
        and tensor.layout is torch.strided
        and tensor.is_cpu
        and torch.ops.aten.is_non_overlapping_and_dense(tensor)
    )


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two dense tensors share bytes."""
    (a, b), (c, d) = (
        (t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()) for t in (one, other)
    )
    return a < d and c < b


def _same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Compare bit by bit, so that NaN equals itself."""
    plain = torch.contiguous_format
    bits = [t.detach().flatten().clone(memory_format=plain).view(torch.uint8) for t in (one, other)]
    return equal(*bits)
