"""Handwritten digits as two tensors, used for training from notebook 08 on.

By default they are the 1,797 digits with 8 x 8 pixels in scikit-learn's package. If you have MNIST as IDX
files, you can pass their folder instead. Nothing is downloaded.
"""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from helpers.data.idx import DataFileError, read_idx

MNIST_FOLDER_VARIABLE = "REAL_RANKS_MNIST"
"""The environment variable for a folder with MNIST's IDX files."""

IMAGES, LABELS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"


def digits(path: str | Path | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Return handwritten digits: images (samples, pixels), float32 from 0 to 1, and labels 0 to 9.

    Args:
        path: A folder with `train-images-idx3-ubyte` and `train-labels-idx1-ubyte`, plain or with .gz. By
            default it is the folder in REAL_RANKS_MNIST. If this variable is not set, scikit-learn's 1,797
            digits are returned.

    Raises:
        DataFileError: A file is missing or invalid.
    """
    folder = path if path is not None else os.environ.get(MNIST_FOLDER_VARIABLE) or None
    if folder is not None:
        return mnist(Path(folder))
    images, labels = _small()
    return images.clone(), labels.clone()


def small_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return scikit-learn's digits, the same on every machine. Environment variables are ignored."""
    images, labels = _small()
    return images.clone(), labels.clone()


def mnist(folder: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Read the training set of MNIST, or of a data set in its format, from IDX files in `folder`."""
    images = read_idx(_find(folder, IMAGES), dims=3)
    labels = read_idx(_find(folder, LABELS), dims=1)
    if len(images) != len(labels):
        raise DataFileError(
            f"{folder}: {len(images):,} images and {len(labels):,} labels. "
            "Do the two files belong to the same data set?"
        )
    if len(labels) and labels.max() > 9:
        raise DataFileError(f"{folder}: a label is {labels.max().item()}; digits end at 9.")
    return images.flatten(1).float() / 255, labels.long()


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise DataFileError(
        f"{folder} has neither {name} nor {name}.gz. Give the folder that holds MNIST's IDX files, "
        f"or none (and unset {MNIST_FOLDER_VARIABLE}) for scikit-learn's digits."
    )


@cache
def _small() -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.from_numpy(_rows())  # 64 pixels from 0 to 16, and the digit
    return rows[:, :-1].float() / 16, rows[:, -1].long()


def _rows() -> np.ndarray:
    """Return the data of `sklearn.datasets.load_digits`, without spending two seconds on importing it."""
    package = find_spec("sklearn")
    if package is not None and package.origin is not None:
        file = Path(package.origin).with_name("datasets") / "data" / "digits.csv.gz"
        if file.is_file():
            return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits  # This import reports the missing package or file.

    found = load_digits()
    return np.column_stack([found.data, found.target])
