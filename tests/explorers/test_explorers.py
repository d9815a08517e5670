"""Each explorer draws what its controls say: at both ends of every control, and true to what it claims."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from helpers.explorers import algorithms, buckets, checkpoints, memory, pipeline, samples
from helpers.explorers.explore import NAMES, explore
from helpers.views.live import WIDGET_VIEW
from helpers.views.schedule_times import idle_share, planned


def ends(name: str) -> list[dict[str, Any]]:
    """Return the start with each control at its first and at its last value."""
    module = import_module(f"helpers.explorers.{name}")
    found = [module.START]
    for control in module.CONTROLS:
        values = list(control.options.values())
        found += [module.START | {control.name: value} for value in (values[0], values[-1])]
    return found


@pytest.mark.parametrize("name", [n for n in NAMES if n != "collective"])
def test_it_draws_at_both_ends_of_every_control(name: str) -> None:
    show = import_module(f"helpers.explorers.{name}").show
    for setting in ends(name):
        shown = show(**setting)
        assert shown.words[-1] in ".?" and all(picture.text for picture in shown.pictures)
    assert shown.pictures[0]._repr_png_().startswith(b"\x89PNG")


def test_collectives_run_on_real_ranks() -> None:
    module = import_module("helpers.explorers.collective")
    for op in module.CONTROLS[0].options.values():
        shown = module.show(op=op, ranks=3, root=5, reduction="MAX")
        assert op in shown.words and "root 2" in shown.words or "root" in shown.words
        assert "did not return" not in shown.pictures[0].text
    text = module.show(op="all_reduce", ranks=2, root=0, reduction="PRODUCT").pictures[0].text
    assert "11" in text and "24" in text  # 1 x 11 and 2 x 12


@pytest.mark.parametrize("name", NAMES)
def test_while_outputs_are_compared_only_text_and_image_are_given(name: str) -> None:
    shown = explore(name)
    assert set(shown._repr_mimebundle_()) == {"text/plain"}
    assert shown._repr_png_().startswith(b"\x89PNG")


def test_moving_a_control_draws_again() -> None:
    widget = explore("pipeline").widget()
    panel, words, images = widget.children
    before = words.value, images.value
    controls = {getattr(c, "words", "") or c.description: c for c in panel.children}
    controls["microbatches"].value = 16
    assert "16 microbatches" in words.value
    assert (words.value, images.value) != before and "<img " in images.value
    widget.close_all()


def test_live_the_page_gets_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helpers.views.live.widgets_can_live", lambda: True)
    assert explore("memory")._repr_mimebundle_()[WIDGET_VIEW]["model_id"]


@pytest.mark.parametrize(
    ("name", "setting", "says"),
    [
        ("rings", {}, "there is no explorer 'rings'"),
        ("pipeline", {"stages": 99}, "stages offers 1, 2"),
        ("pipeline", {"depth": 3}, "what about depth"),
        ("cost", {"model": "GPT-5"}, "model offers Llama 3 8B"),
    ],
)
def test_what_is_not_offered_is_refused(name: str, setting: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        explore(name, **setting)


@pytest.mark.parametrize("ranks", range(2, 9))
def test_ring_and_tree_leave_nobody_without_the_sum(ranks: int) -> None:
    has = [{rank} for rank in range(ranks)]
    for pairs in algorithms.tree(ranks):
        for src, dst in pairs:
            has[dst] = has[dst] | has[src]
    assert all(own == set(range(ranks)) for own in has)
    assert len(algorithms.ring(ranks)) == 2 * (ranks - 1)
    for plan in (algorithms.tree(ranks), algorithms.ring(ranks)):
        for pairs in plan:  # one port: a rank sends and takes one message a round
            assert len({s for s, _ in pairs}) == len({d for _, d in pairs}) == len(pairs)


def test_buckets_hide_all_but_the_last_on_a_fast_network_and_nothing_as_one() -> None:
    assert buckets.bucket_sizes(7, 3) == [3, 3, 1]
    fast = buckets.reduced([1] * 4, 2.0, 0.5, 0.0)
    assert fast[-1] == (6.0, 6.0, 6.5)
    assert buckets.reduced([4], 2.0, 0.5, 0.0) == [(6.0, 6.0, 8.0)]
    slow = buckets.reduced([1] * 4, 0.0, 2.0, 0.0)
    assert [done for *_, done in slow] == [3.0, 5.0, 7.0, 9.0]


def idle(kind: str, stages: int, microbatches: int) -> float:
    orders = [pipeline.ORDERS[kind](stage, stages, microbatches) for stage in range(stages)]
    return idle_share([[(p.start, p.end) for p in lane] for lane in planned(orders)])


@pytest.mark.parametrize("stages", range(2, 9))
@pytest.mark.parametrize("microbatches", [1, 3, 8, 16])
def test_bubbles_are_those_of_the_papers(stages: int, microbatches: int) -> None:
    bubble = (stages - 1) / (stages - 1 + microbatches)
    assert idle("GPipe", stages, microbatches) == pytest.approx(bubble)
    assert idle("1F1B", stages, microbatches) == pytest.approx(bubble)
    if microbatches >= stages:  # ZB-H1: (p - 1)(F + I - W) of idle time, a third of 1F1B's
        third = (stages - 1) / (stages - 1 + 3 * microbatches)
        assert idle("zero bubble", stages, microbatches) == pytest.approx(third)


def test_a_parameter_takes_sixteen_bytes_whatever_its_dtype() -> None:
    for numbers in (4, 2):
        whole = memory.parts(1000, 8, numbers, 0)
        assert sum(whole.values()) == 16_000
        assert sum(memory.parts(1000, 8, numbers, 3).values()) == 2000


def test_the_interval_that_is_named_loses_least() -> None:
    (picture,) = checkpoints.show(60, 300, 256).pictures
    lines = {line.get_label(): line.get_xydata() for line in picture.figure.axes[0].lines}
    losses = sorted((lost, minutes) for minutes, lost in lines["both"])
    assert losses[0][1] == pytest.approx((2 * 60 * 300 * 86_400 / 256) ** 0.5 / 60)


def test_samples_are_those_of_torchs_sampler() -> None:
    shown = samples.show(10, 4, shuffle=False, drop_last=False, set_epoch=True)
    assert "3 steps an epoch, 0 samples left out, 2 samples given out twice" in shown.words
    forgotten = samples.show(10, 4, shuffle=True, drop_last=True, set_epoch=False)
    assert "2 samples left out" in forgotten.words and "is the same" in forgotten.words
