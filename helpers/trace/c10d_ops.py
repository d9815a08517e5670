"""A table of the `c10d::*` ops, with each op's recorded arguments and the backend's method that it calls.

torch's kernels (torch/csrc/distributed/c10d/Ops.cpp) all have the same structure: they find the backend for
the device, put the numbers into an options object, and call one method. So a single function creates all of
our kernels from this table and the names in each op's schema.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d


@dataclass(frozen=True)
class Op:
    """One op. event_op: the event's op. method: the backend's method. options: the last argument's class."""

    event_op: str
    method: str
    options: type | None = None


_OPS = {
    "send": Op("send", "send"),
    "recv_": Op("recv", "recv"),
    "recv_any_source_": Op("recv", "recv_anysource"),
    "broadcast_": Op("broadcast", "broadcast", c10d.BroadcastOptions),
    "allreduce_": Op("all_reduce", "allreduce", c10d.AllreduceOptions),
    "allreduce_coalesced_": Op("all_reduce", "allreduce_coalesced", c10d.AllreduceCoalescedOptions),
    "reduce_": Op("reduce", "reduce", c10d.ReduceOptions),
    "allgather_": Op("all_gather", "allgather", c10d.AllgatherOptions),
    "_allgather_base_": Op("all_gather", "_allgather_base", c10d.AllgatherOptions),
    "allgather_coalesced_": Op("all_gather", "allgather_coalesced", c10d.AllgatherOptions),
    "allgather_into_tensor_coalesced_": Op("all_gather", "", c10d.AllgatherOptions),
    "reduce_scatter_": Op("reduce_scatter", "reduce_scatter", c10d.ReduceScatterOptions),
    "_reduce_scatter_base_": Op(
        "reduce_scatter", "_reduce_scatter_base", c10d.ReduceScatterOptions
    ),
    "reduce_scatter_tensor_coalesced_": Op("reduce_scatter", "", c10d.ReduceScatterOptions),
    "gather_": Op("gather", "gather", c10d.GatherOptions),
    "gather_into_tensor_": Op("gather", "gather_single", c10d.GatherOptions),
    "scatter_": Op("scatter", "scatter", c10d.ScatterOptions),
    "alltoall_": Op("all_to_all", "alltoall", c10d.AllToAllOptions),
    "alltoall_base_": Op("all_to_all", "alltoall_base", c10d.AllToAllOptions),
    "barrier": Op("barrier", "barrier", c10d.BarrierOptions),
    "monitored_barrier_": Op("barrier", "monitored_barrier"),
}
# gather_into_tensor_ was added in torch 2.15.
OPS = {name: op for name, op in _OPS.items() if hasattr(torch.ops.c10d, name)}

# An argument's name in a schema -> its field in the options object.
_OPTION_FIELDS = {
    "reduce_op": "reduceOp",
    "root_rank": "rootRank",
    "root_tensor": "rootTensor",
    "async_op": "asyncOp",
    "device_ids": "device_ids",
}
# An argument's name in a schema -> its name in the record of the call.
_RECORDED_ARGUMENTS = {"src": "peer", "dst": "peer", "tag": "tag", "root_rank": "root"}

# Arguments with the numbers of rows sent to and received from each rank, and the ops in which they can
# differ.
_SPLIT_ARGUMENTS = ("output_split_sizes", "input_split_sizes")
_OPS_WITH_SPLITS = frozenset({"all_to_all", "scatter"})

_PLAIN_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)


def make_argument_reader(
    op: Op,
) -> Callable[[tuple[Any, ...], dist.ProcessGroup], tuple[list[Any], bool, dict[str, Any]] | None]:
    """Return a function that reads the arguments of `ProcessGroup.method` if the backend accepts them.

    The function returns the tensors to record, whether the call is asynchronous, and further fields of its
    record. It returns None for arguments that need the dispatcher: a different device, a tensor subclass, a
    tensor that needs a gradient, or a different overload.
    """
    options: Any = op.options
    fields = [field for field in ("rootRank", "asyncOp") if options and hasattr(options(), field)]
    has_splits = op.event_op in _OPS_WITH_SPLITS
    has_reduction = options is not None and hasattr(options(), "reduceOp")
    argument_count = {"send": 3, "recv": 3, "recv_anysource": 2}.get(op.method)

    def read(
        args: tuple[Any, ...], pg: dist.ProcessGroup
    ) -> tuple[list[Any], bool, dict[str, Any]] | None:
        details: dict[str, Any] = {}
        if options is None:
            if len(args) != argument_count:
                return None
            tensor_argument, details["tag"], asynchronous = args[0], args[-1], True
            if argument_count == 3:
                details["peer"] = args[1]
        else:
            call_options: Any = args[-1] if args else None
            if not isinstance(call_options, options) or len(args) < 2:
                return None
            tensor_argument = args[1] if len(args) > 2 else args[0]
            asynchronous = call_options.asyncOp if "asyncOp" in fields else True
            if "rootRank" in fields:
                details["root"] = call_options.rootRank
            if has_reduction:
                details["reduce_op"] = call_options.reduceOp.op.name
        tensors = flatten_tensors(tensor_argument)
        are_plain = all(type(tensor) in _PLAIN_TENSOR_TYPES and tensor.is_cpu for tensor in tensors)
        if not are_plain or not (tensors or len(args) > 2):
            return None
        if torch.is_grad_enabled() and any(
            tensor.requires_grad for tensor in flatten_tensors(list(args[:2]))
        ):
            # Let the call go through the dispatcher, where autograd notes that it has no derivative.
            return None
        if has_splits:
            details |= _split_sizes(args[0], args[1], args[2:-1], pg.size())
        return tensors, asynchronous, details

    return read


# run_call(process group, tensors, asynchronous, run_on, details, filled): call run_on(backend), and
# record the call.
CallRunner = Callable[..., Any]


def make_kernel(
    name: str, op: Op, device: torch.device, run_call: CallRunner
) -> Callable[..., Any]:
    """Return the kernel for the op `c10d::name` on a kind of device. It uses `run_call` for its calls."""
    schema = getattr(torch.ops.c10d, name).default._schema
    names = [argument.name for argument in schema.arguments]
    defaults = [argument.default_value for argument in schema.arguments]
    kinds = [str(argument.type) for argument in schema.arguments]
    lists = [
        index
        for index, kind in enumerate(kinds)
        if kind.startswith(("Tensor", "List[Tensor", "List[List"))
    ]
    pg_index = names.index("process_group")
    build_call = _CALL_BUILDERS.get(name, _build_method_call)(op, names, lists, device)
    return_count = len(schema.returns)  # nothing, only a Work, or tensors and a Work
    recorded_lists = lists[-1:] if op.event_op != "barrier" else []
    recorded_arguments = [
        (names.index(values), field)
        for values, field in _RECORDED_ARGUMENTS.items()
        if values in names
    ]
    reduce_op_index = names.index("reduce_op") if "reduce_op" in names else None
    async_op_index = names.index("async_op") if "async_op" in names else None
    split_indices = [names.index(values) for values in _SPLIT_ARGUMENTS if values in names]
    has_splits = op.event_op in _OPS_WITH_SPLITS
    is_blocking = name == "monitored_barrier_"

    def kernel(*args: Any) -> Any:
        values = [*args, *defaults[len(args) :]]
        details = {field: values[index] for index, field in recorded_arguments}
        if reduce_op_index is not None:
            values[reduce_op_index], details["reduce_op"] = _find_reduction(
                values[reduce_op_index].op()
            )
        if has_splits:
            size = dist.ProcessGroup.unbox(values[pg_index]).size()
            rows = [values[index] for index in split_indices]
            details |= _split_sizes(values[lists[0]], values[lists[1]], rows, size)
        tensors = flatten_tensors(values[recorded_lists[0]]) if recorded_lists else []
        asynchronous = not is_blocking if async_op_index is None else values[async_op_index]
        work = run_call(
            values[pg_index],
            tensors,
            asynchronous,
            build_call(values),
            details,
            values[lists[0]] if recorded_lists else [],
        )
        return (values[lists[0]], work) if return_count == 2 else work if return_count else None

    return kernel


# A function that turns an op's arguments into a function that calls a backend.
CallBuilder = Callable[[list[Any]], Callable[[Any], Any]]


def _build_method_call(
    op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device
) -> CallBuilder:
    """Call the method in the table with the tensors in the schema's order, then the options."""
    make_options = _make_options_builder(op, names)
    argument_indices = [
        names.index(argument)
        for argument in ("src", "dst", "tag", *_SPLIT_ARGUMENTS)
        if argument in names
    ]

    def build_call(values: list[Any]) -> Callable[[Any], Any]:
        tensors = [values[index] for index in lists] if op.method != "barrier" else []
        arguments = [values[index] for index in argument_indices]
        options = [make_options(values)] if op.options else []
        return lambda backend: getattr(backend, op.method)(*tensors, *arguments, *options)

    return build_call


def _build_monitored_barrier(
    op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device
) -> CallBuilder:
    timeout_index, wait_all_index = names.index("timeout"), names.index("wait_all_ranks")
    return lambda values: (
        lambda backend: backend.monitored_barrier(
            timedelta(milliseconds=values[timeout_index]), values[wait_all_index]
        )
    )


def _build_gather_into(
    op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device
) -> CallBuilder:
    """Run the op using other methods, because Python cannot call the backend's method for this op."""
    make_options = _make_options_builder(op, names)

    def build_call(values: list[Any]) -> Callable[[Any], Any]:
        (outs, ins), options = (values[index] for index in lists), make_options(values)

        def run_on(backend: Any) -> Any:
            if device.type == "cpu":  # The same steps as in gloo's C++ code.
                chunks = zip(*(out.chunk(backend.size()) for out in outs), strict=True)
                return backend.allgather_coalesced([list(c) for c in chunks], ins, options)
            pairs = zip(outs, ins, strict=True)
            works = [backend._allgather_base(out, inp, options) for out, inp in pairs]
            return works[-1]  # NCCL finishes these calls in order, on one stream.

        return run_on

    return build_call


def _build_scatter_into(
    op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device
) -> CallBuilder:
    """Run the op using other methods if the backend is gloo, whose method Python cannot call."""
    make_options = _make_options_builder(op, names)

    def build_call(values: list[Any]) -> Callable[[Any], Any]:
        (outs, ins), options = (values[index] for index in lists), make_options(values)

        def run_on(backend: Any) -> Any:
            if device.type != "cpu":
                return backend.reduce_scatter_tensor_coalesced(outs, ins, options)
            pairs = zip(outs, ins, strict=True)
            works = [backend._reduce_scatter_base(out, inp, options) for out, inp in pairs]
            # gloo runs these calls on several threads, so the last one may finish first.
            for work in works[:-1]:
                work.wait()
            return works[-1]

        return run_on

    return build_call


_CALL_BUILDERS: dict[str, Callable[..., CallBuilder]] = {
    "allgather_into_tensor_coalesced_": _build_gather_into,
    "reduce_scatter_tensor_coalesced_": _build_scatter_into,
    "monitored_barrier_": _build_monitored_barrier,
}


def _make_options_builder(op: Op, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return a function that fills the options object from an op's arguments."""
    fields = [(names.index(name), field) for name, field in _OPTION_FIELDS.items() if name in names]
    timeout_index = names.index("timeout") if "timeout" in names else None

    def make_options(values: list[Any]) -> Any:
        assert op.options is not None
        options = op.options()
        for index, field in fields:
            setattr(options, field, values[index])
        if timeout_index is not None and values[timeout_index] >= 0:
            options.timeout = timedelta(milliseconds=values[timeout_index])
        return options

    return make_options


def _split_sizes(
    outs: Any, ins: Any, row_counts: Sequence[Sequence[int]], size: int
) -> dict[str, list[int]]:
    """Return the number of elements that a rank sends to, and receives from, each rank of its group."""
    received_rows, sent_rows = row_counts or ((), ())
    return {
        "gives": _element_counts(ins, sent_rows, size),
        "takes": _element_counts(outs, received_rows, size),
    }


def _element_counts(tensors: Any, row_counts: Sequence[int], size: int) -> list[int]:
    if not isinstance(tensors, torch.Tensor):
        return [tensor.numel() for tensor in flatten_tensors(tensors)]
    if not row_counts:  # split evenly
        return [tensors.numel() // size] * size
    row_elements = tensors.numel() // (tensors.shape[0] or 1)
    return [row_elements * count for count in row_counts]


def flatten_tensors(lists: Any) -> list[torch.Tensor]:
    """Return the tensors in a tensor, a list of them, or a list of lists."""
    if isinstance(lists, torch.Tensor):
        return [lists]
    if not isinstance(lists, (list, tuple)):
        return []
    return [tensor for item in lists for tensor in flatten_tensors(item)]


@functools.cache
def _find_reduction(number: int) -> tuple[dist.ReduceOp, str]:
    """Return the reduction for an op's argument, and its name."""
    # An op contains only the reduction's number. All other parts of a ReduceOp stay in C++.
    kind = dist.ReduceOp.RedOpType(number)
    if kind.name == "PREMUL_SUM":
        raise RuntimeError(
            "ReduceOp.PREMUL_SUM carries a factor, which a recorded call cannot pass on, and gloo "
            "does not support it. With NCCL, use launch(..., trace=False)."
        )
    return dist.ReduceOp(kind), kind.name
