"""Read IDX files, the format of MNIST, strictly and only up to a maximum size.

A file begins with two zero bytes, one byte for the type (8: unsigned bytes), and one for the number of
dimensions. Each dimension's length follows as a big-endian 32-bit number. These are followed by the bytes,
with the last index varying fastest, and no further data (http://yann.lecun.com/exdb/mnist, "file formats").
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import torch

MAX_BYTES = 1 << 28
"""The maximum size of one file's elements after unpacking, five times the size of MNIST."""

_UNSIGNED_BYTES = 8
_GZIP = b"\x1f\x8b"


class DataFileError(ValueError):
    """A data file is missing, cut short, or in a different format."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def read_idx(path: Path, dims: int) -> torch.Tensor:
    """Read an IDX file of unsigned bytes, plain or packed by gzip, with `dims` dimensions.

    Raise DataFileError, which gives the file's name and the problem, if the file is invalid.
    """
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if not packed:
                return _parse(path, file, dims)
            with gzip.open(file) as unpacked:
                return _parse(path, unpacked, dims)  # type: ignore[arg-type]
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataFileError(f"{path} cannot be unpacked ({error}). Copy it again.") from None
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror or error}.") from None


def _parse(path: Path, file: BinaryIO, dims: int) -> torch.Tensor:
    head = file.read(4 + 4 * dims)
    wanted = bytes([0, 0, _UNSIGNED_BYTES, dims])
    if head[:4] != wanted[: len(head)]:
        raise DataFileError(
            f"{path} begins with {head[:4].hex(' ')}, not with {wanted.hex(' ')}, as an IDX file of "
            f"bytes in {dims} dimension{'s' * (dims > 1)} does. Is it the right file?"
        )
    if len(head) < 4 + 4 * dims:
        raise DataFileError(f"{path} ends in its header, after {len(head)} bytes. Copy it again.")
    shape = struct.unpack(f">{dims}I", head[4:])
    size = math.prod(shape)
    if size > MAX_BYTES:
        raise DataFileError(
            f"{path} declares {size:,} bytes in its header, but at most {MAX_BYTES:,} are read."
        )
    content = file.read(size + 1)  # read one more byte, to detect trailing bytes
    if len(content) != size:
        found = f"only {len(content):,}" if len(content) < size else "more"
        raise DataFileError(
            f"{path} declares {size:,} bytes in its header, but has {found}. Copy it again."
        )
    return (
        torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(shape)
        if size
        else (torch.empty(shape, dtype=torch.uint8))
    )
