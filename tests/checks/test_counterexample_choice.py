"""Show a small case of a wrong answer that is not degenerate, and fails like the others."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from helpers.answers.build import Answer
from helpers.check_result import CaseVerdict, CheckResult, Outcome
from helpers.checks.case import Case
from helpers.checks.check_answer import grade
from helpers.checks.counterexample import SMALL_NUMBERS_ADVICE
from helpers.checks.draw import Draw, plan_small_draws
from helpers.checks.exercise import Exercise
from helpers.checks.judge import label_of
from helpers.checks.kinds import Kind
from helpers.checks.registry import exercises, get
from helpers.views.verdict import verdict_text


def check_source(name: str, source: str) -> CheckResult:
    header = "import torch\nimport torch.distributed as dist\n"
    return grade(get(name), Answer(name, header + source, ()), str)


def shown_case(result: CheckResult) -> CaseVerdict:
    return next(case for case in result.cases if not case.passed)


# --- choose ---------------------------------------------------------------------------------------


def case(*given: Any, **more: Any) -> Case:
    return Case("a case", [(x,) for x in given], None, **more)


def test_degenerate_case_ranks_as_less_readable() -> None:
    plain = case(torch.arange(6.0), torch.arange(6.0) + 1)
    one, empty = case(torch.ones(1), torch.zeros(1)), case(torch.ones(0), torch.ones(2))
    zero, equal = case(torch.zeros(2), torch.zeros(2)), case(torch.ones(2), torch.ones(2))
    alone, dull = case(torch.arange(2.0)), case(*plain.given[0], *plain.given[1], telling=False)
    for other in (one, empty, zero, equal, alone, dull):
        assert plain.reading_order < other.reading_order, other
    larger = case(torch.arange(7.0), torch.arange(7.0) + 1)
    assert plain.reading_order < larger.reading_order < alone.reading_order
    assert case(3, 4).reading_order < case(3, 4, 5).reading_order


NOT_TRANSPOSED = """
def transpose_blocks(rank, world_size, x):
    send = [b.contiguous() for b in x.chunk(world_size, dim=1)]
    got = [torch.empty_like(b) for b in send]
    dist.all_to_all(got, send)
    return torch.cat(got)
"""
ROWS_FOR_COLS = """
def row_and_column_groups(rank, world_size, rows, cols, x):
    row_groups = [dist.new_group(list(range(r * rows, (r + 1) * rows))) for r in range(cols)]
    col_groups = [dist.new_group(list(range(c, world_size, rows))) for c in range(rows)]
    a, b = x.clone(), x.clone()
    dist.all_reduce(a, group=row_groups[rank // rows])
    dist.all_reduce(b, group=col_groups[rank % rows])
    return a, b
"""


@pytest.mark.extended
def test_prefers_larger_blocks_to_single_elements() -> None:
    label = shown_case(check_source("transpose_blocks", NOT_TRANSPOSED)).label
    assert label.startswith("2 ranks, a 4x6 matrix") or label.startswith("2 ranks, a 6x4 matrix")


@pytest.mark.extended
def test_shows_swapped_axes_on_nonsquare_grid() -> None:
    result = check_source("row_and_column_groups", ROWS_FOR_COLS)
    verdict = shown_case(result)
    assert "2 x 3" in verdict.label or "3 x 2" in verdict.label
    assert verdict.advice.startswith("You confuse rows and columns:")
    assert any(case.passed and "2 x 2" in case.label for case in result.cases)


@pytest.mark.extended
def test_replaces_at_most_one_drawn_case() -> None:
    result = check_source("row_and_column_groups", ROWS_FOR_COLS)
    exercise = get("row_and_column_groups")
    drawn = [label_of(exercise, case) for case in exercise.draw()]
    labels = [case.label for case in result.cases]
    # a smaller case like one of them is shown
    assert len(labels) == len(drawn) and len(set(drawn) - set(labels)) <= 1


# --- shrink ---------------------------------------------------------------------------------------

UNTIL_THE_NEXT = """
def step_breakdown(spans, steps):
    def covered(parts):
        total, until = 0.0, float("-inf")
        for start, end in sorted(parts):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total
    found = []
    for begin, end in steps:
        cut = [(k, max(s, begin), min(e, end)) for k, s, e in spans if s < end and e > begin]
        of = lambda *kinds: covered([(s, e) for k, s, e in cut if k in kinds])
        one, two = of("compute"), of("compute", "data")
        three = of("compute", "data", "communication")
        found.append({"compute": one, "data": two - one, "exposed": three - two,
                      "idle": end - begin - three})
    return found
"""


def test_finds_short_whole_millisecond_case() -> None:
    result = check_source("step_breakdown", UNTIL_THE_NEXT)
    spans, steps = result.given
    assert len(spans) <= 6 and len(steps) <= 2
    assert all(float(time).is_integer() for _, *times in spans for time in times)


def test_hidden_result_skips_smaller_case_search() -> None:
    exercise = get("step_breakdown")
    answer = Answer(exercise.name, UNTIL_THE_NEXT, ())
    result = grade(exercise, answer, str, matches={})
    assert {shown_case(result).label} <= {case.label for case in exercise.draw()}


@pytest.mark.extended
def test_small_numbers_advice_needs_several_passes() -> None:
    # each rank forwards its own chunk instead of the sum
    own = """
def pipeline_sum(rank, world_size, x, chunk):
    done = []
    for part in x.split(chunk):
        total = part.clone()
        if rank > 0:
            before = torch.empty_like(part)
            dist.recv(before, rank - 1)
            total += before
        if rank < world_size - 1:
            dist.send(part.contiguous(), rank + 1)
        done.append(total)
    return torch.cat(done)
"""
    result = check_source("pipeline_sum", own)
    assert result.outcome is Outcome.WRONG
    for case in result.cases:
        assert SMALL_NUMBERS_ADVICE not in case.message


def test_small_draws_contain_no_zero() -> None:
    draw = Draw(random.Random(3), 2, small=True)
    assert all(bool((draw.tensor((50,), torch.int64) > 0).all()) for _ in range(5))


def test_small_draws_stay_near_minimum() -> None:
    for draw in plan_small_draws(3, 20, "a seed"):
        assert draw.ranks == 3 and draw.small
        assert draw.whole(5, 10**6) <= 7 and draw.whole(0, 1) <= 1


@pytest.mark.parametrize("name", sorted(exercises()))
def test_each_exercise_can_draw_small_cases(name: str) -> None:
    exercise = get(name)
    ranks = next((size for size in exercise.sizes if size > 1), exercise.sizes[0])
    for draw in plan_small_draws(ranks, 3, f"low/{name}"):
        assert exercise.case(draw).world_size >= 1


# --- a pure function ------------------------------------------------------------------------------


def sums(draw: Draw) -> Case:
    numbers = [draw.whole(2, 900) for _ in range(draw.whole(2, 9))]
    return Case(
        f"{len(numbers)} numbers", [(numbers, 1000)], sum(numbers), telling=len(numbers) > 2
    )


def test_shown_case_lists_arguments_by_name() -> None:
    exercise = Exercise(sums, kind=Kind.LOCAL, sizes=(1,), name="f")
    source = "def f(numbers, most):\n    return sum(numbers) + 1\n"
    result = grade(exercise, Answer("f", source, ()), str)
    verdict = shown_case(result)
    numbers, most = result.given
    assert result.outcome is Outcome.WRONG and verdict.label == "3 numbers"
    assert max(numbers) <= 4 and most == 1000
    assert verdict.rows[0].given == f"numbers={numbers}, most=1000"


def test_expected_value_omits_judge_function() -> None:
    result = check_source("quantize_with_memory", "def quantize_with_memory(x, memory, block): ...")
    assert {row.expected for row in shown_case(result).rows} == {""}
    assert "function" not in verdict_text(result)
