"""The kernels that every communication call of a rank passes, also those that torch makes.

    dist.all_reduce ─┐
    funcol, DTensor ─┼─> c10d::allreduce_ (dispatcher) ─> our kernel ─> Backend.allreduce ─> Work
    DDP's reducer ───┘                                        │
                                                      Recorder.issued, .follow

A kernel for each `c10d::*` op sits on the dispatch key where every caller passes, and calls the
backend's method itself. That method gives up the GIL; calling the kernel that was there before
would keep it, and gloo's own threads need it to free tensors: a deadlock that shows in one run in
seven. The rank server installs them before it forks; they do nothing until a rank sets a recorder.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeWork

from helpers.trace.c10d_ops import OPS, Op, flat, kernel_for, plain_call
from helpers.trace.frames import At, learner_frame, place
from helpers.trace.recorder import Recorder

# Methods of ProcessGroup that always take the long way through the dispatcher.
_OTHERS = (
    "allgather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "all_to_all_single",
    "barrier",
)


@dataclass
class _Installed:
    """What is in place in this process, and the recorder of the rank that it is, if it is one."""

    libraries: dict[str, torch.library.Library] = field(default_factory=dict)
    methods: dict[tuple[type, str], Any] = field(default_factory=dict)
    recorder: Recorder | None = None
    # Set in a process that a rank has forked.
    tell_of_child: Callable[[str, At], None] | None = None


_installed = _Installed()


def install(device_type: str = "cpu") -> None:
    """Put the kernels for tensors on this kind of device in place, once in a process."""
    if device_type in _installed.libraries:
        return
    if not _installed.libraries:
        for op in OPS.values():
            if op.method and op.method not in _OTHERS and hasattr(dist.ProcessGroup, op.method):
                _wrap(dist.ProcessGroup, op.method, functools.partial(_straight, op))
        for name in filter(functools.partial(hasattr, dist.ProcessGroup), _OTHERS):
            _wrap(dist.ProcessGroup, name, _binding)
        for work in (dist.Work, FakeWork):  # which has a `wait` of its own
            _wrap(work, "wait", _waiting)
    library = _installed.libraries[device_type] = torch.library.Library("c10d", "IMPL")  # noqa: TOR901
    # tensors without memory ("meta") go to the backend of those that they stand for
    device = torch.device("cpu" if device_type == "meta" else device_type)
    key = "Meta" if device_type == "meta" else device_type.upper()
    with warnings.catch_warnings(), _quiet_stderr():
        warnings.simplefilter("ignore")  # that we override kernels is the purpose
        for name, op in OPS.items():
            kernel = kernel_for(name, op, device, functools.partial(_run, op.records, device))
            library.impl(name, _uncompiled(kernel), key)


def uninstall() -> None:
    """Take the kernels away again, for a rank that is not to be recorded."""
    # torch's own kernels come back when the library that overrides them is destroyed.
    for library in _installed.libraries.values():
        library._destroy()
    _installed.libraries.clear()
    for (owner, name), method in _installed.methods.items():
        setattr(owner, name, method)
    _installed.methods.clear()


def record_with(recorder: Recorder) -> None:
    """Give all calls of this process, from now on, to `recorder`."""
    _installed.recorder = recorder


def stop_in_child(tell: Callable[[str, At], None]) -> None:
    """Record nothing more in this process, which a rank has forked; `tell` it of calls on its groups."""
    if _installed.recorder is not None:
        _installed.recorder.stop_in_child()
        _installed.tell_of_child = tell


def _active() -> Recorder | None:
    recorder = _installed.recorder
    return recorder if recorder is not None and recorder.active else None


def _run(
    op: str,
    device: torch.device,
    boxed_pg: Any,
    tensors: list[torch.Tensor],
    asynchronous: bool,
    do: Callable[[Any], dist.Work | None],
    about: dict[str, Any],
    fills: Any,
) -> Any:
    """Make a call by the backend's own method; record it if this process is a rank that records."""
    pg = dist.ProcessGroup.unbox(boxed_pg)
    backend = pg._get_backend(device)
    recorder = _active()
    if recorder is None:
        _tell_of_child(op, pg)
        return _boxed(do(backend))
    looks = recorder.looks
    seq = recorder.issued(op, pg, tensors, asynchronous=asynchronous, **about)
    if looks and tensors:
        recorder.look(seq, tensors, flat(fills))
    # From here the GIL is given up, in C++: gloo's threads need it to free tensors.
    try:
        work = do(backend)
    except BaseException as error:
        recorder.ended(seq, str(error) or type(error).__name__)
        raise
    # A Work that nobody keeps must be dropped, recorded or not: gloo then takes its transfer along.
    recorder.follow(seq, work, asynchronous)
    return _boxed(work)


def _tell_of_child(op: str, pg: dist.ProcessGroup) -> None:
    """Tell the rank that a process which it has forked makes a call that cannot return."""
    recorder = _installed.recorder
    if recorder is not None and _installed.tell_of_child is not None and recorder.is_inherited(pg):
        frame = learner_frame(sys._getframe(2))
        if frame is not None:
            _installed.tell_of_child(op, place(frame))


def _boxed(work: dist.Work | None) -> Any:
    """Return a Work as the dispatcher takes it.

    NCCL has none for a call that nobody waits for: the current stream is already in order. The dispatcher
    does not take None, so it gets a Work that is done.
    """
    return (work if work is not None else FakeWork()).boxed()


def _wrap(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    _installed.methods[owner, name] = vars(owner)[name]  # getattr would give what no longer binds
    setattr(owner, name, _uncompiled(wrapper(getattr(owner, name))))


def _uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep torch.compile off a function of ours, and off all that it calls: it runs as it is.

    As torch.compiler.disable does, which would import the compiler, a second's work, to do it.
    """
    # dynamo's hook is in C, and asks a table by code object: no module of the compiler is needed for it.
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    strategy = frames._FrameExecStrategy(skip, skip)  # this frame, and those below it
    frames.set_code_exec_strategy(function.__code__, strategy)
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # not inlined, either
    function._torchdynamo_disable_msg = "it records communication"  # type: ignore[attr-defined]
    return function


def _straight(op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ProcessGroup: ask the backend at once where the dispatcher would only hand on.

    Python's own calls are the most. On the long way each would be packed for the dispatcher, unpacked for
    our kernel, its Work packed and unpacked again: four times what recording takes.
    """
    read = plain_call(op)
    cpu = torch.device("cpu")

    @functools.wraps(method)
    def call(pg: dist.ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        recorder = _active()
        if recorder is None:
            return method(pg, *args, **kwargs)
        given = None if kwargs or _dispatcher_matters() else read(args, pg)
        if given is None:
            work = method(pg, *args, **kwargs)
            recorder.bind(work)
            return work
        tensors, asynchronous, about = given
        looks = recorder.looks
        seq = recorder.issued(op.records, pg, tensors, asynchronous=asynchronous, **about)
        if looks:
            recorder.look(seq, tensors, flat(args[0]))
        try:
            work = getattr(pg._get_backend(cpu), op.method)(*args)
        except BaseException as error:
            recorder.ended(seq, str(error) or type(error).__name__)
            raise
        recorder.follow(seq, work, asynchronous)
        recorder.bind(work)
        return work

    return call


def _dispatcher_matters() -> bool:
    """Tell whether somebody between Python and the backend waits for this call: a mode, a profiler."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._autograd._profiler_enabled()
        or torch._C._functorch.peek_interpreter_stack()
    )


def _binding(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ProcessGroup, to learn which Work belongs to which call."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        work = method(*args, **kwargs)
        if (recorder := _active()) is not None:
            recorder.bind(work)
        return work

    return call


def _waiting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap Work.wait, to learn when a rank begins to wait and when it need wait no longer."""

    @functools.wraps(method)
    def wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        recorder = _active()
        seq = recorder.seq_of(work) if recorder is not None else None
        if recorder is None or seq is None:
            return method(work, *args, **kwargs)
        # Written before the wait, which may never end: the diagnosis reads it from outside.
        recorder.waits(seq, time.monotonic_ns())
        try:
            result = method(work, *args, **kwargs)
        except BaseException as error:
            recorder.ended(seq, str(error) or type(error).__name__)
            raise
        recorder.ended(seq, source=_source_of(work) if recorder.is_from_any(seq) else None)
        return result

    return wait


def waited(work: dist.Work) -> None:
    """Record that somebody has waited for a Work otherwise than by its wait(): by its future, by asking."""
    recorder = _active()
    seq = recorder.seq_of(work) if recorder is not None else None
    if recorder is not None and seq is not None:
        recorder.waits(seq, time.monotonic_ns())
        recorder.ended(seq)


def _source_of(work: dist.Work) -> int | None:
    try:
        return int(work._source_rank())
    except (RuntimeError, AttributeError):
        return None


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Hide C++'s own warning about overridden kernels, which no Python filter reaches."""
    # Nothing of the learner's runs yet, so nothing else that is printed can get lost meanwhile.
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
