"""The pictures of the planner: bars as long as the numbers, a limit, and words for the same."""

from __future__ import annotations

import pytest

from helpers.exercises.nb23_capstone.pictures import published_runs
from helpers.plan.presets import LLAMA_70B, h100
from helpers.plan.published import PUBLISHED
from helpers.plan.search import fastest, one_for_each_mesh
from helpers.views.plan_bars import plan_bars


def test_each_plan_has_a_bar_of_its_time_and_one_of_its_memory() -> None:
    time, memory = plan_bars("Llama 3 70B", 512, batch=1024, shown=4).figure.axes
    plans = one_for_each_mesh(fastest(LLAMA_70B, h100(512), 1024))[:4]
    ends = [bar.get_x() + bar.get_width() for bar in time.containers[-1]]
    assert ends == pytest.approx([plan.time.total_s for plan in plans])
    ends = [bar.get_x() + bar.get_width() for bar in memory.containers[-1]]
    assert ends == pytest.approx([plan.memory.total for plan in plans])
    (limit,) = memory.lines
    assert list(limit.get_xdata()) == [80 * 10**9] * 2
    bottom, top = time.get_ylim()
    assert bottom > top, "the fastest is on top"


def test_the_text_names_layout_time_and_memory() -> None:
    first, *rest = plan_bars("Llama 3 8B", 8, batch=128).text.splitlines()
    assert first == "Llama 3 8B: 8.0 billion parameters on 8 H100, 128 samples a step:"
    assert len(rest) == 6
    assert rest[0].startswith("  DP 8 x TP 1 x PP 1, ZeRO-2, microbatch 1: 13.7 s a step (compute")
    assert rest[0].endswith("70.8 GB a GPU")


def test_another_network_gives_another_picture() -> None:
    slow = plan_bars("Llama 3 70B", 512, batch=2048, network_gb_s=4)
    assert slow.text.splitlines()[1].startswith("  DP 32 x TP 4 x PP 4, ZeRO-1")
    assert slow.text != plan_bars("Llama 3 70B", 512, batch=2048).text


def test_where_nothing_fits_the_picture_says_by_how_much() -> None:
    picture = plan_bars("Llama 3 405B", 8, batch=64)
    assert "nothing fits: the smallest layout, DP 1 x TP 8 x PP 1" in picture.text
    assert "of 80 GB" in picture.text
    assert picture._repr_png_().startswith(b"\x89PNG")


def test_a_batch_that_no_layout_can_deal_out_is_said() -> None:
    assert "no layout deals this batch out" in plan_bars("Llama 3 8B", 24 * 7, batch=1).text


def test_every_published_run_has_a_mark_at_its_ratio() -> None:
    picture = published_runs(PUBLISHED[:4])
    (axes,) = picture.figure.axes
    marks = [x for line in axes.lines for x in line.get_xdata() if line.get_label()[0] != "_"]
    ratios = [run.predict().time.total_s / run.step_s for run in PUBLISHED[:4]]
    assert marks == pytest.approx(ratios)
    assert "GPT 7.5B, 128 A100, 32 x 4 x 1, recomputed: published 3.70 s" in picture.text


def test_the_text_of_all_runs_cites_every_source() -> None:
    text = published_runs().text
    for source in {run.source for run in PUBLISHED}:
        assert source in text
    assert text.count("ratio") == len(PUBLISHED)
