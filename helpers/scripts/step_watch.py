"""Record a training script's first steps in a rank, and stop the script after them.

    optimizer.step  (hook)   -> parameters, gradients, learning rates
    module.forward  (hook)   -> inputs of the outermost module
    recorder        (calls)  -> reduced gradients, tensors changed in flight
    DataLoader, clip_grad_norm_, load_state_dict (wrapped)

This module changes no values and makes no communication calls.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from helpers.ranks.rank_context import current_recorder
from helpers.scripts.step_records import (
    SHARDED,
    InputRecord,
    Line,
    LoadRecord,
    ParameterRecord,
    Sighting,
    StepRecord,
    StopAfterSteps,
    TensorDigest,
    Writer,
)
from helpers.trace.frames import LEARNER, TORCH, code_kind, frame_line, learner_frame

if TYPE_CHECKING:
    from helpers.trace.recorder import Recorder

_REDUCTIONS = frozenset({"all_reduce", "reduce", "reduce_scatter"})
_PARTS = 8
_MAX_PARAMETERS = 2_000
_MAX_INPUTS = 64
_MAX_ROWS = 64
# Tensors with fewer elements, such as losses and counters, count as results, not as parts of the model.
_MIN_ELEMENTS = 17
# Rows with fewer numbers may be equal by chance.
_MIN_ROW_ELEMENTS = 4


@dataclass
class _Watched:
    """The facts known about one optimizer."""

    number: int
    kind: str
    optimizer: weakref.ref[Any]
    steps: int = 0
    line: Line | None = None
    # Number of calls made by the rank before the last step of the optimizer, and before the previous step.
    seen_calls: int = 0
    seen_before: int = 0


@dataclass
class _Flight:
    """An asynchronous call made directly by the script: its tensors, and their versions after the call.

    own_changes: the number of times that the call itself may change each tensor.
    """

    call: str
    line: Line | None
    tensors: list[tuple[weakref.ref[torch.Tensor], int]]
    own_changes: int = 0


@dataclass
class _Call:
    """A call made directly by the script.

    spans: the memory of its tensors. is_large: whether they may be activations. has_met: whether they were
    recognized as parameters or gradients.
    """

    op: str
    group: str
    ranks: list[int]
    spans: list[tuple[int, int]]
    tensors: list[torch.Tensor]
    is_large: bool
    line: Line | None
    has_met: bool = False


@dataclass
class StepWatch:
    """Watches one rank. max_steps: a rank is stopped if an optimizer begins a later step."""

    writer: Writer
    max_steps: int
    _optimizers: dict[int, _Watched] = field(default_factory=dict)
    _count: int = 0
    _steps_taken: int = 0
    _optimizer_depth: int = 0
    _module_depth: int = 0
    _input_count: int = 0
    # Whether loaders are in their first pass. In later passes, they may also return other ranks' samples.
    _is_first_pass: bool = False
    _is_later_pass: bool = False
    _communicates: bool = False
    # Whether the script called torch.distributed itself, or split its samples among ranks.
    _cooperates: bool = False
    _is_finished: bool = False
    # Calls made by the script itself that at least one optimizer has not processed yet, and the number of
    # earlier calls, which were dropped.
    _calls: list[_Call] = field(default_factory=list)
    _dropped_calls: int = 0
    # (id of a parameter, group) -> number of reductions of its gradient since its optimizer's last step.
    _reductions: dict[tuple[int, str], int] = field(default_factory=dict)
    _reduced_at: Line | None = None
    # Parameters passed to a call, or whose gradients were passed to a call, and the ranks of these calls.
    _met: dict[int, set[int]] = field(default_factory=dict)
    _clipped: dict[int, Line | None] = field(default_factory=dict)
    _flights: dict[int, _Flight] = field(default_factory=dict)
    _last_flight: int | None = None
    _seen: set[tuple[Any, ...]] = field(default_factory=set)

    # Installing

    def install(self) -> None:
        """Set all hooks in this process. Call it before the script runs."""
        from torch.nn.modules import module as modules
        from torch.optim import optimizer as optimizers

        optimizers.register_optimizer_step_pre_hook(self._before_step)
        optimizers.register_optimizer_step_post_hook(self._after_step)
        modules.register_module_forward_pre_hook(self._before_forward)
        modules.register_module_forward_hook(self._after_forward, always_call=True)
        self._wrap_functions()
        if (recorder := current_recorder()) is not None:
            self._watch_calls(recorder)

    def _wrap_functions(self) -> None:
        import torch.utils.data

        clip_module = sys.modules["torch.nn.utils.clip_grad"]
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            wrapped = self._note_clipping(getattr(clip_module, name))
            for owner in (clip_module, torch.nn.utils):
                setattr(owner, name, wrapped)
        loader, load = torch.utils.data.DataLoader, torch.nn.Module.load_state_dict
        iterate = loader.__iter__
        passes: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()

        @functools.wraps(iterate)
        def iterate_and_note(this: Any) -> Any:
            self._note_pass(this, passes)
            return iterate(this)

        @functools.wraps(load)
        def load_and_note(this: Any, *args: Any, **kwargs: Any) -> Any:
            self.writer.write(load=LoadRecord(_line(), self._steps_taken))
            return load(this, *args, **kwargs)

        setattr(loader, "__iter__", iterate_and_note)  # noqa: B010 (mypy knows their types)
        setattr(torch.nn.Module, "load_state_dict", load_and_note)  # noqa: B010

    # Optimizers

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._optimizer_depth += 1
        if self._optimizer_depth > 1:
            return  # an optimizer used inside another one, as in ZeroRedundancyOptimizer
        watched = self._optimizers.get(id(optimizer))
        # An optimizer may have the id of a destroyed one.
        if watched is None or watched.optimizer() is not optimizer:
            watched = _Watched(self._count, type(optimizer).__name__, weakref.ref(optimizer))
            self._count += 1
            self._optimizers[id(optimizer)] = watched
        watched.line = _line()
        if watched.steps >= self.max_steps:
            self._optimizer_depth = 0
            self.finish(
                stopped=True
            )  # do this now, because the exception destroys the script's local variables
            raise StopAfterSteps
        self._write_step(watched, optimizer, with_gradients=True)
        watched.steps += 1

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._optimizer_depth = max(0, self._optimizer_depth - 1)
        if self._optimizer_depth == 0:
            self._steps_taken += 1
            self._clipped.clear()
            # Keep a call for two steps of each optimizer, because a second optimizer may not be known yet.
            oldest = min(watched.seen_before for watched in self._optimizers.values())
            self._drop_calls(oldest - self._dropped_calls)

    def _drop_calls(self, count: int) -> None:
        old, self._calls = self._calls[:count], self._calls[count:]
        self._dropped_calls += len(old)
        self._communicates |= any(call.is_large and not call.has_met for call in old)

    def finish(self, stopped: bool) -> None:
        """Write the state at the end of the steps, or of the script. Only the first call counts."""
        if self._is_finished:
            return
        self._is_finished = True
        if (recorder := current_recorder()) is not None:
            for seq in sorted(recorder.take_unwaited()):
                if (flight := self._flights.get(seq)) is not None:
                    self._sight("never waited", flight.line, flight.call)
        for watched in self._optimizers.values():
            if (optimizer := watched.optimizer()) is not None:
                self._write_step(watched, optimizer, with_gradients=False)
        self._drop_calls(len(self._calls))
        self.writer.write(stopped=stopped)
        self.writer.write(communicates=self._communicates)
        self.writer.write(cooperates=self._cooperates)

    def _write_step(self, watched: _Watched, optimizer: Any, with_gradients: bool) -> None:
        owners, found = _find_owners(), _parameters(optimizer)
        size = sum(p.numel() for p in found if p.grad is not None)
        self._reductions.clear()
        for call in self._calls[max(0, watched.seen_calls - self._dropped_calls) :]:
            self._note_meetings(call, found, size)
        watched.seen_before = watched.seen_calls
        watched.seen_calls = self._dropped_calls + len(self._calls)
        parameters = [
            self._parameter(parameter, i, owners, with_gradients)
            for i, parameter in enumerate(found)
        ]
        rates = [float(group.get("lr") or 0.0) for group in optimizer.param_groups]
        self.writer.write(
            step=StepRecord(
                watched.number,
                watched.kind,
                watched.steps,
                watched.line,
                parameters,
                rates,
                self._reduced_at,
                is_last=not with_gradients,
            )
        )

    def _note_meetings(self, call: _Call, parameters: Sequence[torch.Tensor], size: int) -> None:
        """Record the parameters that the script passed directly to a call, or whose gradients it passed."""
        has_met = False
        for parameter in parameters:
            for tensor, is_gradient in ((parameter, False), (parameter.grad, True)):
                start = _span(tensor)[0]
                if start and any(first <= start < end for first, end in call.spans):
                    has_met = True
                    self._met.setdefault(id(parameter), set()).update(call.ranks)
                    if is_gradient and call.op in _REDUCTIONS:
                        key = id(parameter), call.group
                        self._reductions[key] = self._reductions.get(key, 0) + 1
                        self._reduced_at = call.line
        if not has_met and size and any(tensor.numel() == size for tensor in call.tensors):
            has_met = True  # all gradients in one flat tensor
            for parameter in parameters:
                self._met.setdefault(id(parameter), set()).update(call.ranks)
        call.has_met |= has_met

    def _parameter(
        self, parameter: torch.Tensor, index: int, owners: _Owners, with_gradients: bool
    ) -> ParameterRecord:
        local, key = _local(parameter)
        gradient = parameter.grad if with_gradients else None
        counts = [n for (owner, _), n in self._reductions.items() if owner == id(parameter)]
        return ParameterRecord(
            owners.names.get(id(parameter), f"parameter {index}"),
            list(local.shape),
            _digest(local),
            _digest(_local(gradient)[0]) if gradient is not None else None,
            SHARDED if id(parameter) in owners.sharded else key,
            owners.ddp.get(id(parameter), []),
            max(counts, default=0),
            sorted(self._met.get(id(parameter), ())),
        )

    # Inputs

    def _before_forward(self, module: torch.nn.Module, args: Any) -> None:
        self._module_depth += 1
        if (
            self._module_depth > 1
            or not (module.training and torch.is_grad_enabled())
            or self._input_count >= _MAX_INPUTS
            or torch.compiler.is_compiling()
        ):
            return
        tensors = [value for value in _flatten(args) if isinstance(value, torch.Tensor)]
        if not tensors or _is_constant(tensors[0]):
            return
        self._input_count += 1
        rows = _row_hashes(tensors[0]) if self._is_first_pass else []
        record = InputRecord(
            type(module).__name__,
            _line(),
            self._steps_taken,
            "".join(_hash(tensor) for tensor in tensors[:4]),
            rows,
            _data_group(module),
        )
        self.writer.write(input=record)

    def _after_forward(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self._module_depth = max(0, self._module_depth - 1)

    def _note_pass(self, loader: Any, passes: Any) -> None:
        """Record that a loader begins a pass, and whether its sampler's epoch was set."""
        sampler = loader.sampler
        is_distributed = isinstance(sampler, torch.utils.data.DistributedSampler)
        self._cooperates |= is_distributed
        epoch = int(getattr(sampler, "epoch", 0))
        before = passes.get(loader)
        passes[loader] = epoch, self._steps_taken
        if before is None or before[1] == self._steps_taken:
            self._is_first_pass = not self._is_later_pass
            return
        self._is_first_pass, self._is_later_pass = False, True
        if is_distributed and sampler.shuffle and before[0] == epoch:
            self._sight("same order", _line(), f"in epoch {epoch}")

    # Calls

    def _note_clipping(self, clip: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(clip)
        def clip_and_note(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)
            line = _line()
            for parameter in [parameters] if isinstance(parameters, torch.Tensor) else parameters:
                if start := _span(parameter.grad)[0]:
                    self._clipped[start] = line
            return clip(parameters, *args, **kwargs)

        return clip_and_note

    def _watch_calls(self, recorder: Recorder) -> None:
        """Watch each call seen by the recorder."""
        record_call, bind_work = recorder.record_call, recorder.bind_work
        record_wait = recorder.record_wait

        def call(op: str, pg: Any, tensors: list[torch.Tensor], **details: Any) -> int:
            seq = record_call(op, pg, tensors, **details)
            self._note_call(seq, op, pg, tensors, str(details.get("reduce_op", "")))
            return seq

        def bind(work: Any) -> None:
            bind_work(work)
            self._note_flight()

        def wait(seq: int, when_ns: int) -> None:
            self._note_landing(seq)
            record_wait(seq, when_ns)

        vars(recorder).update(record_call=call, bind_work=bind, record_wait=wait)

    def _note_call(
        self, seq: int, op: str, pg: Any, tensors: list[torch.Tensor], reduce_op: str
    ) -> None:
        line, is_own = _calling_line()
        self._last_flight = None
        if not is_own:
            # Stages of a pipeline send activations, even if a library makes the calls.
            self._communicates |= op in {"send", "recv"}
            return
        spans = [span for tensor in tensors if (span := _span(tensor))[0]]
        is_large = any(t.numel() >= _MIN_ELEMENTS and t.is_floating_point() for t in tensors)
        self._cooperates = True
        # Keep the tensors until the step, because a gradient could later reuse the memory of a freed tensor.
        ranks = list(dist.get_process_group_ranks(pg))
        self._calls.append(_Call(op, pg.group_name, ranks, spans, list(tensors), is_large, line))
        found = [(weakref.ref(tensor), 0) for tensor in tensors]
        # For AVG, gloo's thread divides the sum in place, which raises the version at any time. So a single
        # change by the script looks like gloo's.
        self._flights[seq] = _Flight(op, line, found, own_changes=int(reduce_op == "AVG"))
        self._last_flight = seq
        if op in _REDUCTIONS:
            for start, clipped_at in self._clipped.items():
                if any(first <= start < end for first, end in spans):
                    self._sight("clipped before", clipped_at, op, line)
                    break

    def _note_flight(self) -> None:
        """Record the versions of a call's tensors after the call has returned."""
        if self._last_flight is None:
            return
        flight = self._flights[self._last_flight]
        flight.tensors = [
            (ref, version) for ref, _ in flight.tensors if (version := _version(ref())) is not None
        ]
        self._last_flight = None

    def _note_landing(self, seq: int) -> None:
        """Compare the versions of a call's tensors when the rank begins to wait for it."""
        flight = self._flights.pop(seq, None)
        for ref, version in (
            flight.tensors if flight is not None and seq != self._last_flight else ()
        ):
            now = _version(ref())
            if flight is not None and now is not None and now > version + flight.own_changes:
                self._sight("changed in flight", flight.line, flight.call, _line())

    def _sight(
        self, kind: str, line: Line | None, words: str, other_line: Line | None = None
    ) -> None:
        """Write a fault seen by this rank, once for each line."""
        if (kind, line, other_line) not in self._seen:
            self._seen.add((kind, line, other_line))
            self.writer.write(sighting=Sighting(kind, line, words, other_line))


# Facts about tensors and modules


def _line() -> Line | None:
    frame = learner_frame(sys._getframe(2))
    return frame_line(frame) if frame is not None else None


def _calling_line() -> tuple[Line | None, bool]:
    """Return the script's line that led to a call, and whether it called torch.distributed directly."""
    frame, is_own = sys._getframe(2), True
    while frame is not None and (kind := code_kind(frame.f_code)) is not LEARNER:
        is_own &= kind is not TORCH
        frame = frame.f_back  # type: ignore[assignment]
    return (frame_line(frame), is_own) if frame is not None else (None, False)


def _local(tensor: Any) -> tuple[torch.Tensor, str]:
    """Return this rank's part of a tensor, and a key for the ranks with the same part: "" for all ranks."""
    if not hasattr(tensor, "placements"):
        return tensor, ""
    mesh, coordinate = tensor.device_mesh, tensor.device_mesh.get_coordinate()
    parts = [
        (dim, coordinate[dim])
        for dim, placement in enumerate(tensor.placements)
        if not placement.is_replicate()
    ]
    whole_mesh = mesh.mesh.flatten().tolist()
    return tensor.to_local(), f"{parts} of {whole_mesh}" if parts else ""


def _digest(tensor: torch.Tensor) -> TensorDigest:
    with torch.no_grad():
        plain = tensor.detach()
        if plain.is_sparse:
            plain = plain.to_dense()
        flat = plain.reshape(-1)
        numbers = flat.to(torch.float64) if not flat.is_complex() else flat.abs().double()
        parts = numbers.tensor_split(min(_PARTS, max(1, len(numbers))))
        precision = torch.finfo(flat.dtype).eps if flat.is_floating_point() else 0.0
        return TensorDigest(
            _hash(flat),
            [float(part.sum()) for part in parts],
            [float(part.abs().sum()) for part in parts],
            len(parts[0]),
            precision,
        )


def _hash(tensor: torch.Tensor) -> str:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _is_constant(tensor: torch.Tensor) -> bool:
    """Return whether all elements are equal, as in tensors that replace samples in a test or a benchmark."""
    flat = tensor.detach().reshape(-1)
    return not len(flat) or bool((flat == flat[0]).all())


def _row_hashes(tensor: torch.Tensor) -> list[str]:
    if tensor.dim() < 2 or not tensor.numel() or tensor[0].numel() < _MIN_ROW_ELEMENTS:
        return []
    if not tensor.is_floating_point():
        return []  # rows of token ids repeat in ordinary text
    return [_hash(row) for row in tensor[:_MAX_ROWS]]


def _span(tensor: torch.Tensor | None) -> tuple[int, int]:
    """Return the beginning and the end of a tensor's memory; zeros if it has no memory."""
    if tensor is None:
        return 0, 0
    try:
        local = _local(tensor)[0]
        start = local.data_ptr()
        return start, start + local.numel() * local.element_size()
    except RuntimeError:
        return 0, 0


def _version(tensor: torch.Tensor | None) -> int | None:
    try:
        return None if tensor is None else tensor._version
    except RuntimeError:  # a tensor of inference mode has no version
        return None


def _flatten(values: Any) -> Iterator[Any]:
    for value in values.values() if isinstance(values, dict) else values:
        if isinstance(value, dict | list | tuple):
            yield from _flatten(value)
        else:
            yield value


def _parameters(optimizer: Any) -> list[torch.Tensor]:
    found = [p for group in optimizer.param_groups for p in group["params"]]
    return found[:_MAX_PARAMETERS]


@dataclass(frozen=True)
class _Owners:
    """For each parameter's id, its name, the ranks among which DDP reduces it, and whether FSDP splits it."""

    names: dict[int, str]
    ddp: dict[int, list[int]]
    sharded: set[int]


def _find_owners() -> _Owners:
    """Collect the data of `_Owners` from all modules of the process."""
    owners = _Owners({}, {}, set())
    modules = [value for value in gc.get_objects() if issubclass(type(value), torch.nn.Module)]
    for module in modules:
        is_ddp, is_fsdp = _is_ddp(module), type(module).__name__ == "FullyShardedDataParallel"
        ranks = _ranks_of(module) if is_ddp else []
        for name, parameter in module.named_parameters():
            known = owners.names.get(id(parameter), "")
            name = name.removeprefix("module.")
            if len(name) > len(known):
                owners.names[id(parameter)] = name
            if is_ddp:
                owners.ddp[id(parameter)] = ranks
            if is_fsdp or type(parameter).__name__ == "FlatParameter":
                owners.sharded.add(id(parameter))
    return owners


_known_ranks: weakref.WeakKeyDictionary[torch.nn.Module, list[int]] = weakref.WeakKeyDictionary()


def _ranks_of(module: Any) -> list[int]:
    """Return the ranks of a wrapper's group, even if the group has been destroyed meanwhile."""
    if module not in _known_ranks:
        try:
            _known_ranks[module] = list(dist.get_process_group_ranks(module.process_group))
        except (KeyError, ValueError, RuntimeError):
            return []
    return _known_ranks[module]


def _is_ddp(module: torch.nn.Module) -> bool:
    return isinstance(module, torch.nn.parallel.DistributedDataParallel)


def _data_group(module: Any) -> list[int]:
    """Return the ranks among which torch reduces a module's gradients, each rank having different data."""
    if _is_ddp(module) or type(module).__name__ == "FullyShardedDataParallel":
        return _ranks_of(module)
    if any(each.__name__ == "FSDPModule" for each in type(module).__mro__):
        meshes = [p.device_mesh for p in module.parameters() if hasattr(p, "device_mesh")]
        if meshes and all(mesh.ndim == 1 for mesh in meshes):
            return [int(rank) for rank in meshes[0].mesh.flatten()]
    return []
