"""Test stopwatches with known true times, and the rules for judging a fit."""

from __future__ import annotations

from statistics import mean, median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.checks.case import Measured
from helpers.checks.stopwatch import Script, Stopwatch
from helpers.exercises.nb05_collective_algorithms.crossover import crossover_bytes, judge_fit
from helpers.exercises.nb05_collective_algorithms.in_ranks import run_with_scripted_messages

TRUTH_S = 1e-4
seeds = st.integers(0, 10**6)


def watch(seed: int) -> Stopwatch:
    return Stopwatch(Script(seed, noise_s=0.04 * TRUTH_S), lambda n: TRUTH_S + n * 1e-9)


@given(seeds)
def test_timings_are_never_too_short(seed: int) -> None:
    timed = watch(seed)
    assert all(timed(8) >= TRUTH_S for _ in range(50))


@given(seeds, st.integers(5, 40))
def test_robust_estimates_find_true_time(seed: int, count: int) -> None:
    timed = watch(seed)
    timed(0)
    timings = [timed(0) for _ in range(count)]
    assert median(timings) == pytest.approx(TRUTH_S, rel=0.05)
    assert min(timings) == pytest.approx(TRUTH_S, rel=0.05)
    assert mean(sorted(timings)[count // 5 : count - count // 5]) == pytest.approx(
        TRUTH_S, rel=0.05
    )
    assert mean(timings) > 1.2 * TRUTH_S


@given(seeds)
def test_first_timing_per_length_is_slow(seed: int) -> None:
    timed = watch(seed)
    assert all(timed(n) > 5 * TRUTH_S for n in (1, 1000, 100_000))


@given(seeds)
def test_seed_determines_timings_in_any_order(seed: int) -> None:
    one, other = watch(seed), watch(seed)
    ones = [(one(1), one(2)) for _ in range(9)]
    twos, firsts = [other(2) for _ in range(9)], [other(1) for _ in range(9)]
    assert ones == list(zip(firsts, twos, strict=True))
    assert one.timings == {(1,): 9, (2,): 9}


def test_message_size_requires_integer_bytes() -> None:
    for nbytes in (-1, 0.5, 1e6):
        with pytest.raises(ValueError, match="number of bytes as an int"):
            run_with_scripted_messages(lambda measure, ranks, n=nbytes: measure(n), 0, 1, float, 4)
    assert run_with_scripted_messages(
        lambda measure, ranks: (measure(7), ranks), 0, 1, float, 4
    ) == (
        7,
        4,
    )


@pytest.mark.parametrize("ranks", [4, 8, 16, 64])
def test_algorithms_cost_same_at_crossover(ranks: int) -> None:
    alpha, beta = 5e-5, 4e-10
    n, doublings = crossover_bytes(alpha, beta, ranks), ranks.bit_length() - 1
    ring = 2 * (ranks - 1) * (alpha + beta * n / ranks)
    assert doublings * (alpha + beta * n) == pytest.approx(ring)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        ((1e-4, 1e-9, 8e5), ""),
        ([1.05e-4, 0.95e-9, 900_000], ""),
        ((1e-4, 1e-9), "three numbers"),
        (None, "three numbers"),
        (("a", "b", "c"), "three numbers"),
        ((float("nan"), 1e-9, 8e5), "alpha is"),
        ((2e-4, 1e-9, 8e5), "alpha is too large"),
        ((1e-4, 2e-9, 8e5), "Take beta from long messages"),
        ((1e2, 1e-9, 8e5), "not in other units"),
        ((1e-4, 1e9, 8e5), "Your beta is the bandwidth"),
        ((5e-5, 1e-9, 8e5), "alpha is too small"),
        ((1e-2, 1e-9, 8e5), "Take it from short messages, where"),
        ((1e-4, 1e-9, 1e5), "Set the two costs equal"),
    ],
)
def test_explains_each_kind_of_wrong_fit(got: object, says: str) -> None:
    found = judge_fit(1e-4, 1e-9, 8e5)(Measured(got, {}), 0)
    assert bool(found) == bool(says)
    assert found is None or says in f"{found.what} {found.advice}"
