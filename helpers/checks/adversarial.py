"""Inside a rank: run answers under adversarial timing, so that races cannot pass by luck.

    async call -> its tensors hold poison values until wait(); sent tensors must not change
    torch.empty -> also holds poison values, as reused memory might
    time.sleep  -> returns within 3 ms, after a random time on each rank: sleeping cannot replace waiting

Only calls from the answer's lines are treated in this way, because torch's code relies only on guaranteed
behavior. gloo reads and writes a copy of a call's tensors, and `wait()` copies the result back.
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

# Method of ProcessGroup -> the arguments written by gloo, and the arguments read by gloo.
_BUFFER_ARGUMENTS = {
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
_OTHER_POISON = -1234.0
_POINT_TO_POINT = frozenset({"send", "recv", "recv_anysource"})


class BufferInUse(RuntimeError):
    """A tensor was written to while a transfer was reading it, or before a transfer wrote its result."""


@contextmanager
def adversarial_world(other_poison: bool = False) -> Iterator[None]:
    """Run the answer's calls in the block under adversarial timing. other_poison: see `poison_value`."""
    group_class, replaced = dist.ProcessGroup, []
    for name in filter(functools.partial(hasattr, group_class), _BUFFER_ARGUMENTS):
        replaced.append(
            _replace_function(group_class, name, functools.partial(_defer_result, other_poison))
        )
    for owner, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty")):
        replaced.append(
            _replace_function(owner, name, functools.partial(_fill_with_poison, other_poison))
        )
    replaced.append(_replace_function(time, "sleep", _random_sleep))
    try:
        yield
    finally:
        for owner, name, original in replaced:
            setattr(owner, name, original)


def _replace_function(
    owner: Any, name: str, wrapper: Callable[[str, Any], Any]
) -> tuple[Any, str, Any]:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrapper(name, original)))
    return owner, name, original


def _is_called_by_answer() -> bool:
    """Return whether the answer's lines made the current call, perhaps through torch.distributed."""
    frame = sys._getframe(2)
    # torch's layers, such as DDP's hooks, also call methods of the group, and wait correctly
    while frame is not None and code_kind(frame.f_code) in {API, OTHER}:
        if frame.f_code.co_filename.endswith(_DRIVER):
            return False
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and code_kind(frame.f_code) is LEARNER


# Calls from the check's driver are not the answer's calls, so they are not changed.
_DRIVER = os.path.join("checks", "driver.py")
_MAX_SLEEP_S = 0.003


def _random_sleep(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def sleep(seconds: float) -> None:
        if code_kind(sys._getframe(1).f_code) is LEARNER and seconds >= 0:
            # Sleep for a random time on each rank, so that sleeping does not order events. The time is not 0,
            # because a rank that polls would then occupy a core. Using the kernel's random numbers leaves the
            # learner's unchanged.
            original(os.urandom(1)[0] * _MAX_SLEEP_S / 255)
        else:
            original(seconds)

    return sleep


def _fill_with_poison(
    other_poison: bool, name: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    def empty(*args: Any, **kwargs: Any) -> Any:
        tensor = original(*args, **kwargs)
        if code_kind(sys._getframe(1).f_code) is LEARNER and type(tensor) is torch.Tensor:
            _poison(tensor, other_poison)
        return tensor

    return empty


def poison_value(dtype: torch.dtype, other_poison: bool = False) -> float | int:
    """Return NaN or the largest whole number; with `other_poison` a different value, to detect its use."""
    if dtype.is_floating_point or dtype.is_complex:
        return _OTHER_POISON if other_poison else math.nan
    return torch.iinfo(dtype).max - other_poison


def _poison(tensor: torch.Tensor, other_poison: bool) -> None:
    with torch.no_grad():
        if tensor.dtype is not torch.bool:  # both values of a bool would look normal
            tensor.fill_(poison_value(tensor.dtype, other_poison))


# --- calls in flight ------------------------------------------------------------------------------


def _defer_result(
    other_poison: bool, name: str, original: Callable[..., Any]
) -> Callable[..., Any]:
    written_index, read_index = _BUFFER_ARGUMENTS[name]

    def call(group: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs or not _is_asynchronous(name, args) or not _is_called_by_answer():
            return original(group, *args, **kwargs)
        in_flight = _InFlightCall(args, written_index, read_index, other_poison)
        return _DeferredWork(original(group, *in_flight.args), in_flight)

    return call


def _is_asynchronous(name: str, args: tuple[Any, ...]) -> bool:
    return name in _POINT_TO_POINT or bool(getattr(args[-1], "asyncOp", False) if args else False)


_TensorPairs = list[tuple[torch.Tensor, torch.Tensor]]


class _InFlightCall:
    """The tensors of one call: pairs of the answer's tensor and gloo's copy.

    args: the call's arguments for gloo. written_pairs: pairs whose copy is written by gloo. read_pairs: pairs
    whose copy is read by gloo.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        written_index: int | None,
        read_index: int | None,
        other_poison: bool,
    ) -> None:
        self.args: tuple[Any, ...] = args
        self.written_pairs: _TensorPairs = []
        self.read_pairs: _TensorPairs = []
        self._write_counts: list[int] = []
        self._is_finished = False
        indices = {index for index in (written_index, read_index) if index is not None}
        if not all(
            _is_copyable(tensor) for index in indices for tensor in _tensors_in(args[index])
        ):
            return  # pass this argument to gloo unchanged: gloo accepts it, or raises an error
        copied_args = {index: _copy_tensors(args[index]) for index in indices}
        self.args = tuple(copied_args.get(index, arg) for index, arg in enumerate(args))
        pairs: dict[int | None, _TensorPairs] = {
            index: list(zip(_tensors_in(args[index]), _tensors_in(copies), strict=True))
            for index, copies in copied_args.items()
        }
        self.written_pairs = pairs.get(written_index, [])
        written = [original for original, _ in self.written_pairs]
        for original in written:
            _poison(original, other_poison)
        # read the versions after the poison was written, so that any later change was made by the answer
        self._write_counts = [_write_count(original) for original in written]
        # gloo may reduce within the buffer that it reads, so the original values are kept in a separate copy.
        # A tensor that is only sent needs no separate copy, which would count as the answer's memory.
        self.read_pairs = [
            (original, copy if written_index is None else copy.clone())
            for original, copy in pairs.get(read_index, [])
            if not any(_shares_memory(original, other) for other in written)
        ]

    def end(self) -> None:
        """Copy the results back; raise BufferInUse if the call's tensors were changed meanwhile."""
        if self._is_finished:
            return
        self._is_finished = True
        for original, copy in self.read_pairs:
            if not _has_same_bits(original, copy):
                raise BufferInUse(
                    "a tensor that was passed to a call was changed before wait(): the receiver may "
                    "get old values, new values or a mixture. Wait before you write, or write into a "
                    "different tensor."
                )
        if self._write_counts != [_write_count(original) for original, _ in self.written_pairs]:
            raise BufferInUse(
                "a tensor that a call writes its result to was changed before wait(): your write "
                "races with the result. Wait before you write."
            )
        with torch.no_grad():
            for original, copy in self.written_pairs:
                original.copy_(copy)


def _copy_tensors(argument: Any) -> Any:
    """Copy the tensors of one argument, with their lists and strides."""
    if isinstance(argument, (list, tuple)):
        return [_copy_tensors(part) for part in argument]
    if not isinstance(argument, torch.Tensor):
        return argument
    with torch.no_grad():
        copy = torch.empty_strided(argument.shape, argument.stride(), dtype=argument.dtype)
        return copy.copy_(argument)


def _write_count(tensor: torch.Tensor) -> int:
    """Return the number of writes to a tensor, even of NaN over NaN; 0 for views, whose bases count."""
    return 0 if tensor._is_view() or tensor.is_inference() else tensor._version


class _DeferredWork(dist.Work):
    """A Work whose result appears only after the answer has waited for it."""

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
        def finish_call(future: torch.futures.Future[Any]) -> Any:
            value = future.value()
            record_finished_work(self._work)
            self._in_flight.end()
            # the future holds gloo's copies: return the answer's tensors instead
            results = [original for original, _ in self._in_flight.written_pairs]
            return results if isinstance(value, list) and len(value) == len(results) else value

        return self._work.get_future().then(finish_call)

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
        return [original for original, _ in self._in_flight.written_pairs]


def _tensors_in(argument: Any) -> list[torch.Tensor]:
    if isinstance(argument, torch.Tensor):
        return [argument]
    if isinstance(argument, (list, tuple)):
        return [tensor for part in argument for tensor in _tensors_in(part)]
    return []


def _is_copyable(tensor: torch.Tensor) -> bool:
    """Return whether a copy can have the same strides: there are no shared elements and no gaps."""
    return (
        type(tensor) in {torch.Tensor, torch.nn.Parameter}
        and tensor.layout is torch.strided
        and tensor.is_cpu
        and torch.ops.aten.is_non_overlapping_and_dense(tensor)
    )


def _shares_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two dense tensors share bytes."""
    (start, end), (other_start, other_end) = (
        (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
        for tensor in (one, other)
    )
    return start < other_end and other_start < end


def _has_same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Compare bit by bit, so that NaN equals itself."""
    contiguous = torch.contiguous_format
    bits = [
        tensor.detach().flatten().clone(memory_format=contiguous).view(torch.uint8)
        for tensor in (one, other)
    ]
    return equal(*bits)
