"""The `c10d::*` ops as a table of what each records, and which method of the backend it calls.

torch's own kernels (torch/csrc/distributed/c10d/Ops.cpp) all do the same: they find the backend for the
device, put the numbers into an options object, and call one method. So one function makes all our
kernels from this table and from the names in each op's schema.
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
    """One op. records: the event's op. method: the backend's. options: the class of the last argument."""

    records: str
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
# gather_into_tensor_ exists from torch 2.15 on.
OPS = {name: op for name, op in _OPS.items() if hasattr(torch.ops.c10d, name)}

# An argument's name in a schema -> the field of the options object that takes it.
_OPTION = {
    "reduce_op": "reduceOp",
    "root_rank": "rootRank",
    "root_tensor": "rootTensor",
    "async_op": "asyncOp",
    "device_ids": "device_ids",
}
# An argument's name in a schema -> its name in the record of the call.
_TELLS = {"src": "peer", "dst": "peer", "tag": "tag", "root_rank": "root"}

# Arguments with the number of rows for and from each rank, and the ops in which these numbers can differ.
_SPLITS = ("output_split_sizes", "input_split_sizes")
_SPLIT = frozenset({"all_to_all", "scatter"})

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def plain_call(
    op: Op,
) -> Callable[[tuple[Any, ...], dist.ProcessGroup], tuple[list[Any], bool, dict[str, Any]] | None]:
    """Return a function that reads the arguments of `ProcessGroup.method` if the backend takes the same ones.

    The function returns the tensors to record, whether the call is asynchronous, and further fields of its
    record. It returns None for arguments that need the dispatcher: a different device, a tensor subclass, a
    tensor that needs a gradient, or a different overload.
    """
    options: Any = op.options
    fields = [f for f in ("rootRank", "asyncOp") if options and hasattr(options(), f)]
    splits = op.records in _SPLIT
    reduces = options is not None and hasattr(options(), "reduceOp")
    count = {"send": 3, "recv": 3, "recv_anysource": 2}.get(op.method)

    def read(
        args: tuple[Any, ...], pg: dist.ProcessGroup
    ) -> tuple[list[Any], bool, dict[str, Any]] | None:
        about: dict[str, Any] = {}
        if options is None:
            if len(args) != count:
                return None
            given, about["tag"], asynchronous = args[0], args[-1], True
            if count == 3:
                about["peer"] = args[1]
        else:
            last: Any = args[-1] if args else None
            if not isinstance(last, options) or len(args) < 2:
                return None
            given = args[1] if len(args) > 2 else args[0]
            asynchronous = last.asyncOp if "asyncOp" in fields else True
            if "rootRank" in fields:
                about["root"] = last.rootRank
            if reduces:
                about["reduce_op"] = last.reduceOp.op.name
        tensors = flat(given)
        plain = all(type(t) in _PLAIN and t.is_cpu for t in tensors)
        if not plain or not (tensors or len(args) > 2):
            return None
        if torch.is_grad_enabled() and any(t.requires_grad for t in flat(list(args[:2]))):
            # If the call goes through the dispatcher, autograd notes that it has no derivative.
            return None
        if splits:
            about |= _splits(args[0], args[1], args[2:-1], pg.size())
        return tensors, asynchronous, about

    return read


# run(process group, tensors, asynchronous, do, about, fills): call do(backend), and record the call.
Run = Callable[..., Any]


def kernel_for(name: str, op: Op, device: torch.device, run: Run) -> Callable[..., Any]:
    """Return the kernel for the op `c10d::name` on a kind of device. It makes its calls through `run`."""
    schema = getattr(torch.ops.c10d, name).default._schema
    names = [argument.name for argument in schema.arguments]
    defaults = [argument.default_value for argument in schema.arguments]
    kinds = [str(argument.type) for argument in schema.arguments]
    lists = [
        i for i, kind in enumerate(kinds) if kind.startswith(("Tensor", "List[Tensor", "List[List"))
    ]
    at_pg = names.index("process_group")
    asks = _METHODS.get(name, _by_method)(op, names, lists, device)
    returns = len(schema.returns)  # nothing, a Work, or tensors and a Work
    counts = lists[-1:] if op.records != "barrier" else []
    tells = [(names.index(given), said) for given, said in _TELLS.items() if given in names]
    at_op = names.index("reduce_op") if "reduce_op" in names else None
    at_async = names.index("async_op") if "async_op" in names else None
    at_splits = [names.index(given) for given in _SPLITS if given in names]
    splits = op.records in _SPLIT
    waits = name == "monitored_barrier_"

    def kernel(*args: Any) -> Any:
        given = [*args, *defaults[len(args) :]]
        about = {said: given[at] for at, said in tells}
        if at_op is not None:
            given[at_op], about["reduce_op"] = _reduction(given[at_op].op())
        if splits:
            size = dist.ProcessGroup.unbox(given[at_pg]).size()
            rows = [given[at] for at in at_splits]
            about |= _splits(given[lists[0]], given[lists[1]], rows, size)
        tensors = flat(given[counts[0]]) if counts else []
        asynchronous = not waits if at_async is None else given[at_async]
        work = run(
            given[at_pg],
            tensors,
            asynchronous,
            asks(given),
            about,
            given[lists[0]] if counts else [],
        )
        return (given[lists[0]], work) if returns == 2 else work if returns else None

    return kernel


# A function from an op's arguments to a function that calls a backend.
Asks = Callable[[list[Any]], Callable[[Any], Any]]


def _by_method(op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device) -> Asks:
    """Call the method in the table with the tensors in the schema's order, then the options."""
    make = _options(op, names)
    plain = [names.index(n) for n in ("src", "dst", "tag", *_SPLITS) if n in names]

    def asks(given: list[Any]) -> Callable[[Any], Any]:
        first = [given[at] for at in lists] if op.method != "barrier" else []
        rest = [given[at] for at in plain]
        options = [make(given)] if op.options else []
        return lambda backend: getattr(backend, op.method)(*first, *rest, *options)

    return asks


def _monitored(op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device) -> Asks:
    at_timeout, at_all = names.index("timeout"), names.index("wait_all_ranks")
    return lambda given: (
        lambda backend: backend.monitored_barrier(
            timedelta(milliseconds=given[at_timeout]), given[at_all]
        )
    )


def _gather_into(op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device) -> Asks:
    """Make the call by other methods, because Python cannot call the backend's own method for this op."""
    make = _options(op, names)

    def asks(given: list[Any]) -> Callable[[Any], Any]:
        (outs, ins), options = (given[at] for at in lists), make(given)

        def do(backend: Any) -> Any:
            if device.type == "cpu":  # The same as gloo's own code in C++.
                chunks = zip(*(out.chunk(backend.size()) for out in outs), strict=True)
                return backend.allgather_coalesced([list(c) for c in chunks], ins, options)
            pairs = zip(outs, ins, strict=True)
            works = [backend._allgather_base(out, inp, options) for out, inp in pairs]
            return works[-1]  # NCCL finishes them in order, on one stream.

        return do

    return asks


def _scatter_into(op: Op, names: Sequence[str], lists: Sequence[int], device: torch.device) -> Asks:
    """Make the call by other methods if the backend is gloo, whose own method Python cannot call."""
    make = _options(op, names)

    def asks(given: list[Any]) -> Callable[[Any], Any]:
        (outs, ins), options = (given[at] for at in lists), make(given)

        def do(backend: Any) -> Any:
            if device.type != "cpu":
                return backend.reduce_scatter_tensor_coalesced(outs, ins, options)
            pairs = zip(outs, ins, strict=True)
            works = [backend._reduce_scatter_base(out, inp, options) for out, inp in pairs]
            # gloo runs them on several threads, so the last may finish first.
            for work in works[:-1]:
                work.wait()
            return works[-1]

        return do

    return asks


_METHODS: dict[str, Callable[..., Asks]] = {
    "allgather_into_tensor_coalesced_": _gather_into,
    "reduce_scatter_tensor_coalesced_": _scatter_into,
    "monitored_barrier_": _monitored,
}


def _options(op: Op, names: Sequence[str]) -> Callable[[list[Any]], Any]:
    """Return a function that fills the options object from an op's arguments."""
    fields = [(names.index(name), field) for name, field in _OPTION.items() if name in names]
    at_timeout = names.index("timeout") if "timeout" in names else None

    def make(given: list[Any]) -> Any:
        assert op.options is not None
        options = op.options()
        for at, field in fields:
            setattr(options, field, given[at])
        if at_timeout is not None and given[at_timeout] >= 0:
            options.timeout = timedelta(milliseconds=given[at_timeout])
        return options

    return make


def _splits(outs: Any, ins: Any, rows: Sequence[Sequence[int]], size: int) -> dict[str, list[int]]:
    """Return how many elements a rank sends to each rank, and receives from each, in a group of `size`."""
    taken, given = rows or ((), ())
    return {"gives": _elements(ins, given, size), "takes": _elements(outs, taken, size)}


def _elements(tensors: Any, rows: Sequence[int], size: int) -> list[int]:
    if not isinstance(tensors, torch.Tensor):
        return [tensor.numel() for tensor in flat(tensors)]
    if not rows:  # split evenly
        return [tensors.numel() // size] * size
    row = tensors.numel() // (tensors.shape[0] or 1)
    return [row * count for count in rows]


def flat(lists: Any) -> list[torch.Tensor]:
    """Return the tensors in a tensor, a list of them, or a list of lists."""
    if isinstance(lists, torch.Tensor):
        return [lists]
    if not isinstance(lists, (list, tuple)):
        return []
    return [tensor for item in lists for tensor in flat(item)]


@functools.cache
def _reduction(number: int) -> tuple[dist.ReduceOp, str]:
    """Return the reduction for an op's argument, and its name."""
    # The op contains the reduction only as a number. Anything else that a ReduceOp holds stays in C++.
    kind = dist.ReduceOp.RedOpType(number)
    if kind.name == "PREMUL_SUM":
        raise RuntimeError(
            "ReduceOp.PREMUL_SUM carries a factor, which a recorded call cannot pass on, and gloo "
            "does not support it. With NCCL use launch(..., trace=False)."
        )
    return dist.ReduceOp(kind), kind.name
