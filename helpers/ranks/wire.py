"""Encode and decode the bytes between a rank and its launcher, safely even if the rank is hostile.

A frame is a kind (one byte), a length (eight bytes, big-endian) and a body. Each kind of frame has a maximum
size. The body of a value is JSON that describes it, followed by the raw bytes of its tensors. Decoding a
value can only create plain data and tensors, because nothing is ever unpickled.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import json
import keyword
import math
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import torch

HEADER = struct.Struct("!BQ")
LENGTH = struct.Struct("!I")

TASK, ASK, REPLY = 1, 2, 3  # to the rank
STATUS, RESULT, ERROR, QUESTION, IMPORTED, REPLACED, THREAD_ERROR = range(11, 18)  # from the rank

MAX_BYTES = {
    STATUS: 64 << 10,
    RESULT: 2 << 30,
    ERROR: 256 << 10,
    QUESTION: 200,
    THREAD_ERROR: 256 << 10,
    IMPORTED: 128 << 10,
    REPLACED: 4 << 10,
}
MAX_DEPTH = 60
MAX_DIMENSIONS = 64
MAX_NODES = 2_000_000
# Maximum number of kinds of named tuples in one value. Further kinds become plain tuples.
MAX_NAMED_TUPLES = 50
MAX_NAMED_TUPLE_FIELDS = 200
# Maximum number of elements of a set, or keys of a dict, with the same hash.
MAX_EQUAL_HASHES = 64
_MAX_NAME = 80
_ALIGNMENT = 16
_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
_BIG_INT = 1 << 63
# The maximum size of the JSON text, whose length is stored in four bytes.
_MAX_TREE_BYTES = (1 << 32) - 1


class WireError(Exception):
    """The other side sent bytes that are not a well-formed frame of an allowed size."""


class CannotReturn(TypeError):
    """A value contains an object that a rank cannot return."""


def send_frame(sock: socket.socket, kind: int, *chunks: bytes | bytearray | memoryview) -> None:
    """Send one frame whose body is the concatenation of `chunks`."""
    head = HEADER.pack(kind, sum(len(chunk) for chunk in chunks))
    # Send small frames in one piece, because each system call may wake the other side, even if it sends only
    # a header.
    if sum(len(chunk) for chunk in chunks) < 65536:
        sock.sendall(head + b"".join(chunks))
        return
    sock.sendall(head)
    for chunk in chunks:
        sock.sendall(chunk)


def recv_exactly(sock: socket.socket, count: int) -> bytearray:
    """Receive `count` bytes from a blocking socket. Raise EOFError if it closes first."""
    data = bytearray(count)
    view = memoryview(data)
    received = 0
    while received < count:
        count_now = sock.recv_into(view[received:])
        if not count_now:
            raise EOFError
        received += count_now
    return data


def recv_frame(sock: socket.socket) -> tuple[int, bytearray]:
    """Receive one frame of any size from a blocking socket. For ranks only, which trust their launcher."""
    kind, length = HEADER.unpack(recv_exactly(sock, HEADER.size))
    return kind, recv_exactly(sock, length)


@dataclass
class FrameReader:
    """Splits the data from a rank into frames as it arrives, each no longer than its kind allows."""

    max_bytes: dict[int, int] = field(default_factory=lambda: dict(MAX_BYTES))
    _head: bytearray = field(default_factory=bytearray)
    _kind: int = 0
    _body: bytearray | None = None
    _filled: int = 0

    def feed_from(
        self, sock: socket.socket, budget: int = 4 << 20
    ) -> Iterator[tuple[int, bytearray]]:
        """Read the available data from a non-blocking socket, and yield complete frames.

        Stop after about `budget` bytes.

        Raises:
            EOFError: The socket was closed.
            WireError: The bytes are not frames.
        """
        while budget > 0:
            if self._body is None:
                chunk = sock.recv(HEADER.size - len(self._head))
                if not chunk:
                    raise EOFError
                self._head += chunk
                budget -= len(chunk)  # Count empty frames as well, or the loop might never end.
                if len(self._head) == HEADER.size:
                    self._begin_body()
            if self._body is not None:
                if self._filled < len(self._body):
                    got = sock.recv_into(memoryview(self._body)[self._filled :])
                    if not got:
                        raise EOFError
                    self._filled += got
                    budget -= got
                if self._filled == len(self._body):
                    frame = (self._kind, self._body)
                    self._body = None
                    yield frame

    def _begin_body(self) -> None:
        kind, length = HEADER.unpack(self._head)
        limit = self.max_bytes.get(kind)
        if limit is None:
            raise WireError(f"a frame of unknown kind {kind}")
        if length > limit:
            raise WireError(f"a frame of {length:,} bytes, where {limit:,} are allowed")
        self._kind, self._body, self._filled = kind, bytearray(length), 0
        self._head.clear()


def encode(value: Any, max_bytes: int = MAX_BYTES[RESULT]) -> list[bytes | memoryview]:
    """Encode a value as the chunks of a frame's body. Raise CannotReturn with the failing part."""
    writer = _Writer()
    tree = writer.encode_value(value, "value", 0)
    text = json.dumps(tree, separators=(",", ":")).encode()
    pad = -(LENGTH.size + len(text)) % _ALIGNMENT
    text += b" " * pad
    total = LENGTH.size + len(text) + writer.offset
    if total > max_bytes or LENGTH.size + len(text) > _MAX_TREE_BYTES:
        raise CannotReturn(
            f"the value takes {_format_size(total)}, and a rank can return at most "
            f"{_format_size(max_bytes)}. "
            "Return only what you need, for example a part, a sum or a norm. To keep all of it, "
            "torch.save it to a file and return the file's name."
        )
    return [LENGTH.pack(len(text)), text, *writer.chunks]


def decode(body: bytearray, max_parts: int = 0) -> Any:
    """Decode a value. Its tensors share memory with `body`.

    Args:
        body: The body of a frame.
        max_parts: Maximum number of commas and brackets in its text; 0 for no limit. They are counted before
            anything is decoded, because decoding each of them may create an object of a few hundred bytes and
            take a few microseconds.

    Raises:
        WireError: The body is not a valid value.
    """
    try:
        (length,) = LENGTH.unpack_from(body)
        text = bytes(memoryview(body)[LENGTH.size : LENGTH.size + length])
        if 0 < max_parts < text.count(b",") + text.count(b"["):
            raise WireError(
                f"a value of more than {max_parts:,} parts; no exercise needs that many"
            )
        tree = json.loads(text)
        return _Reader(body, LENGTH.size + length).decode_value(tree, 0)
    except WireError:
        raise
    except Exception as error:  # A hostile body may provoke any kind of error.
        raise WireError(f"not a value: {type(error).__name__}") from None


class _Writer:
    def __init__(self) -> None:
        self.chunks: list[bytes | memoryview] = []
        self.offset = 0
        self.nodes = 0

    def encode_value(self, value: Any, path: str, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise CannotReturn(f"{path}: more than {MAX_NODES:,} parts; return a tensor instead")
        if depth > MAX_DEPTH:
            raise CannotReturn(f"{path}: nested deeper than {MAX_DEPTH} levels (or inside itself)")
        if value is None or isinstance(value, bool):
            return value
        if type(value) is str:
            return value
        if isinstance(value, float) and type(value).__module__ == "builtins":
            return value if math.isfinite(value) else ["float", repr(value)]
        if isinstance(value, int):
            return int(value) if abs(value) < _BIG_INT else ["int", hex(value)]
        return self._encode_compound(value, path, depth)

    def _encode_compound(self, value: Any, path: str, depth: int) -> Any:
        if isinstance(value, tuple) and (names := _field_names(value)):
            parts = [
                self.encode_value(v, f"{path}.{name}", depth + 1)
                for name, v in zip(names, value, strict=True)
            ]
            return ["named", type(value).__name__, names, parts]
        if isinstance(value, (list, tuple)) and not _is_size(value):
            kind = "list" if isinstance(value, list) else "tuple"
            return [
                kind,
                [self.encode_value(v, f"{path}[{i}]", depth + 1) for i, v in enumerate(value)],
            ]
        if isinstance(value, dict):
            pairs = [
                [
                    self.encode_value(k, f"a key of {path}", depth + 1),
                    self.encode_value(v, f"{path}[{k!r}]", depth + 1),
                ]
                for k, v in value.items()
            ]
            return ["dict", pairs]
        if isinstance(value, (set, frozenset)):
            parts = [self.encode_value(v, f"an element of {path}", depth + 1) for v in value]
            return ["set" if isinstance(value, set) else "frozenset", parts]
        if isinstance(value, str):
            return str(value)
        if isinstance(value, (bytes, bytearray)):
            return ["bytes", *self._raw_bytes(bytes(value))]
        if isinstance(value, complex):
            return ["complex", repr(value.real), repr(value.imag)]
        if isinstance(value, range):
            return ["range", value.start, value.stop, value.step]
        return self._encode_array(value, path)

    def _encode_array(self, value: Any, path: str) -> Any:
        import numpy as np
        import torch

        if isinstance(value, torch.Tensor):
            return self._tensor(value, path)
        if isinstance(value, torch.Size):
            return ["size", list(value)]
        if isinstance(value, torch.dtype):
            return ["dtype", str(value).removeprefix("torch.")]
        if isinstance(value, torch.device):
            return ["device", str(value)]
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
            array = np.ascontiguousarray(value)
            kind = "ndarray" if isinstance(value, np.ndarray) else "scalar"
            return [kind, value.dtype.str, list(value.shape), *self._raw_bytes(array.tobytes())]
        raise CannotReturn(f"{path} is {_with_article(value)}. {_advice_for(value)}")

    def _tensor(self, tensor: torch.Tensor, path: str) -> Any:
        import torch

        if type(tensor).__name__ == "AsyncCollectiveTensor":
            tensor = tensor.wait()  # type: ignore[attr-defined]
        if type(tensor) not in {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}:
            raise CannotReturn(f"{path} is {_with_article(tensor)}. {_tensor_advice(tensor)}")
        if tensor.is_meta:
            raise CannotReturn(
                f"{path} is a tensor on the device 'meta', which has a shape but no data. Return its "
                ".shape and .dtype, or give it memory first: module.to_empty(device='cpu')."
            )
        if tensor.is_quantized:
            raise CannotReturn(
                f"{path} is a quantized tensor. Return the result of its .dequantize()."
            )
        if tensor.is_nested:
            raise CannotReturn(
                f"{path} is a nested tensor. Return the result of its .unbind(), a list of tensors."
            )
        if tensor.layout != torch.strided:
            raise CannotReturn(
                f"{path} is a {tensor.layout} tensor. Return the result of its .to_dense()."
            )
        flat = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        # A single element counts as contiguous with any stride, but viewing it as bytes requires stride 1.
        flat = flat.as_strided((flat.numel(),), (1,))
        raw = memoryview(flat.view(torch.uint8).numpy()) if flat.numel() else b""  # type: ignore[arg-type]
        name = str(tensor.dtype).removeprefix("torch.")
        return ["tensor", name, list(tensor.shape), *self._raw_bytes(raw)]

    def _raw_bytes(self, data: bytes | memoryview) -> tuple[int, int]:
        start, size = self.offset, len(data)
        pad = -size % _ALIGNMENT
        self.chunks += [data, b"\0" * pad]
        self.offset += size + pad
        return start, size


class _Reader:
    def __init__(self, body: bytearray, base: int) -> None:
        self.body, self.base = body, base
        self.nodes = 0
        self.taken = 0
        self.named: dict[tuple[str, ...], Any] = {}

    def decode_value(self, tree: Any, depth: int) -> Any:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise WireError("too many parts")
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if depth > 2 * MAX_DEPTH:
            raise WireError("nested too deeply")
        if not isinstance(tree, list) or not tree or not isinstance(tree[0], str):
            raise WireError("an unknown node")
        kind, *rest = tree
        if kind in _CONTAINERS:
            parts = [self.decode_value(part, depth + 1) for part in rest[0]]
            if kind in {"set", "frozenset"}:
                _check_hashes(parts)
            return _CONTAINERS[kind](parts)
        if kind == "named":
            name, fields, parts = rest
            return self._decode_named(name, fields, parts, depth)
        if kind == "dict":
            keys = [self.decode_value(k, depth + 1) for k, _ in rest[0]]
            _check_hashes(keys)
            return {
                k: self.decode_value(v, depth + 1) for k, (_, v) in zip(keys, rest[0], strict=True)
            }
        return self._decode_leaf(kind, rest)

    def _decode_named(self, name: Any, fields: Any, parts: Any, depth: int) -> Any:
        """Decode a tuple with named parts, without needing the rank's class."""
        values = [self.decode_value(part, depth + 1) for part in parts]
        _check_names(name, fields)
        if len(fields) != len(values):
            raise WireError("a tuple with more or fewer names than parts")
        kind = (name, *fields)
        if kind not in self.named:
            if len(self.named) >= MAX_NAMED_TUPLES:
                return tuple(values)
            # Creating a class takes 0.2 ms, so all tuples of one kind share a class.
            self.named[kind] = _named_tuple(name, tuple(fields))
        return self.named[kind](*values)

    def _decode_leaf(self, kind: str, rest: list[Any]) -> Any:
        if kind == "float":
            return float(rest[0])
        if kind == "int":
            return int(rest[0][:100_000], 16)
        if kind == "complex":
            return complex(float(rest[0]), float(rest[1]))
        if kind == "range":
            return range(*(int(n) for n in rest))
        if kind == "bytes":
            return bytes(self._raw_bytes(*rest))
        import torch

        if kind == "size":
            return torch.Size(rest[0])
        if kind == "device":
            return torch.device(rest[0])
        if kind == "dtype":
            return _torch_dtype(rest[0])
        if kind == "tensor":
            return self._tensor(*rest)
        if kind in {"ndarray", "scalar"}:
            return self._ndarray(kind, *rest)
        raise WireError("an unknown node")

    def _tensor(self, name: str, shape: list[int], start: int, size: int) -> torch.Tensor:
        import torch

        dtype = _torch_dtype(name)
        _check_shape(shape)
        if math.prod(shape) * dtype.itemsize != size:
            raise WireError("a tensor whose bytes do not fit its shape")
        if not size:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(self._raw_bytes(start, size), dtype=dtype).reshape(shape)

    def _ndarray(
        self, kind: str, dtype: str, shape: list[int], start: int, size: int
    ) -> np.ndarray[Any, Any]:
        import numpy as np

        if np.dtype(dtype).kind not in "biufc":
            raise WireError("an array of objects")
        _check_shape(shape)
        array = np.frombuffer(bytes(self._raw_bytes(start, size)), dtype=dtype).reshape(shape)
        if not array.dtype.isnative:  # torch does not support such arrays
            array = array.astype(array.dtype.newbyteorder("="))
        return array if kind == "ndarray" else array[()]

    def _raw_bytes(self, start: int, size: int) -> memoryview:
        if not (isinstance(start, int) and isinstance(size, int)) or start < 0 or size < 0:
            raise WireError("a place outside the frame")
        if self.base + start + size > len(self.body):
            raise WireError("a place outside the frame")
        self.taken += size
        if self.taken > len(self.body):  # Otherwise a small frame could fill any amount of memory.
            raise WireError("places that overlap")
        return memoryview(self.body)[self.base + start : self.base + start + size]


def _check_hashes(parts: list[Any]) -> None:
    """Refuse elements of a set chosen to have equal hashes, because inserting them takes quadratic time."""
    hashes = sorted(map(hash, parts))
    if any(one == other for one, other in zip(hashes, hashes[MAX_EQUAL_HASHES:], strict=False)):
        raise WireError("a set with too many elements that have the same hash")


def _is_size(value: Any) -> bool:
    return type(value).__name__ == "Size" and type(value).__module__ == "torch"


def _field_names(value: tuple[Any, ...]) -> list[str]:
    """Return the field names of a namedtuple, or of a result such as x.max(dim=0)."""
    kind = type(value)
    names = getattr(kind, "_fields", None)
    if names is None and hasattr(kind, "n_sequence_fields"):
        names = getattr(kind, "__match_args__", None)
    try:
        _check_names(kind.__name__, list(names or ()))
    except (WireError, TypeError):
        return []
    return list(names or ()) if len(names or ()) == len(value) else []


def _check_names(name: Any, fields: Any) -> None:
    """Refuse names that collections.namedtuple would not accept, or that are too long."""
    if not isinstance(fields, list) or len(fields) > MAX_NAMED_TUPLE_FIELDS:
        raise WireError("names that no tuple has")
    for text in (name, *fields):
        if type(text) is not str or not text.isidentifier() or keyword.iskeyword(text):
            raise WireError("an invalid name")
        if len(text) > _MAX_NAME:
            raise WireError("a name that is too long")
    if any(field.startswith("_") for field in fields) or len(set(fields)) != len(fields):
        raise WireError("names that no tuple has")


def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    base: Any = collections.namedtuple(name, fields)  # type: ignore[misc]
    # This class is in no module, so pickle needs to know how to recreate it.
    return type(name, (base,), {"__slots__": (), "__reduce__": _reduce_named_tuple})


def _reduce_named_tuple(value: Any) -> tuple[Any, ...]:
    return _rebuild_named_tuple, (type(value).__name__, value._fields, tuple(value))


def _rebuild_named_tuple(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return _named_tuple(name, fields)(*values)


def _format_size(nbytes: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6)):
        if nbytes >= scale:
            return f"{nbytes / scale:.1f} {unit}"
    return f"{nbytes:,} bytes"


def _check_shape(shape: Any) -> None:
    """Refuse an invalid shape before any computation, because its product can take minutes."""
    is_short_list = isinstance(shape, list) and len(shape) <= MAX_DIMENSIONS
    if not is_short_list or not all(type(size) is int and 0 <= size < _BIG_INT for size in shape):
        raise WireError("a shape that no array has")


def _torch_dtype(name: Any) -> torch.dtype:
    import torch

    dtype = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(dtype, torch.dtype):
        raise WireError("an unknown dtype")
    return dtype


def _with_article(value: Any) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"a {name}"


def _advice_for(value: Any) -> str:
    import torch

    if isinstance(value, torch.nn.Module):
        return "Return its state_dict(), or the parameters that you want to see."
    if isinstance(value, torch.optim.Optimizer):
        return "Return its state_dict()."
    if inspect.isgenerator(value):
        return "The function contains a `yield`, or returns a generator: return list(...) of it."
    if inspect.iscoroutine(value):
        return "It was never awaited: return asyncio.run(...) of it."
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return "Return dataclasses.asdict(...) of it."
    if isinstance(value, enum.Enum):
        return "Return its .name or its .value."
    if isinstance(value, BaseException):
        return "Raise it, or return repr(...) of it."
    if type(value).__module__ == "numpy":
        return (
            "Return its .tolist(): an array of objects, strings or times contains no plain numbers."
        )
    if callable(value):
        return "Return what it computes instead."
    return "Return numbers, strings, lists, tuples, dicts, sets, arrays or tensors instead."


def _tensor_advice(value: torch.Tensor) -> str:
    if hasattr(value, "full_tensor"):
        return "Return .full_tensor() or .to_local() of it."
    if type(value).__name__ == "FakeTensor":
        return "It has a shape and no elements: return its .shape and .dtype."
    return "Return .as_subclass(torch.Tensor) of it, or only the part that you need."
