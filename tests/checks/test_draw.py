"""Test that draws are the same for one secret, cover all options, and contain difficult values."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from helpers.checks.draw import FLOATS, INTEGERS, Draw, draw_world_sizes, plan_draws

SIZES = (1, 2, 3, 4, 5, 6, 7, 8)


@pytest.mark.sample(20)
def test_draws_depend_only_on_secret() -> None:
    def draw_lists(seed: str) -> list[list[int]]:
        return [draw.tensor((5,), torch.int64).tolist() for draw in plan_draws(SIZES, 24, seed)]

    assert draw_lists("one") == draw_lists("one")
    assert draw_lists("one") != draw_lists("two")


def test_draws_mostly_small_worlds() -> None:
    large = set()
    for seed in range(40):
        sizes = draw_world_sizes(SIZES, 24, random.Random(seed))
        counts = Counter(sizes)
        assert len(sizes) == 24
        assert min(counts[2], counts[3], counts[4]) >= 4 and counts[1] >= 1
        large |= {size for size in sizes if size > 4}
    assert large == {5, 6, 7, 8}


@pytest.mark.parametrize("sizes", [(2,), (1,), (2, 4), (2, 4, 8), (3, 5, 6, 7, 8)])
def test_draws_only_allowed_world_sizes(sizes: tuple[int, ...]) -> None:
    draw_lists = draw_world_sizes(sizes, 24, random.Random(1))
    assert len(draw_lists) == 24 and set(draw_lists) <= set(sizes)


def test_options_are_drawn_equally_often() -> None:
    draws = plan_draws(SIZES, 24, "a secret")
    assert set(Counter(draw.of("a", "b", "c") for draw in draws).values()) == {8}


def test_separate_draws_are_independent() -> None:
    draws = plan_draws(SIZES, 60, "a secret")
    pairs = Counter((draw.of(True, False), draw.of(True, False)) for draw in draws)
    assert len(pairs) == 4 and min(pairs.values()) > 5
    shapes = Counter((draw.shape((1, 2), 1), draw.shape((1, 2), 1)) for draw in draws)
    dims = {(len(one), len(other)) for one, other in shapes}
    assert dims == {(1, 1), (1, 2), (2, 1), (2, 2)}
    assert {type(draw.of(False, True)) for draw in draws} == {bool}
    assert {type(draw.of(0, 1)) for draw in draws} == {int}


def test_draws_random_and_constant_options_evenly() -> None:
    draw_lists = [draw.of(-1, 5 + draw.whole(0, 99)) for draw in plan_draws(SIZES, 24, "a secret")]
    assert draw_lists.count(-1) == 12


def test_draws_every_root_of_small_world() -> None:
    draws = plan_draws((3,), 24, "a secret")
    assert Counter(draw.rank() for draw in draws) == {0: 8, 1: 8, 2: 8}
    assert any(draw.rank() == draw.rank() for draw in draws)


def test_lengths_include_indivisible_and_short_values() -> None:
    lengths = {draw.length() for draw in plan_draws((4,), 24, "a secret")}
    each = {-(-length // 4) for length in lengths}
    assert any(length % 4 == 0 for length in lengths) and any(length % 4 for length in lengths)
    assert any(3 * -(-length // 4) > length for length in lengths) and max(each) >= 4


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_drawn_values_reveal_dtype_conversion(dtype: torch.dtype) -> None:
    narrow = {torch.float64: torch.float32, torch.float32: torch.float16}.get(dtype)
    narrow = narrow or (torch.float32 if dtype in INTEGERS else torch.float8_e4m3fn)
    draw_lists = [draw.tensor((40,), dtype) for draw in plan_draws((2,), 24, "a secret")]
    lost = [bool((x.to(narrow).to(dtype) != x).any()) for x in draw_lists]
    small = dtype in {torch.uint8, torch.int8}  # float32 distinguishes all of their values
    assert any(lost) is not small
    if dtype is torch.int64:
        assert any(bool((x.double().long() != x).any()) for x in draw_lists)
    for x in draw_lists:
        assert x.dtype is dtype and (x == 0).any() and bool((x[1:] != x[:-1]).all())
        assert dtype is torch.uint8 or (x < 0).any()


def test_shapes_span_zero_to_three_dimensions() -> None:
    shapes = [draw.shape() for draw in plan_draws((2,), 200, "a secret")]
    assert {len(shape) for shape in shapes} == {0, 1, 2, 3}
    assert any(0 in shape for shape in shapes)
    assert not any(0 in draw.shape(least=1) for draw in plan_draws((2,), 200, "a secret"))


def test_changed_memory_order_preserves_values() -> None:
    contiguous = []
    for draw in plan_draws((2,), 24, "a secret"):
        x = draw.tensor((3, 4), torch.float32)
        y = draw.laid_out(x)
        assert torch.equal(x, y)
        contiguous.append(y.is_contiguous())
    assert any(contiguous) and not all(contiguous)


def test_rank_values_differ_at_similar_scale() -> None:
    draw = Draw(random.Random(5), 4)
    mine = draw.tensors((6,), torch.float64)
    assert len({tuple(x.tolist()) for x in mine}) == 4
    sizes = [float(x.abs().max()) for x in mine]
    assert max(sizes) < 1000 * min(sizes)
