"""A rank's data: values arrive unchanged, and hostile bytes only cause an error."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import enum
import json
import os
import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.ranks import wire
from helpers.ranks.failures import RankDied, RankFailed
from helpers.ranks.launcher import launch

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def through(value: object) -> object:
    return wire.decode(bytearray(b"".join(bytes(chunk) for chunk in wire.encode(value))))


@pytest.mark.extended
@given(VALUES)
def test_plain_values_arrive_unchanged(value: object) -> None:
    got = through(value)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float32,
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int8,
        torch.uint8,
        torch.bool,
        torch.complex64,
    ],
)
def test_tensors_arrive_with_dtype_and_shape(dtype: torch.dtype) -> None:
    for shape in [(), (3,), (2, 3), (0, 4)]:
        tensor = torch.ones(shape, dtype=dtype)
        got = through([tensor, tensor.t() if len(shape) == 2 else tensor])
        assert isinstance(got, list)
        assert all(
            torch.equal(one, tensor if i == 0 or len(shape) != 2 else tensor.t())
            for i, one in enumerate(got)
        )
        assert got[0].dtype == dtype


@pytest.mark.parametrize("part", [slice(2, 3, 7), slice(0, 9, 4), slice(4, 4)])
def test_tensors_with_any_stride_arrive(part: slice) -> None:
    value = torch.arange(12)[part]
    frame = b"".join(wire.encode(value))
    assert torch.equal(wire.decode(bytearray(frame)), value)


def test_sends_only_used_part_of_tensor() -> None:
    chunks = wire.encode(torch.ones(1_000_000)[:2])
    assert sum(len(chunk) for chunk in chunks) < 200


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_refuses_random_bytes(data: bytes) -> None:
    with contextlib.suppress(wire.WireError):
        wire.decode(bytearray(data))


def body(tree: object, raw: bytes = b"") -> bytearray:
    text = json.dumps(tree).encode()
    return bytearray(wire.LENGTH.pack(len(text)) + text + raw)


@pytest.mark.parametrize(
    "tree",
    [
        ["tensor", "float32", [2], 0, 8],  # missing bytes
        ["tensor", "float32", [-1], 0, 4],
        ["tensor", "float32", [1 << 40], 0, 4],
        ["tensor", "Tensor", [1], 0, 4],
        ["tensor", "float32", [1], -4, 4],
        ["ndarray", "O", [1], 0, 8],
        ["ndarray", "<f8", [1 << 40], 0, 8],
        ["pickle", "gASVIQAAAAAAAACMBXBvc2l4"],
        ["device", "; rm -rf"],
        ["dict", [[["list", []], 1]]],  # an unhashable key
        ["int", "zz"],
        ["named", "P", ["x"], [1, 2]],
        ["named", "P", ["x", "x"], [1, 2]],
        ["named", "P", ["_make"], [1]],
        ["named", "P", ["class"], [1]],
        ["named", "P", ["x): import os #"], [1]],
        ["named", "P(object)", ["x"], [1]],
        ["named", "P" * 100, ["x"], [1]],
        ["named", "P", [f"x{i}" for i in range(300)], [0] * 300],
        ["named", "P", "xy", [1, 2]],
        ["named", "P", [["x"]], [1]],
        ["named", ["P"], ["x"], [1]],
        [],
        {"not": "a node"},
    ],
)
def test_rejects_hostile_trees(tree: object) -> None:
    with pytest.raises(wire.WireError):
        wire.decode(body(tree))


class Point(NamedTuple):
    x: int
    y: Any = None


MERSENNE = (1 << 61) - 1
"""The modulus of hashes: the hash of a whole number is its remainder."""
ALIKE = [["int", hex(k * MERSENNE)] for k in range(1, 5000)]


@pytest.mark.parametrize(
    "tree",
    [
        ["set", ALIKE],
        ["frozenset", ALIKE],
        ["dict", [[key, 0] for key in ALIKE]],
        ["set", [["tuple", [key]] for key in ALIKE]],
        ["list", [["bytes", 0, 1000]] * 5],
        ["list", [["tensor", "uint8", [1000], 0, 1000]] * 5],
    ],
    ids=["set", "frozenset", "dict", "tuples", "bytes", "tensors"],
)
def test_rejects_colliding_hashes_and_overlapping_data(tree: object) -> None:
    text = json.dumps(tree).encode()
    body = bytearray(wire.LENGTH.pack(len(text)) + text + b"\0" * 1000)
    with pytest.raises(wire.WireError, match="the same hash|overlap"):
        wire.decode(body)


def test_accepts_few_equal_hashes() -> None:
    value = {-1: "a", -2: "b", MERSENNE - 1: "c"}
    body = bytearray(b"".join(bytes(chunk) for chunk in wire.encode(value)))
    assert wire.decode(body) == value


def test_preserves_named_tuple_field_names() -> None:
    value = [Point(1, Point(2, torch.ones(1))), torch.tensor([3, 9]).max(dim=0)]
    got: Any = through(value)
    assert got[0].x == 1 and got[0].y.x == 2 and torch.equal(got[0].y.y, torch.ones(1))
    assert type(got[0]).__name__ == "Point" and type(got[0]) is type(got[0].y)
    assert (got[1].values, got[1].indices) == (9, 1)
    again: Any = through(Point(1, 2))
    assert again == Point(1, 2) == (1, 2) and repr(again) == "Point(x=1, y=2)"
    assert pickle.loads(pickle.dumps(again)) == again and copy.deepcopy(again).x == 1


def test_limits_number_of_named_tuple_types() -> None:
    kinds = [["named", f"P{i}", ["x"], [i]] for i in range(20_000)]
    got = wire.decode(body(["list", kinds]))
    assert got == [(i,) for i in range(20_000)] and got[0].x == 0
    assert len({type(value) for value in got}) == wire.MAX_NAMED_TUPLES + 1


def test_ignores_invalid_tuple_field_names() -> None:
    odd = collections.namedtuple("Odd", ["a"])  # type: ignore[misc]
    odd._fields = ("not a name",)
    assert type(through(odd(1))) is tuple


@dataclasses.dataclass
class Settings:
    lr: float = 0.1


class Color(enum.Enum):
    RED = 1


def yields() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (torch.ones(2, device="meta"), r"no data. Return its .shape and .dtype"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), r"\.dequantize\(\)"),
        (torch.eye(2).to_sparse(), r"\.to_dense\(\)"),
        (torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]), r"\.unbind\(\)"),
        (
            torch.ones(2).as_subclass(type("Mine", (torch.Tensor,), {})),
            r"as_subclass\(torch.Tensor\)",
        ),
        (torch.nn.Linear(1, 1), r"state_dict\(\)"),
        (torch.optim.SGD(torch.nn.Linear(1, 1).parameters()), r"state_dict\(\)"),
        (yields(), r"return list\(...\)"),
        (Settings(), r"dataclasses.asdict"),
        (Color.RED, r"\.name or its \.value"),
        (ValueError("x"), r"Raise it"),
        (np.array(["a", None]), r"\.tolist\(\)"),
    ],
)
def test_unreturnable_value_error_suggests_remedy(value: object, says: str) -> None:
    with pytest.raises(wire.CannotReturn, match=rf"value\['a'\]\[0\] is .*{says}"):
        wire.encode({"a": [value]})


def test_reports_size_of_oversized_value() -> None:
    large = torch.empty(1).expand(10).clone()
    with pytest.raises(wire.CannotReturn, match="takes .* bytes, and a rank can return at most 50"):
        wire.encode([large] * 20, 50)


@pytest.mark.extended
def test_refuses_to_return_2_gigabytes() -> None:
    def give(rank: int, world_size: int) -> list[torch.Tensor]:
        return [torch.zeros(1_000_000)] * 600  # 4 MB each, written 600 times

    with pytest.raises(
        RankFailed, match="2.4 GB, and a rank can return at most 2.1 GB.*torch.save"
    ):
        launch(give, 1)


def test_both_sides_reject_deep_nesting() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(wire.CannotReturn, match="nested deeper"):
        wire.encode(deep)
    with pytest.raises(wire.WireError):
        text = b'["list",[' * 5000 + b"]]" * 5000
        wire.decode(bytearray(wire.LENGTH.pack(len(text)) + text))


def test_reassembles_frames_from_single_bytes() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        reader = wire.FrameReader()
        data = b"".join(wire.HEADER.pack(wire.STATUS, n) + b"x" * n for n in (0, 1, 300))
        frames = []
        for i in range(len(data)):
            theirs.send(data[i : i + 1])
            with contextlib.suppress(BlockingIOError):
                for _, got in reader.feed_from(ours):
                    frames.append(bytes(got))
        assert [len(frame) for frame in frames] == [0, 1, 300]


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("!BQ", wire.RESULT, 1 << 60),
        struct.pack("!BQ", wire.STATUS, (64 << 10) + 1),
        struct.pack("!BQ", 99, 1),
    ],
)
def test_rejects_frames_with_invalid_headers(head: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.send(head)
        with pytest.raises(wire.WireError):
            list(wire.FrameReader().feed_from(ours))


class Evil:
    """Unpickling this object would end the unpickling process."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (66,)


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage" * 100,
        wire.HEADER.pack(wire.RESULT, 5) + b"abcde",
        wire.HEADER.pack(wire.RESULT, len(pickle.dumps(Evil()))) + pickle.dumps(Evil()),
        wire.HEADER.pack(wire.STATUS, 2) + b"[]",
        wire.HEADER.pack(wire.ERROR, 2) + b"{}",
        wire.HEADER.pack(wire.RESULT, 1 << 62),
    ],
)
def test_random_channel_bytes_harm_only_sender(sent: bytes) -> None:
    def forge(rank: int, world_size: int) -> str:
        if rank == 1:
            os.write(3, sent)
        return "done"

    run = launch(forge, 2, on_failure="return", timeout=10)
    assert run.values[0] == "done"
    assert run.failure is None or isinstance(run.failure, (RankFailed, RankDied))
    assert launch(lambda rank, n: rank, 2).values == [0, 1]


def test_reports_closed_channel_as_exit() -> None:
    def close(rank: int, world_size: int) -> None:
        if rank == 1:
            os.close(3)

    failure = launch(close, 2, on_failure="return", timeout=10).failure
    assert isinstance(failure, RankDied) and failure.rank == 1
