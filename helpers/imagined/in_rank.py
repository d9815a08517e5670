"""Become a rank of an imagined world in each of its processes, and call the learner's function.

become rank 517 of 1,024 (environment, torch's fake process group)
  -> tensors without values (`_Shapes`), unless real ones were asked for
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

from helpers.imagined.functional import FUNCTIONAL
from helpers.trace import kernels

# Integer tensors up to this size keep their values unless they come from another rank or from a tensor
# without values, because DeviceMesh, and programs that lay out ranks, compute with them.
_MOST_WHOLE = 1 << 20
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class NoValues(RuntimeError):
    """The program asked for a number that an imagined tensor does not have."""


@dataclass(frozen=True)
class World:
    """A world of which only some ranks run. per_host: how many ranks each of its machines has."""

    size: int
    ranks: tuple[int, ...]
    per_host: int
    real_tensors: bool


def drive(
    process: int, processes: int, world: World, fn: Callable[..., Any], args: Sequence[Any]
) -> Any:
    """Call `fn` as the rank of the imagined world that this process represents."""
    rank = world.ranks[process]
    _become(rank, world)
    tensors = nullcontext() if world.real_tensors else _Shapes(allow_non_fake_inputs=True)
    try:
        with tensors:
            value = fn(rank, world.size, *args)
            return tree_map_only(torch.Tensor, _described, value)
    except Exception as error:
        if world.real_tensors or not _asks_for_values(error):
            raise
        raise NoValues(_ADVICE).with_traceback(error.__traceback__) from None


def _become(rank: int, world: World) -> None:
    local, hosts = min(world.per_host, world.size), -(-world.size // world.per_host)
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world.size),
        LOCAL_RANK=str(rank % local),
        LOCAL_WORLD_SIZE=str(local),
        GROUP_RANK=str(rank // local),
        GROUP_WORLD_SIZE=str(hosts),
        ROLE_RANK=str(rank),
        ROLE_WORLD_SIZE=str(world.size),
    )
    kernels.install("meta")
    _reduce_in_python()
    fake = importlib.import_module("torch.testing._internal.distributed.fake_pg")
    dist.init_process_group("fake", store=fake.FakeStore(), rank=rank, world_size=world.size)


def _reduce_in_python() -> None:
    """Make DDP average its buckets by a hook in Python.

    The reducer in C++ takes a bucket's result from its Work's future, which a fake group does not have.
    """
    plain: Any = DistributedDataParallel._pre_forward

    @functools.wraps(plain)
    def pre_forward(self: Any, *inputs: Any, **kwargs: Any) -> Any:
        if not self._comm_hooks:  # otherwise the learner's own hook is used
            self.register_comm_hook(None, _average)
        return plain(self, *inputs, **kwargs)

    DistributedDataParallel._pre_forward = pre_forward  # type: ignore[method-assign]


def _average(state: None, bucket: Any) -> torch.futures.Future[torch.Tensor]:
    dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


_average.__annotations__.clear()  # DDP compares them with classes, but here they are strings.


class _Shapes(FakeTensorMode):
    """torch's mode for tensors that have a shape but no values, with two changes.

    Functional collectives (DTensor's) call the process group, and so are recorded. Small integer tensors stay
    real, because a mesh of ranks must be readable. Tensors on the meta device also stay what they are: this
    makes it 20 times as fast to cut one into 1,024 parts.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "_c10d_functional" and (own := FUNCTIONAL.get(_name(func))):
            with self:
                return own(*args, **kwargs)
        # types: the classes of tensors that are more than plain ones, such as those without values
        if not types and _stays_real(func, args, kwargs):
            return func(*args, **kwargs)
        return super().__torch_dispatch__(func, types, args, kwargs)


def _name(func: Any) -> str:
    return str(func.overloadpacket).rpartition(".")[2]


def _stays_real(func: Any, args: Any, kwargs: Any) -> bool:
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    device = kwargs.get("device")
    to_meta = device is None or torch.device(device).type == "meta"
    if not tensors:
        whole = func.overloadpacket is torch.ops.aten.arange and all(type(a) is int for a in args)
        return whole or (device is not None and to_meta)
    return all(
        type(t) in _PLAIN and (to_meta if t.is_meta else _is_small_and_whole(t)) for t in tensors
    )


def _is_small_and_whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() and tensor.numel() <= _MOST_WHOLE


def _described(tensor: torch.Tensor) -> str:
    shape = " x ".join(map(str, tensor.shape)) or "one number"
    return f"tensor of {shape}, {str(tensor.dtype).removeprefix('torch.')} (no values)"


# torch's messages in C++ about a tensor without memory: from DDP's reducer, and object collectives.
_NO_MEMORY = ("data is not allocated", "Cannot access data pointer", "data_ptr", ".numpy() is not")
_ADVICE = (
    "this line needs the values of a tensor, and imagined tensors have none: `.item()`, `if tensor`, "
    "collectives of Python objects, and DDP's reducer in C++ are such places. For a small model "
    "write imagine(..., real_tensors=True): then there are numbers, although they mean nothing."
)


def _asks_for_values(error: Exception) -> bool:
    no_values = (DataDependentOutputException, DynamicOutputShapeException)
    return isinstance(error, no_values) or any(text in str(error) for text in _NO_MEMORY)
