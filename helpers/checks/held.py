"""Count the bytes of the tensors that a process holds: what notebook 12 measures and its checks limit.

Called inside a rank. A storage counts once, whole, however many views it has and wherever it is kept:
an attribute, a list, a closure, the graph that autograd keeps for backward.
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
SETTLE = 20
"""Polls of a count for which nobody knows what is enough."""


def storage_bytes(tensors: Iterable[torch.Tensor | None]) -> int:
    """Add up the bytes of the storages behind these tensors, each storage once; None has none."""
    return sum(_storages(t for t in tensors if t is not None).values())


class Held:
    """Counts the bytes of the tensors that were made in a block of `tensors_held` and are there yet."""

    def __init__(self) -> None:
        self._patience_s = PATIENCE_S
        self._sizes: list[int] = []

    def __call__(self, *others: torch.Tensor | None, most: int | None = None) -> int:
        """Count, without the storages of `others`; where it is more than `most`, wait a little.

        gloo's own thread lets go of what it sent or received a moment after the call has returned,
        so that a count may come too early. A block waits PATIENCE_S in all.
        """
        fewest = count = self._count(others)
        for _ in range(SETTLE if most is None else 0):
            time.sleep(POLL_S)
            fewest = min(fewest, self._count(others))
        if most is None:
            return fewest
        while count > most and self._patience_s > 0:
            time.sleep(POLL_S)
            self._patience_s -= POLL_S
            count = self._count(others)
        return count

    def until(
        self,
        enough: Callable[[list[int]], bool],
        *others: torch.Tensor | None,
        patience_s: float = PATIENCE_S,
    ) -> list[int]:
        """Count until the sizes are `enough`, or for so long: gloo's thread lets go a moment after a call."""
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
        self._sizes = sorted(_found(others).values(), reverse=True)
        return sum(self._sizes)


@contextmanager
def tensors_held() -> Iterator[Held]:
    """Return a counter of the bytes of all tensors that are made in this block and still held.

    What autograd saves for backward counts. What existed before the block does not, nor is it ever
    looked at by the garbage collector again: use it in a rank, which ends soon.
    """
    import_module("torch._dynamo")  # as an optimizer does: nothing large may be made after this
    gc.collect()
    gc.freeze()  # what is here now is not looked at again, which also makes counting quick
    # torch 2.14 and later warn that selective checkpointing does not use these hooks, which changes no count
    warnings.filterwarnings("ignore", "A saved_tensors_hooks context")
    # what C++ alone would hold is held by a Python object as well, and so can be found
    with saved_tensors_hooks(_itself, _itself):
        yield Held()


def _found(others: Iterable[torch.Tensor | None]) -> dict[int, int]:
    # what is garbage already is not held by anybody
    gc.collect()
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    # what an imagined tensor knows of its value is the same tensor once more
    known = {id(tensor.constant) for tensor in tensors if isinstance(tensor, FakeTensor)}
    tensors = [tensor for tensor in tensors if id(tensor) not in known]
    # a gradient that backward has made is not a Python object until somebody asks for it
    tensors += [t.grad for t in tensors if t.requires_grad and t.is_leaf and t.grad is not None]
    found = _storages(tensors)
    for address in _storages(other for other in others if other is not None):
        found.pop(address, None)
    return found


def _storages(tensors: Iterable[torch.Tensor]) -> dict[int, int]:
    """Return the bytes of each storage by its address; a wrapper (DTensor) has none of its own."""
    storages = {}
    for tensor in tensors:
        if hasattr(tensor, "__tensor_flatten__"):
            tensor = getattr(tensor, "_local_tensor", tensor)
        storage = tensor.untyped_storage()
        if isinstance(tensor, FakeTensor):  # it has no address, but a size that counts
            storages[storage._cdata] = storage.nbytes()
        elif storage.device.type != "meta" and storage.nbytes():  # meta tensors hold no memory
            storages[storage.data_ptr()] = storage.nbytes()
    return storages


def _itself(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
