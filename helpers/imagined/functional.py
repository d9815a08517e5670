"""Functional collectives on tensors without values, which the recorder can record.

torch's kernels for such tensors (torch/distributed/_functional_collectives.py, `_all_reduce_meta` ...)
compute only the shape of the result. A real kernel allocates the result and calls the process group. The
functions in this module take only these two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

Tensor = torch.Tensor


def _resolve_group(name_or_group: Any) -> dist.ProcessGroup:
    resolve: Any = c10d._resolve_process_group  # takes a name of a special type
    group: dist.ProcessGroup = (
        resolve(name_or_group) if isinstance(name_or_group, str) else name_or_group
    )
    return group


def _set_asynchronous(options: Any, op: Any = None) -> Any:
    """Fill in options; op: "sum" or, from torch 2.15 on, a ReduceOp."""
    options.asyncOp = True
    if isinstance(op, str):
        op = dist.ReduceOp(dist.ReduceOp.RedOpType.__members__[op.upper()])
    if op is not None:
        options.reduceOp = op
    return options


def _all_reduce_(tensor: Tensor, op: Any, group: Any) -> Tensor:
    _resolve_group(group).allreduce([tensor], _set_asynchronous(c10d.AllreduceOptions(), op))
    return tensor


def _all_reduce(tensor: Tensor, op: Any, group: Any) -> Tensor:
    return _all_reduce_(_contiguous_copy(tensor), op, group)


def _all_reduce_coalesced_(tensors: list[Tensor], op: Any, group: Any) -> list[Tensor]:
    options = _set_asynchronous(c10d.AllreduceCoalescedOptions(), op)
    _resolve_group(group).allreduce_coalesced(tensors, options)
    return tensors


def _all_reduce_coalesced(tensors: Sequence[Tensor], op: Any, group: Any) -> list[Tensor]:
    return _all_reduce_coalesced_([_contiguous_copy(tensor) for tensor in tensors], op, group)


def _broadcast_(tensor: Tensor, src: int, group: Any) -> Tensor:
    options = _set_asynchronous(c10d.BroadcastOptions())
    options.rootRank = src
    _resolve_group(group).broadcast([tensor], options)
    return tensor


def _broadcast(tensor: Tensor, src: int, group: Any) -> Tensor:
    return _broadcast_(_contiguous_copy(tensor), src, group)


def _all_gather_out(tensor: Tensor, size: int, group: Any, *, out: Tensor) -> Tensor:
    options = _set_asynchronous(c10d.AllgatherOptions())
    _resolve_group(group)._allgather_base(out, tensor.contiguous(), options)
    return out


def _all_gather(tensor: Tensor, size: int, group: Any) -> Tensor:
    return _all_gather_out(tensor, size, group, out=_empty_rows(tensor, tensor.shape[0] * size))


def _all_gather_coalesced(tensors: Sequence[Tensor], size: int, group: Any) -> list[Tensor]:
    outs = [_empty_rows(tensor, tensor.shape[0] * size) for tensor in tensors]
    options = _set_asynchronous(c10d.AllgatherOptions())
    _resolve_group(group).allgather_into_tensor_coalesced(outs, list(tensors), options)
    return outs


def _reduce_scatter_out(tensor: Tensor, op: Any, size: int, group: Any, *, out: Tensor) -> Tensor:
    options = _set_asynchronous(c10d.ReduceScatterOptions(), op)
    _resolve_group(group)._reduce_scatter_base(out, tensor.contiguous(), options)
    return out


def _reduce_scatter(tensor: Tensor, op: Any, group_size: int, group: Any) -> Tensor:
    out = _empty_rows(tensor, tensor.shape[0] // group_size)
    return _reduce_scatter_out(tensor, op, group_size, group, out=out)


def _reduce_scatter_coalesced(
    tensors: Sequence[Tensor], op: Any, size: int, group: Any
) -> list[Tensor]:
    outs = [_empty_rows(tensor, tensor.shape[0] // size) for tensor in tensors]
    options = _set_asynchronous(c10d.ReduceScatterOptions(), op)
    _resolve_group(group).reduce_scatter_tensor_coalesced(outs, list(tensors), options)
    return outs


def _all_to_all(
    tensor: Tensor, received_rows: Sequence[int], sent_rows: Sequence[int], group: Any
) -> Tensor:
    out = _empty_rows(tensor, sum(received_rows))
    options = _set_asynchronous(c10d.AllToAllOptions())
    _resolve_group(group).alltoall_base(
        out, tensor.contiguous(), list(received_rows), list(sent_rows), options
    )
    return out


def _contiguous_copy(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _empty_rows(tensor: Tensor, rows: int) -> Tensor:
    """Return an empty result with a tensor's shape, except for `rows` in its first dimension."""
    return tensor.new_empty((rows, *tensor.shape[1:]))


FUNCTIONAL_OPS: dict[str, Callable[..., Any]] = {
    "all_reduce": _all_reduce,
    "all_reduce_": _all_reduce_,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "all_reduce_coalesced_": _all_reduce_coalesced_,
    "broadcast": _broadcast,
    "broadcast_": _broadcast_,
    "all_gather_into_tensor": _all_gather,
    "all_gather_into_tensor_out": _all_gather_out,
    "all_gather_into_tensor_coalesced": _all_gather_coalesced,
    "reduce_scatter_tensor": _reduce_scatter,
    "reduce_scatter_tensor_out": _reduce_scatter_out,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_coalesced,
    "all_to_all_single": _all_to_all,
}
"""{name of the op in `torch.ops._c10d_functional`: function}."""
