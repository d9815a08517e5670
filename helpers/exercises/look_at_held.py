"""Which of the tensors that an answer of notebook 11 still holds is one too many, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from helpers.exercises.sgd_models import classifier

_SHOWN = 5


def in_tensors(sizes: Sequence[int]) -> str:
    """Say how many elements each held storage has, the largest first."""
    shown = ", ".join(f"{size:,}" for size in sizes[:_SHOWN])
    return f"in tensors of {shown}{', ...' if len(sizes) > _SHOWN else ''}"


def odd_one(sizes: Sequence[int], known: Mapping[int, str]) -> str:
    """Name the largest of the held storages whose size tells what it is, or give ""."""
    size = next((size for size in sizes if size in known), None)
    return "" if size is None else f"The one with {size:,} elements is {known[size]}. "


def of_the_classifier(own: int, ranks: int) -> dict[int, str]:
    """Give what the whole tensors of the check's classifier are, by their numbers of elements."""
    named = {
        p.numel(): f"as large as `{name}`: a whole weight or gradient"
        for name, p in classifier(0).named_parameters()
    }
    flat = "all weights or all gradients in one, flat"
    whole = sum(p.numel() for p in classifier(0).parameters())
    return named | {whole: flat, own * ranks: f"{flat} and padded"}


def of_the_layers(widths: Sequence[int], ranks: int) -> dict[int, str]:
    """Give what a stack's whole weights are, plain and padded, by their numbers of elements."""
    known: dict[int, str] = {}
    for number, (inside, outside) in enumerate(pairwise(widths)):
        count = inside * outside
        by_rows = -(-outside // ranks) * ranks * inside
        padded = f"as large as layer {number}'s whole weight, padded"
        known |= {-(-count // ranks) * ranks: padded, by_rows: padded}
        known[count] = f"as large as layer {number}'s whole weight"
    return known
