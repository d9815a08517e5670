"""Count the bytes of the tensors held by a process, which notebook 12 measures and its checks limit.

Use the counter inside a rank. Each storage is counted once, as a whole, however many views it has, even if it
is held by an attribute, a list, a closure, or autograd's graph.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.graph import saved_tensors_hooks

PATIENCE_S, POLL_S = 0.5, 0.002
RECOUNTS = 20
"""Number of times that a count without a limit is repeated."""


def storage_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Return the total bytes of these tensors' storages. Each storage counts once; None counts 0."""
    return sum(_storages(t for t in tensors if t is not None).values())


class LiveTensorCounter:
    """Counts the bytes of tensors created in a block of `tensors_held` that still exist."""

    def __init__(self) -> None:
        self._wait_left_s = PATIENCE_S
        self._sizes: list[int] = []

    def __call__(self, *others: torch.Tensor | None, most: int | None = None) -> int:
        """Return the count, without storages of `others`. If it exceeds `most`, wait briefly and recount.

        gloo's thread releases tensors a moment after a call has returned, so the first count may be too
        early. All counts of one block together wait for at most PATIENCE_S.
        """
        smallest = count = self._count(others)
        for _ in range(RECOUNTS if most is None else 0):
            time.sleep(POLL_S)
            smallest = min(smallest, self._count(others))
        if most is None:
            return smallest
        while count > most and self._wait_left_s > 0:
            time.sleep(POLL_S)
            self._wait_left_s -= POLL_S
            count = self._count(others)
        return count

    def count_until(
        self,
        enough: Callable[[list[int]], bool],
        *others: torch.Tensor | None,
        patience_s: float = PATIENCE_S,
    ) -> list[int]:
        """Count until `enough` accepts the sizes or `patience_s` has passed; gloo frees tensors late."""
        deadline = time.monotonic() + patience_s
        while True:
            self._count(others)
            if enough(self._sizes) or time.monotonic() > deadline:
                return self._sizes
            time.sleep(POLL_S)

    @property
    def sizes(self) -> list[int]:
        """Return the bytes of each storage in the last count, the largest first."""
        return self._sizes

    def _count(self, others: Iterable[torch.Tensor | None]) -> int:
        self._sizes = sorted(_find_storages(others).values(), reverse=True)
        return sum(self._sizes)


@contextmanager
def tensors_held() -> Iterator[LiveTensorCounter]:
    """Yield a counter of the bytes of all tensors created in this block and still held.

    Tensors saved by autograd for backward are counted. Tensors that existed before the block are not counted.
    The garbage collector ignores them from then on, so use this function only in a rank, which ends soon.
    """
    # import an optimizer's modules now, because their import inside the block would create large objects
    import_module("torch._dynamo")
    gc.collect()
    gc.freeze()  # the collector ignores all existing objects, which also makes counting fast
    # torch 2.14 and later warn that selective checkpointing does not use these hooks, but counts do not
    # change
    warnings.filterwarnings("ignore", "A saved_tensors_hooks context")
    # also keep tensors that only C++ would hold in a Python object, so that they can be found
    with saved_tensors_hooks(_identity, _identity):
        yield LiveTensorCounter()


def _find_storages(others: Iterable[torch.Tensor | None]) -> dict[int, int]:
    # collect garbage first, so that it does not count as held
    gc.collect()
    tensors = [obj for obj in gc.get_objects() if issubclass(type(obj), torch.Tensor)]
    # a fake tensor and its known value are the same tensor, which must not count twice
    constants = {id(tensor.constant) for tensor in tensors if isinstance(tensor, FakeTensor)}
    tensors = [tensor for tensor in tensors if id(tensor) not in constants]
    # a gradient from backward becomes a Python object only when it is accessed
    tensors += [
        tensor.grad
        for tensor in tensors
        if tensor.requires_grad and tensor.is_leaf and tensor.grad is not None
    ]
    storages = _storages(tensors)
    for address in _storages(other for other in others if other is not None):
        storages.pop(address, None)
    return storages


def _storages(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """Return {address: bytes} for the storages. A wrapper, such as DTensor, has no storage."""
    storages = {}
    for tensor in tensors:
        if hasattr(tensor, "__tensor_flatten__"):
            tensor = getattr(tensor, "_local_tensor", tensor)
        storage = tensor.untyped_storage()
        if isinstance(tensor, FakeTensor):  # its storage has no address, but it has a size
            storages[storage._cdata] = storage.nbytes()
        elif storage.device.type != "meta" and storage.nbytes():  # meta tensors hold no memory
            storages[storage.data_ptr()] = storage.nbytes()
    return storages


def _identity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
