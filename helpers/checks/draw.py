"""Draw worlds: sizes, roots, shapes, dtypes and values, as difficult as a task's text allows.

    plan(exercise, secret) -> a Draw for each case -> exercise.case(draw) -> Case

`draw.of` deals its options from a deck, which is used up over the cases of a plan before it is shuffled
again. So each option occurs in some case, and this case depends only on the secret. Each line that deals has
separate decks, so the options dealt by two lines in one case are independent.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int8)
SUMMED = (torch.float64, torch.float32, torch.int64)
"""Dtypes in which a sum over eight ranks neither overflows nor disappears in rounding."""

T = TypeVar("T")


@dataclass
class Draw:
    """The source of one case's sizes and values.

    ranks: the case's world size. small: whether tensors contain small whole numbers. low: whether whole
    numbers come from the lower end of their ranges, so that shapes, lengths and counts are also small.
    """

    rng: random.Random
    ranks: int
    decks: dict[Any, list[int]] = field(default_factory=dict)
    small: bool = False
    low: bool = False

    def of(self, *options: T) -> T:
        """Deal one of the options. All calls from one place, such as a loop, share a deck."""
        deck = self.decks.setdefault((_calling_place(), len(options)), [])
        if not deck:
            # deal positions, because the options themselves may be drawn
            deck += range(len(options))
            self.rng.shuffle(deck)
        return options[deck.pop()]

    def rank(self) -> int:
        """Deal a rank of this world."""
        return int(self.of(*range(self.ranks)))

    def whole(self, least: int, most: int) -> int:
        """Draw a whole number from `least` to `most`, both included."""
        return self.rng.randint(least, min(most, least + _LOW_DRAW_RANGE) if self.low else most)

    def length(self, least: int = 0) -> int:
        """Deal a length that ranks can share evenly, unevenly, or with nothing left for some ranks."""
        ranks = self.ranks
        kind = self.of("few", "even", "uneven", "last goes empty", "many")
        return max(
            least,
            {
                "few": self.whole(0, ranks),
                "even": ranks * self.whole(1, 3),
                "uneven": ranks * self.whole(1, 3) + self.whole(min(1, ranks - 1), ranks - 1),
                "last goes empty": max(1, 2 * ranks - 3),
                "many": self.whole(4 * ranks, 9 * ranks),
            }[kind],
        )

    def shape(self, dims: Sequence[int] = (0, 1, 2, 3), least: int = 0) -> tuple[int, ...]:
        """Pick a number of dimensions, and draw their sizes. If `least` is 0, there may be no elements."""
        count = self.of(*dims)
        shape = [self.whole(1, 4) for _ in range(count)]
        if count and least == 0 and self.of(True, *[False] * 6):
            shape[self.rng.randrange(count)] = 0
        return tuple(shape)

    def dtype(self, *options: torch.dtype) -> torch.dtype:
        """Deal a dtype; by default any floating or integer one that gloo sends."""
        return self.of(*(options or FLOATS + INTEGERS))

    def generator(self) -> torch.Generator:
        """Return a generator for torch's functions, such as torch.randn."""
        return torch.Generator().manual_seed(self.rng.randrange(1 << 31))

    def tensor(
        self,
        shape: Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
        scale: float | None = None,
    ) -> torch.Tensor:
        """Draw a tensor whose values reveal any conversion to a different dtype.

        Its values include negative numbers, zero and odd numbers and, in some cases, decimals that no
        binary fraction equals, tiny numbers, and numbers at the limit of the dtype's precision. Neighbors
        always differ.
        """
        dtype = self.dtype() if dtype is None else dtype
        shape = self.shape() if shape is None else shape
        count = 1
        for size in shape:
            count *= size
        numbers = [self.rng.randint(-99, 99) for _ in range(count)]
        # a result shifted by one element must differ
        for index in range(1, count):
            numbers[index] += numbers[index] == numbers[index - 1]
        # include exactly one zero, because a tensor that was never filled may contain zeros
        if count > 1:
            zero = self.rng.randrange(count)
            numbers = [number or 7 for number in numbers]
            numbers[zero] = 0
        values = torch.tensor(numbers, dtype=torch.float64).reshape(tuple(shape))
        # deal it even if it is not used, so that later draws do not depend on `small`
        scale = self.of(*_SCALES[dtype]) if scale is None else scale
        if self.small:
            return _small_numbers(numbers).reshape(tuple(shape)).to(dtype)
        if dtype.is_floating_point:
            # use sevenths, because no binary fraction equals them
            return (values / 7 * scale).to(dtype)
        values = values.to(torch.int64)
        if dtype is torch.uint8:
            values = values.remainder(255)
        return (values + int(scale) * values.sign()).to(dtype)

    def tensors(
        self, shape: Sequence[int] | None = None, dtype: torch.dtype | None = None
    ) -> list[torch.Tensor]:
        """Draw one tensor for each rank, all of one shape and dtype."""
        dtype = self.dtype() if dtype is None else dtype
        shape = self.shape() if shape is None else shape
        scale = self.of(*_SCALES[dtype])
        return [self.tensor(shape, dtype, scale) for _ in range(self.ranks)]

    def laid_out(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor in a dealt memory layout: unchanged, transposed, or every second element."""
        layout = self.of("plain", "transposed", "every second")
        if layout == "transposed" and tensor.dim() > 1:
            return tensor.transpose(0, -1).contiguous().transpose(0, -1)
        if layout == "every second" and tensor.dim():
            return torch.stack([tensor, torch.zeros_like(tensor)], dim=-1).flatten(-2)[..., ::2]
        return tensor


def _small_numbers(numbers: Sequence[int]) -> torch.Tensor:
    """Replace numbers with small whole numbers, from 1 to 10, in which neighbors always differ.

    0 does not occur, because leaving out a term of 0 would change nothing.
    """
    small: list[int] = []
    for number in numbers:
        digit = abs(number) % 9 + 1
        small.append(digit + 1 if small[-1:] == [digit] else digit)
    return torch.tensor(small, dtype=torch.float64)


def _calling_place() -> tuple[tuple[str, int], ...]:
    """Return the place of a call that deals: its line in an exercise's file, and the lines in this file."""
    # Identify a line by its instruction, so that two draws on one line have separate decks.
    frame, places = sys._getframe(2), []
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        places.append(("", frame.f_lasti + 10_000 * frame.f_lineno))
        frame = frame.f_back
    return (*places, (frame.f_code.co_filename, frame.f_lasti + 10_000 * frame.f_lineno))


# Factors for floats, and offsets for whole numbers, with which float32 and float64 lose precision.
_SCALES = {
    torch.float64: (1.0, 1e-300, 1e12),
    torch.float32: (1.0, 1e-30, 1e6),
    torch.float16: (1.0, 1 / 64),
    torch.bfloat16: (1.0, 1e-30),
    torch.int64: (0, 1 << 53),
    torch.int32: (0, 1 << 24),
    torch.uint8: (0,),
    torch.int8: (0,),
}


# Largest amount by which a number may exceed its minimum if numbers are drawn low.
_LOW_DRAW_RANGE = 2


def draw_world_sizes(sizes: Sequence[int], count: int, rng: random.Random) -> list[int]:
    """Return the world sizes of `count` cases: mostly the four smallest, and some larger ones."""
    small_sizes, large_sizes = sorted(sizes)[:4], sorted(sizes)[4:]
    chosen_sizes = [*small_sizes, rng.choice(large_sizes)] if large_sizes else small_sizes
    weights = [
        1 if size == 1 < len(chosen_sizes) else 3 if size <= 4 else 2 for size in chosen_sizes
    ]
    total = sum(weights)
    counts = [count * weight // total for weight in weights]
    # cases left over by rounding are given to the larger sizes, the largest first
    for index in range(count - sum(counts)):
        counts[-1 - index % len(counts)] += 1
    return [
        size for size, repeats in zip(chosen_sizes, counts, strict=True) for _ in range(repeats)
    ]


def plan_small_draws(ranks: int, count: int, seed: str) -> list[Draw]:
    """Return draws of `count` small cases of one world size, which are easy to read."""
    rng = random.Random(seed)
    decks: dict[Any, list[int]] = {}
    return [Draw(rng, ranks, decks, small=True, low=True) for _ in range(count)]


def plan_draws(sizes: Sequence[int], count: int, seed: str, *, small: bool = False) -> list[Draw]:
    """Return the draws of `count` cases, always the same for one seed.

    small: whether to use small whole numbers in tensors, with the same sizes, shapes, dtypes and roots.
    """
    rng = random.Random(seed)
    decks: dict[Any, list[int]] = {}
    return [Draw(rng, size, decks, small) for size in draw_world_sizes(sizes, count, rng)]
