"""Digits from scikit-learn's package and from IDX files, which the tests write themselves."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest
import torch

from helpers.data import idx
from helpers.data.digits import IMAGES, LABELS, MNIST_FOLDER_VARIABLE, digits, small_digits
from helpers.data.idx import DataFileError, read_idx

IMAGE_BYTES = bytes(range(0, 240, 10))
"""Two images of 3 x 4 pixels."""


def idx_bytes(content: bytes, *shape: int, kind: int = 8) -> bytes:
    return bytes([0, 0, kind, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


def write_set(folder: Path, packed: bool, labels: bytes = bytes([7, 0])) -> Path:
    files = {IMAGES: idx_bytes(IMAGE_BYTES, 2, 3, 4), LABELS: idx_bytes(labels, len(labels))}
    for name, content in files.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)
    return folder


def test_default_digits_come_from_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MNIST_FOLDER_VARIABLE, raising=False)
    x, y = digits()
    assert x.shape == (1797, 64) and x.dtype == torch.float32
    assert x.min() == 0 and x.max() == 1
    assert y.shape == (1797,) and y.dtype == torch.int64
    assert y[:10].tolist() == list(range(10)) and set(y.tolist()) == set(range(10))


@pytest.mark.extended
def test_digits_equal_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits  # slow, and needed here only

    found = load_digits()
    x, y = small_digits()
    assert torch.equal(x, torch.from_numpy(found.data).float() / 16)
    assert torch.equal(y, torch.from_numpy(found.target).long())


def test_each_caller_gets_unchanged_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MNIST_FOLDER_VARIABLE, raising=False)
    for load in (digits, small_digits):
        before = load()[0].clone()
        load()[0].zero_()
        assert load()[0].equal(before) and before.any()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("by_variable", [False, True])
def test_reads_plain_and_compressed_idx_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool, by_variable: bool
) -> None:
    folder = write_set(tmp_path, packed)
    monkeypatch.setenv(MNIST_FOLDER_VARIABLE, str(folder) if by_variable else "/nowhere")
    x, y = digits() if by_variable else digits(folder)
    assert y.tolist() == [7, 0] and y.dtype == torch.int64
    assert x.shape == (2, 12) and x.dtype == torch.float32
    assert x[1, 0].item() == pytest.approx(120 / 255) and x[0, 1].item() == pytest.approx(10 / 255)


def test_checks_always_use_small_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MNIST_FOLDER_VARIABLE, str(write_set(tmp_path, packed=False)))
    assert small_digits()[0].shape == (1797, 64)
    assert digits()[0].shape == (2, 12)


RIGHT = idx_bytes(IMAGE_BYTES, 2, 3, 4)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "ends in its header, after 0 bytes"),
        (RIGHT[:10], "ends in its header, after 10 bytes"),
        (RIGHT[:-1], "has only 23"),
        (RIGHT + b"\0", "has more"),
        (b"\x01" + RIGHT[1:], "begins with 01 00 08 03, not with 00 00 08 03"),
        (idx_bytes(IMAGE_BYTES, 2, 3, 4, kind=13), "begins with 00 00 0d 03"),
        (idx_bytes(bytes(2), 2), "Is it the right file"),
        (idx_bytes(b"", 1 << 31, 1 << 31, 1 << 31), "at most"),
        (b"<!DOCTYPE html>", "begins with 3c 21 44 4f"),
        (gzip.compress(RIGHT, mtime=0)[:-9], "cannot be unpacked"),
        (gzip.compress(RIGHT, mtime=0)[:6], "cannot be unpacked"),
        (gzip.compress(RIGHT, mtime=0)[:10] + b"\xff" * 20, "cannot be unpacked"),
        (gzip.compress(RIGHT[:-1], mtime=0), "has only 23"),
    ],
)
def test_error_mentions_broken_file(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=says) as caught:
        read_idx(path, dims=3)
    assert str(path) in str(caught.value)


def test_refuses_oversized_packed_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idx, "MAX_BYTES", 1000)
    path = tmp_path / "images.gz"
    path.write_bytes(gzip.compress(idx_bytes(bytes(5_000_000), 2, 3, 4)))
    with pytest.raises(DataFileError, match="has more"):
        read_idx(path, dims=3)
    path.write_bytes(gzip.compress(idx_bytes(bytes(2000), 20, 10, 10)))
    with pytest.raises(DataFileError, match="at most 1,000 are read"):
        read_idx(path, dims=3)


def test_reads_empty_set(tmp_path: Path) -> None:
    path = tmp_path / "images"
    path.write_bytes(idx_bytes(b"", 0, 3, 4))
    assert read_idx(path, dims=3).shape == (0, 3, 4)


def test_reports_folder_without_data_files(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=f"neither {IMAGES} nor {IMAGES}.gz"):
        digits(tmp_path)
    with pytest.raises(DataFileError, match="or none"):
        digits(tmp_path / "nowhere")


def test_reports_mismatched_images_and_labels(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="2 images and 3 labels"):
        digits(write_set(tmp_path, False, bytes([1, 2, 3])))
    with pytest.raises(DataFileError, match="a label is 10"):
        digits(write_set(tmp_path, False, bytes([1, 10])))
