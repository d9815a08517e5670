"""The kernels that record every communication call of a rank, including calls made by torch.

    dist.all_reduce ─┐
    funcol, DTensor ─┼─> c10d::allreduce_ (dispatcher) ─> our kernel ─> Backend.allreduce ─> Work
    DDP's reducer ───┘                                        │
                                                      Recorder.issued, .follow

Each `c10d::*` op has a kernel on the dispatch key that every caller passes. The kernel calls the backend's
method directly, because that method releases the GIL. Calling the previous kernel would keep the GIL, which
gloo's threads need to free tensors: that deadlocked one run in seven. The rank server installs the kernels
before forking. The kernels record nothing until a rank sets a recorder.
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

from helpers.trace.c10d_ops import OPS, Op, flatten_tensors, make_argument_reader, make_kernel
from helpers.trace.frames import FrameLine, frame_line, learner_frame
from helpers.trace.recorder import Recorder

# Methods of ProcessGroup that always go through the dispatcher.
_DISPATCHED_METHODS = (
    "allgather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_coalesced",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_single",
    "reduce_scatter_single_coalesced",
    "all_to_all_single",
    "barrier",
)


# Methods of Work by which a rank learns that a call has finished, or obtains a future for its end.
_OTHER_USES = frozenset(
    {"is_completed", "is_success", "get_future", "result", "synchronize", "exception"}
)


@dataclass
class _KernelState:
    """The installed kernels of this process, and its recorder if it is a rank."""

    libraries: dict[str, torch.library.Library] = field(default_factory=dict)
    methods: dict[tuple[type, str], Any] = field(default_factory=dict)
    recorder: Recorder | None = None
    # Set in a process forked by a rank.
    report_child_call: Callable[[str, FrameLine], None] | None = None


_installed = _KernelState()


def install(device_type: str = "cpu") -> None:
    """Install the kernels for tensors on this kind of device, once per process."""
    if device_type in _installed.libraries:
        return
    if not _installed.libraries:
        for op in OPS.values():
            if (
                op.method
                and op.method not in _DISPATCHED_METHODS
                and hasattr(dist.ProcessGroup, op.method)
            ):
                _wrap_method(
                    dist.ProcessGroup, op.method, functools.partial(_bypass_dispatcher, op)
                )
        for name in filter(functools.partial(hasattr, dist.ProcessGroup), _DISPATCHED_METHODS):
            _wrap_method(dist.ProcessGroup, name, _record_work)
        for work in (dist.Work, FakeWork):  # FakeWork overrides `wait`
            _wrap_method(work, "wait", _record_wait)
            for name in _OTHER_USES & vars(work).keys():  # FakeWork overrides only some of them
                _wrap_method(work, name, _record_use)
    library = _installed.libraries[device_type] = torch.library.Library("c10d", "IMPL")  # noqa: TOR901
    # Tensors without memory ("meta") are passed to the backend of the device that they represent.
    device = torch.device("cpu" if device_type == "meta" else device_type)
    key = "Meta" if device_type == "meta" else device_type.upper()
    with warnings.catch_warnings(), _silence_stderr():
        warnings.simplefilter("ignore")  # Overriding kernels is intended.
        for name, op in OPS.items():
            kernel = make_kernel(
                name, op, device, functools.partial(_run_call, op.event_op, device)
            )
            library.impl(name, _disable_compile(kernel), key)


def uninstall() -> None:
    """Remove the kernels, for a rank without recording."""
    # Destroying the overriding library restores torch's kernels.
    for library in _installed.libraries.values():
        library._destroy()
    _installed.libraries.clear()
    for (owner, name), method in _installed.methods.items():
        setattr(owner, name, method)
    _installed.methods.clear()


def record_with(recorder: Recorder) -> None:
    """From now on, pass all calls of this process to `recorder`."""
    _installed.recorder = recorder


def stop_in_child(report: Callable[[str, FrameLine], None]) -> None:
    """Stop recording in a process forked by a rank. `report` receives calls on the rank's groups."""
    if _installed.recorder is not None:
        _installed.recorder.stop_in_child()
        _installed.report_child_call = report


def _active_recorder() -> Recorder | None:
    recorder = _installed.recorder
    return recorder if recorder is not None and recorder.active else None


def _run_call(
    op: str,
    device: torch.device,
    boxed_pg: Any,
    tensors: list[torch.Tensor],
    asynchronous: bool,
    run_on: Callable[[Any], dist.Work | None],
    details: dict[str, Any],
    filled: Any,
) -> Any:
    """Make a call using the backend's method, and record it if this process is a recorded rank."""
    pg = dist.ProcessGroup.unbox(boxed_pg)
    backend = pg._get_backend(device)
    recorder = _active_recorder()
    if recorder is None:
        _report_child_call(op, pg)
        return _box_work(run_on(backend))
    records_values = recorder.records_values
    seq = recorder.record_call(op, pg, tensors, asynchronous=asynchronous, **details)
    if records_values and tensors:
        recorder.record_values(seq, tensors, flatten_tensors(filled))
    # The backend releases the GIL in C++, because gloo's threads need it to free tensors.
    try:
        work = run_on(backend)
    except BaseException as error:
        recorder.record_end(seq, str(error) or type(error).__name__)
        raise
    # An unreferenced Work must be destroyed even if it is recorded, because gloo then drops its transfer.
    recorder.track_work(seq, work, asynchronous)
    return _box_work(work)


def _report_child_call(op: str, pg: dist.ProcessGroup) -> None:
    """Report, in a process forked by a rank, a call that cannot return."""
    recorder = _installed.recorder
    if (
        recorder is not None
        and _installed.report_child_call is not None
        and recorder.is_inherited(pg)
    ):
        frame = learner_frame(sys._getframe(2))
        if frame is not None:
            _installed.report_child_call(op, frame_line(frame))


def _box_work(work: dist.Work | None) -> Any:
    """Return a Work in a form that the dispatcher accepts.

    NCCL returns None for a synchronous call, because the current stream is already in order. The dispatcher
    does not accept None, so a finished Work is returned.
    """
    return (work if work is not None else FakeWork()).boxed()


def _wrap_method(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    _installed.methods[owner, name] = vars(owner)[name]  # getattr's result cannot be bound
    setattr(owner, name, _disable_compile(wrapper(getattr(owner, name))))


def _disable_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Exclude one of our functions, and the functions called by it, from torch.compile.

    torch.compiler.disable does the same, but imports the compiler, which takes a second.
    """
    # dynamo's hook is in C and looks up code objects in a table, so the compiler is not imported.
    eval_frame = torch._C._dynamo.eval_frame
    skip = eval_frame._FrameAction.SKIP
    # This applies to this frame and the frames called from it.
    strategy = eval_frame._FrameExecStrategy(skip, skip)
    eval_frame.set_code_exec_strategy(function.__code__, strategy)
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # not inlined, either
    function._torchdynamo_disable_msg = "it records communication"  # type: ignore[attr-defined]
    return function


def _bypass_dispatcher(op: Op, method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ProcessGroup to call the backend directly if the dispatcher adds nothing.

    Most calls come from Python. The dispatcher would pack each call for our kernel, which would unpack it.
    Then the Work would be packed and unpacked. All this takes four times as long as recording.
    """
    read_arguments = make_argument_reader(op)
    cpu = torch.device("cpu")

    @functools.wraps(method)
    def call(pg: dist.ProcessGroup, *args: Any, **kwargs: Any) -> Any:
        recorder = _active_recorder()
        if recorder is None:
            return method(pg, *args, **kwargs)
        call_arguments = None if kwargs or _needs_dispatcher() else read_arguments(args, pg)
        if call_arguments is None:
            work = method(pg, *args, **kwargs)
            recorder.bind_work(work)
            return work
        tensors, asynchronous, details = call_arguments
        records_values = recorder.records_values
        seq = recorder.record_call(op.event_op, pg, tensors, asynchronous=asynchronous, **details)
        if records_values:
            recorder.record_values(seq, tensors, flatten_tensors(args[0]))
        try:
            work = getattr(pg._get_backend(cpu), op.method)(*args)
        except BaseException as error:
            recorder.record_end(seq, str(error) or type(error).__name__)
            raise
        recorder.track_work(seq, work, asynchronous)
        recorder.bind_work(work)
        return work

    return call


def _needs_dispatcher() -> bool:
    """Return whether a mode or a profiler between Python and the backend needs to see this call."""
    return bool(
        torch._C._len_torch_dispatch_stack()
        or torch._C._autograd._profiler_enabled()
        or torch._C._functorch.peek_interpreter_stack()
    )


def _record_work(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of ProcessGroup to record the Work of each call."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        work = method(*args, **kwargs)
        if (recorder := _active_recorder()) is not None:
            recorder.bind_work(work)
        return work

    return call


def _record_wait(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap Work.wait to record the beginning and the end of a rank's wait."""

    @functools.wraps(method)
    def wait(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        recorder = _active_recorder()
        seq = recorder.seq_of(work) if recorder is not None else None
        if recorder is None or seq is None:
            return method(work, *args, **kwargs)
        # Write the record first, because the wait may never end, and the diagnosis reads it from
        # outside.
        recorder.record_wait(seq, time.monotonic_ns())
        try:
            result = method(work, *args, **kwargs)
        except BaseException as error:
            recorder.record_end(seq, str(error) or type(error).__name__)
            raise
        recorder.record_end(seq, source=_sender_index(work) if recorder.is_from_any(seq) else None)
        return result

    return wait


def _record_use(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of Work that reads its state without waiting, to record this use."""

    @functools.wraps(method)
    def use(work: dist.Work, *args: Any, **kwargs: Any) -> Any:
        result = method(work, *args, **kwargs)
        # An incomplete Work must still be waited for, or asked again.
        if result is not False and (recorder := _active_recorder()) is not None:
            recorder.record_use(work)
        return result

    return use


def record_finished_work(work: dist.Work) -> None:
    """Record that a rank waited for a Work without calling wait(), by using its future or by polling."""
    recorder = _active_recorder()
    seq = recorder.seq_of(work) if recorder is not None else None
    if recorder is not None and seq is not None:
        recorder.record_wait(seq, time.monotonic_ns())
        recorder.record_end(seq)


def _sender_index(work: dist.Work) -> int | None:
    try:
        return int(work._source_rank())
    except (RuntimeError, AttributeError):
        return None


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Hide the C++ warning about overridden kernels, which Python's filters cannot suppress."""
    # No code of the learner is running yet, so no other output can be lost.
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)
