"""Write the values of a few tensors as one short string, for a reader who steps through a run.

Memory is read directly, without operations of torch, so that a learner's profiler, mode or counter does not
notice. This takes a few microseconds, even for a large tensor.
"""

from __future__ import annotations

import ctypes
import functools
import zlib
from collections.abc import Sequence

import numpy as np
import torch

_MAX_NUMBERS = 12
_MAX_TENSORS = 4
_MAX_BYTES = 16_384
_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)


def summarize(tensors: Sequence[torch.Tensor]) -> str:
    """Write small tensors as numbers, and larger ones as their first three numbers and a digest.

    The digest (`#` and four hex digits) covers the first 16 kB, so equal bytes have equal digests. A tensor
    that cannot be read without an operation is shown as `?`: on a GPU, with strides, or of a subclass.
    """
    summaries = [_summarize_one(tensor) for tensor in tensors[:_MAX_TENSORS]]
    return ", ".join(summaries) + (" …" if len(tensors) > _MAX_TENSORS else "")


def _summarize_one(tensor: torch.Tensor) -> str:
    if type(tensor) not in _TENSOR_TYPES or not tensor.is_cpu or not tensor.is_contiguous():
        return "?"
    count, kind = tensor.numel(), _numpy_dtype(tensor.dtype)
    if kind is None:
        return "?"
    if not count:
        return "[]"
    size = tensor.element_size()
    start = tensor.storage_offset() * size
    # The tensor's memory was freed, for example by FSDP.
    if tensor.untyped_storage().nbytes() < start + count * size:
        return "?"
    # The memory belongs to this process and cannot be freed meanwhile, because the caller holds the tensor.
    raw = ctypes.string_at(tensor.data_ptr(), min(count * size, _MAX_BYTES))
    is_small = count <= _MAX_NUMBERS
    numbers = _format_numbers(raw[: (count if is_small else 3) * size], kind, tensor.dtype)
    if is_small:
        return _format_nested(numbers, tuple(tensor.shape))
    return f"[{' '.join(numbers)} … #{zlib.crc32(raw) & 0xFFFF:04x}]"


@functools.cache
def _numpy_dtype(dtype: torch.dtype) -> np.dtype | None:
    if dtype is torch.bfloat16:
        return np.dtype(np.uint16)
    try:
        return np.dtype(str(dtype).removeprefix("torch."))
    except TypeError:
        return None


def _format_numbers(raw: bytes, kind: np.dtype, dtype: torch.dtype) -> list[str]:
    array = np.frombuffer(raw, kind)
    if dtype is torch.bfloat16:  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    is_whole = array.dtype.kind in "iub"
    return [str(x) if is_whole else f"{x:.4g}" for x in array.tolist()]


def _format_nested(numbers: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return f"[{' '.join(numbers)}]"
    step = len(numbers) // shape[0]
    rows = (numbers[i * step : (i + 1) * step] for i in range(shape[0]))
    return f"[{' '.join(_format_nested(row, shape[1:]) for row in rows)}]"
