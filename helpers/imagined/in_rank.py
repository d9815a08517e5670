"""Become a rank of an imagined world in one of its processes, and call the learner's function.

become rank 517 of 1,024 (environment, torch's fake process group)
  -> tensors without values (`_ShapesOnlyMode`), unless real ones were requested
  -> fn(517, 1024, *args), recorded as on a real rank
  -> its return value, with tensors described
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_leaves, tree_map_only

from helpers.imagined.functional import FUNCTIONAL_OPS
from helpers.trace import kernels

# Integer tensors up to this size keep their values, because they are used for computations in DeviceMesh, and
# in programs that arrange ranks. This does not apply to tensors that come from another rank, or are computed
# from a tensor without values.
_MAX_REAL_INTEGERS = 1 << 20
_PLAIN_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)


class NoValues(RuntimeError):
    """The program read a value of an imagined tensor, which has no values."""


@dataclass(frozen=True)
class ImaginedWorld:
    """A world of which only some ranks run. per_host: number of ranks on each of its machines."""

    size: int
    ranks: tuple[int, ...]
    per_host: int
    real_tensors: bool


def run_as_rank(
    process_index: int,
    process_count: int,
    world: ImaginedWorld,
    fn: Callable[..., Any],
    args: Sequence[Any],
) -> Any:
    """Call `fn` as the rank that this process represents in the imagined world."""
    rank = world.ranks[process_index]
    _join_world(rank, world)
    tensors = nullcontext() if world.real_tensors else _ShapesOnlyMode(allow_non_fake_inputs=True)
    try:
        with tensors:
            value = fn(rank, world.size, *args)
            return tree_map_only(torch.Tensor, _describe_tensor, value)
    except Exception as error:
        if world.real_tensors or not _needs_values(error):
            raise
        raise NoValues(_ADVICE).with_traceback(error.__traceback__) from None


def _join_world(rank: int, world: ImaginedWorld) -> None:
    ranks_per_host, host_count = min(world.per_host, world.size), -(-world.size // world.per_host)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world.size),
        LOCAL_RANK=str(rank % ranks_per_host),
        LOCAL_WORLD_SIZE=str(ranks_per_host),
        GROUP_RANK=str(rank // ranks_per_host),
        GROUP_WORLD_SIZE=str(host_count),
        ROLE_RANK=str(rank),
        ROLE_WORLD_SIZE=str(world.size),
    )
    kernels.install("meta")
    _use_python_reducer()
    fake_module = importlib.import_module("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", store=fake_module.FakeStore(), rank=rank, world_size=world.size)


def _use_python_reducer() -> None:
    """Make DDP average its buckets with a Python hook.

    The C++ reducer takes a bucket's result from its Work's future, which does not exist in a fake group.
    """
    original: Any = DistributedDataParallel._pre_forward

    @functools.wraps(original)
    def pre_forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if not self._comm_hooks:  # otherwise the learner's hook is used
            self.register_comm_hook(None, _average)
        return original(self, *inputs, **kwargs)

    DistributedDataParallel._pre_forward = pre_forward  # type: ignore[method-assign]


def _average(state: None, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
    future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    future.set_result(bucket.buffer())
    return future


_average.__annotations__.clear()  # DDP compares these with classes, but here they are strings.


class _ShapesOnlyMode(FakeTensorMode):
    """torch's mode for tensors with a shape but no values, with two changes.

    Functional collectives (DTensor's) call the process group, and so are recorded. Small integer tensors stay
    real, because a mesh of ranks must be readable. Tensors on the meta device also stay unchanged, so that
    cutting a tensor into 1,024 parts is 20 times as fast.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "_c10d_functional" and (own := FUNCTIONAL_OPS.get(_op_name(func))):
            with self:
                return own(*args, **kwargs)
        # types: the classes of all special tensors, such as tensors without values
        if not types and _stays_real(func, args, kwargs):
            return func(*args, **kwargs)
        return super().__torch_dispatch__(func, types, args, kwargs)


def _op_name(func: Any) -> str:
    return str(func.overloadpacket).rpartition(".")[2]


def _stays_real(func: Any, args: Any, kwargs: Any) -> bool:
    tensors = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, torch.Tensor)]
    device = kwargs.get("device")
    goes_to_meta = device is None or torch.device(device).type == "meta"
    if not tensors:
        is_whole = func.overloadpacket is torch.ops.aten.arange and all(
            type(arg) is int for arg in args
        )
        return is_whole or (device is not None and goes_to_meta)
    return all(
        type(tensor) in _PLAIN_TENSOR_TYPES
        and (goes_to_meta if tensor.is_meta else _is_small_integer_tensor(tensor))
        for tensor in tensors
    )


def _is_small_integer_tensor(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.numel() <= _MAX_REAL_INTEGERS


def _describe_tensor(tensor: torch.Tensor) -> str:
    shape = " x ".join(map(str, tensor.shape)) or "one number"
    return f"tensor of {shape}, {str(tensor.dtype).removeprefix('torch.')} (no values)"


# torch's C++ messages about a tensor without memory, from DDP's reducer and from object collectives.
_NO_STORAGE_MESSAGES = (
    "data is not allocated",
    "Cannot access data pointer",
    "data_ptr",
    ".numpy() is not",
)
_ADVICE = (
    "this line needs the values of a tensor, but imagined tensors have none. Examples of such "
    "lines are `.item()`, `if tensor`, collectives of Python objects, and DDP's reducer in C++. "
    "For a small model, write imagine(..., real_tensors=True): then tensors have values, although "
    "these mean nothing."
)


def _needs_values(error: Exception) -> bool:
    error_types = (DataDependentOutputException, DynamicOutputShapeException)
    return isinstance(error, error_types) or any(
        text in str(error) for text in _NO_STORAGE_MESSAGES
    )
