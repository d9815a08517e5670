"""Send tensors and arrays so that objects sharing memory in the notebook also share it on the ranks.

A storage is sent once, even if several tensors view it. Memory shared with the notebook is mapped. If an
array overlaps a tensor or another array, which is known only after pickling, `Memory.find_blocks` returns the
shared stretches as blocks. Then the objects are pickled again, and each block is sent once.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

_ALIGNMENT = 64


@dataclass(frozen=True)
class Block:
    """A stretch of memory shared by several objects, sent as one array of bytes.

    storage: a storage that covers the whole block, if any. It is sent instead of the block.
    """

    start: int
    end: int
    storage: Any = None

    @property
    def owner(self) -> Any:
        return self if self.storage is None else self.storage


@dataclass
class Memory:
    """The memory of all objects in one payload."""

    blocks: Sequence[Block] = ()
    storages: dict[int, Any] = field(default_factory=dict)
    # Start and end of a stretch of memory, and its storage or array; by the object's id and the part's
    # number.
    _stretches: dict[tuple[int, int], tuple[int, int, Any]] = field(default_factory=dict)
    _part: int = 0

    def __post_init__(self) -> None:
        for block in self.blocks:
            if block.storage is not None:
                self._first(block.storage)

    def begin_part(self) -> None:
        """Begin the part for the next rank. Part 0 is sent to all ranks."""
        self._part += 1

    def reduce_storage(self, storage: Any) -> Any:
        """Send a storage of torch. If several Python objects represent one storage, send the first."""
        import torch

        if isinstance(storage, torch.storage.TypedStorage):
            return _make_typed_storage, (self._first(storage._untyped_storage), storage.dtype)
        first = self._first(storage)
        if first is not storage:
            return _identity, (first,)
        if storage.device.type != "cpu":
            typed = torch.storage.TypedStorage(
                wrap_storage=storage, dtype=torch.uint8, _internal=True
            )
            return _untype_storage, typed.__reduce__()
        start, size = storage.data_ptr(), storage.nbytes()
        block = self._block_of(start, size)
        if block is not None and block.storage is not storage:
            return _storage_in_block, (block.owner, start - block.start, size)
        if block is None and size:
            self._add_stretch(start, start + size, storage)
        copy = (_copy_storage, (_read_memory(start, size),))
        by_descriptor = torch.multiprocessing.get_sharing_strategy() == "file_descriptor"
        if not by_descriptor or not storage.is_shared():
            return copy
        # Also send a copy, for ranks on other machines or in a sandbox.
        fd, size = storage._share_fd_cpu_()
        return _map_storage, ((f"/proc/{os.getpid()}/fd/{fd}", _file_identity(fd), size), copy)

    def reduce_array(self, array: Any) -> Any:
        """Send a numpy array that shares memory. Return None for all other arrays."""
        if array.dtype.hasobject or not array.size:
            return None
        address = array.__array_interface__["data"][0]
        reach = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
        start = address + sum(step for step in reach if step < 0)
        end = address + array.itemsize + sum(step for step in reach if step > 0)
        block = self._block_of(start, end - start)
        if block is None:
            self._add_stretch(start, end, array)
            return None
        form = (
            array.shape,
            array.dtype,
            address - block.start,
            array.strides,
            array.flags.writeable,
        )
        return _array_in_block, (block.owner, *form)

    def find_blocks(self) -> list[Block]:
        """Return the blocks of the pickled objects, which are their overlapping stretches."""
        blocks: list[Block] = []
        group: list[tuple[tuple[int, int, Any], int]] = []
        stretches = [(stretch, part) for (_, part), stretch in self._stretches.items()]
        stretches.sort(key=lambda item: item[0][:2])
        for stretch, part in [*stretches, ((sys.maxsize, 0, None), 0)]:
            if group and stretch[0] >= max(end for (_, end, _), _ in group):
                parts = [number for _, number in group]
                # Stretches sent to different ranks need no common block.
                if len(group) > 1 and (0 in parts or len(set(parts)) < len(parts)):
                    blocks.append(_make_block([member for member, _ in group]))
                group = []
            group.append((stretch, part))
        return blocks

    def _add_stretch(self, start: int, end: int, owner: Any) -> None:
        self._stretches[id(owner), self._part] = start, end, owner

    def _first(self, storage: Any) -> Any:
        return self.storages.setdefault(storage._cdata, storage)

    def _block_of(self, start: int, size: int) -> Block | None:
        for block in self.blocks:
            if size and block.start <= start and start + size <= block.end:
                return block
        return None


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray


def reduce_block(block: Block) -> Any:
    content = _read_memory(block.start, block.end - block.start)
    return _array_of_bytes, (content, block.start % _ALIGNMENT)


def _make_block(group: Sequence[tuple[int, int, Any]]) -> Block:
    start, end = min(part[0] for part in group), max(part[1] for part in group)
    covers = [part for at, to, part in group if (at, to) == (start, end) and not is_array(part)]
    covers.sort(key=lambda storage: not storage.is_shared())
    return Block(start, end, covers[0] if covers else None)


def _read_memory(start: int, size: int) -> Any:
    """Return memory of this process as an object that pickle copies only once, directly into its stream."""
    return pickle.PickleBuffer((ctypes.c_ubyte * size).from_address(start)) if size else b""


def _file_identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


# The functions below run on the rank.


def _identity(value: Any) -> Any:
    return value


def _make_typed_storage(storage: Any, dtype: Any) -> Any:
    import torch

    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def _untype_storage(make: Any, args: tuple[Any, ...]) -> Any:
    return make(*args)._untyped_storage


def _copy_storage(content: bytearray) -> Any:
    """Create a storage from memory allocated by torch, which is aligned and can be resized."""
    import torch

    storage = torch.UntypedStorage(len(content))
    if content:
        ctypes.memmove(
            storage.data_ptr(), (ctypes.c_ubyte * len(content)).from_buffer(content), len(content)
        )
    return storage


def _map_storage(location: tuple[str, tuple[int, int], int], copy: Any) -> Any:
    """Map the launching process's memory, or make a copy if that memory cannot be reached."""
    import torch

    path, file, size = location
    with suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            # In a sandbox or on another host, this id can belong to a different process.
            if _file_identity(fd) == file:
                kind: Any = torch.UntypedStorage
                return kind._new_shared_fd_cpu(fd, size)
        finally:
            os.close(fd)
    warnings.warn(
        "a tensor in shared memory is a copy on this rank: the notebook and other ranks do not see changes",
        stacklevel=2,
    )
    make, args = copy
    return make(*args)


def _array_of_bytes(content: bytearray, phase: int) -> Any:
    """Create an array of bytes whose address modulo `_ALIGNMENT` is `phase`, so that numbers stay aligned."""
    import numpy

    memory = numpy.empty(len(content) + _ALIGNMENT, numpy.uint8)
    start = (phase - memory.ctypes.data) % _ALIGNMENT
    array = memory[start : start + len(content)]
    array[:] = numpy.frombuffer(content, numpy.uint8)
    return array


def _bytes_of(owner: Any) -> Any:
    import torch

    if not isinstance(owner, torch.UntypedStorage):
        return owner
    return torch.empty(0, dtype=torch.uint8, device="cpu").set_(owner).numpy()


def _storage_in_block(owner: Any, offset: int, size: int) -> Any:
    import torch

    return torch.from_numpy(_bytes_of(owner)[offset : offset + size]).untyped_storage()


def _array_in_block(
    owner: Any,
    shape: tuple[int, ...],
    dtype: Any,
    offset: int,
    strides: tuple[int, ...],
    is_writeable: bool,
) -> Any:
    import numpy

    array: Any = numpy.ndarray(shape, dtype, _bytes_of(owner), offset, strides)
    array.flags.writeable = is_writeable
    return array
