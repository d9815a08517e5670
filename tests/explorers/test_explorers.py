"""Test the figures of each explorer; `test_page.py` compares the page with these functions."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from helpers.explorers import algorithms, buckets, checkpoints, collective, memory, pipeline
from helpers.explorers.explore import NAMES, explore
from helpers.explorers.form import fill, javascript_of, text_of


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES)
def test_explorer_shows_reproducible_text_and_page(name: str) -> None:
    bundle = explore(name)._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].endswith(".")
    assert bundle == explore(name)._repr_mimebundle_()


@pytest.mark.parametrize("name", NAMES)
def test_explorer_source_never_closes_script_tag(name: str) -> None:
    source = javascript_of(import_module(f"helpers.explorers.{name}"))
    assert "</script" not in source and "<!--" not in source


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{two:rank}, {one:rank}, {two:batch}", "2 ranks, 1 rank, 2 batches"),
        ("{idle:0%}, {idle:1%}", "12%, 12.5%"),
        ("{many}, {many:1}, {many:bytes}", "1,234,567, 1,234,567.0, 1.2 MB"),
        ("{many:seconds}, {two:seconds}, {idle:seconds}", "1,234,567 s, 2.00 s, 125 ms"),
        ("{tiny:seconds}, {none:seconds}", "2.50 µs, 0 s"),
        ("{name}", "ring"),
    ],
)
def test_fills_values_into_templates(template: str, text: str) -> None:
    values = {"one": 1, "two": 2, "idle": 0.125, "many": 1_234_567, "tiny": 2.5e-6, "none": 0.0}
    assert fill(template, values | {"name": "ring"}) == text


@pytest.mark.parametrize(
    ("name", "setting", "says"),
    [
        ("rings", {}, "there is no explorer 'rings'"),
        ("pipeline", {"stages": 99}, "stages offers 1, 2"),
        ("pipeline", {"depth": 3}, "unknown control: depth"),
        ("cost", {"model": "GPT-5"}, "model offers Llama 3 8B"),
    ],
)
def test_refuses_unavailable_choices(name: str, setting: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        explore(name, **setting)


@pytest.mark.extended
def test_collectives_run_on_real_ranks() -> None:
    for op in collective.CONTROLS[0].options.values():
        text = repr(explore("collective", op=op, ranks=3, root=2, reduction="MAX"))
        assert f"{op} " in text and "root" in text
    rows = collective.plan("all_reduce", 2, 0, "PRODUCT")["rows"]
    assert [row["has"] for row in rows] == [[[11, 24]]] * 2  # 1 x 11 and 2 x 12
    rows = collective.plan("scatter", 3, 5, "SUM")["rows"]  # the last of three ranks
    assert [row["had"] for row in rows] == [[], [], [[20], [21], [22]]]
    assert [row["has"] for row in rows] == [[[20]], [[21]], [[22]]]


@pytest.mark.parametrize("ranks", range(2, 9))
def test_ring_and_tree_sum_all_ranks(ranks: int) -> None:
    has = [{rank} for rank in range(ranks)]
    for pairs in algorithms.tree(ranks):
        for src, dst in pairs:
            has[dst] = has[dst] | has[src]
    assert all(own == set(range(ranks)) for own in has)
    assert len(algorithms.ring(ranks)) == 2 * (ranks - 1)
    for plan in (algorithms.tree(ranks), algorithms.ring(ranks)):
        # One port: a rank sends at most one message in a round, and receives at most one
        for pairs in plan:
            assert len({s for s, _ in pairs}) == len({d for _, d in pairs}) == len(pairs)


@pytest.mark.parametrize("ranks", range(4, 9))
def test_ring_is_faster_beyond_crossing(ranks: int) -> None:
    setting = algorithms.START_SETTING | {"ranks": ranks, "nbytes": 4**10}
    crossing = algorithms.plan(**setting)["crossing"]
    for factor, cheaper in ((0.9, "tree"), (1.1, "ring")):
        length = round(crossing * factor)
        time = {
            name: algorithms.plan(**setting | {"algorithm": name, "nbytes": length})["time"]
            for name in ("ring", "tree")
        }
        assert min(time, key=time.__getitem__) == cheaper


def test_fast_network_exposes_only_last_bucket() -> None:
    assert buckets.bucket_sizes(7, 3) == [3, 3, 1]
    fast = buckets.reduction_times([1] * 4, 2.0, 0.5, 0.0)
    assert fast[-1] == (6.0, 6.0, 6.5)
    assert buckets.reduction_times([4], 2.0, 0.5, 0.0) == [(6.0, 6.0, 8.0)]
    slow = buckets.reduction_times([1] * 4, 0.0, 2.0, 0.0)
    assert [done for *_, done in slow] == [3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize("stages", range(2, 9))
@pytest.mark.parametrize("microbatches", [1, 3, 8, 16])
def test_bubbles_match_paper_formulas(stages: int, microbatches: int) -> None:
    bubble = (stages - 1) / (stages - 1 + microbatches)
    for kind in ("GPipe", "1F1B"):
        assert pipeline.plan(kind, stages, microbatches)["idle"] == pytest.approx(bubble)
    if microbatches >= stages:  # ZB-H1: (p - 1)(F + I - W) of idle time, a third of 1F1B's
        third = (stages - 1) / (stages - 1 + 3 * microbatches)
        found = pipeline.plan("zero bubble", stages, microbatches)["idle"]
        assert found == pytest.approx(third)


def test_parameter_memory_is_independent_of_dtype() -> None:
    for numbers in (4, 2):
        assert memory.parts(1000, 8, numbers, 0)["total"] == 16_000
        assert memory.parts(1000, 8, numbers, 3)["total"] == 2000


def test_recommended_interval_minimizes_loss() -> None:
    plan = checkpoints.plan(60, 300, 256)
    best = min(plan["rows"], key=lambda row: row["both"])
    assert best["minutes"] == plan["best"]
    assert plan["best"] == pytest.approx((2 * 60 * 300 * 86_400 / 256) ** 0.5 / 60)


def test_samples_match_torch_sampler() -> None:
    text = repr(explore("samples"))
    assert "given 3 samples per epoch. 0 samples left out, 2 samples given more" in text
    forgotten = repr(explore("samples", shuffle=True, drop_last=True, set_epoch=False))
    assert "2 samples left out" in forgotten and forgotten.endswith("is the same.")


def test_text_describes_best_layout() -> None:
    text = repr(explore("cost"))
    assert "Best: DP 128 x TP 4 x PP 1, ZeRO-3, microbatch 1. A step takes 30.4 s" in text
    assert "1 trillion tokens take 21.0 days" in text
    assert "Nothing fits" in repr(explore("cost", memory_gb=16, gpus=8))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"gpus": 4096}, "DP 512 x TP 4 x PP 2"),
        ({"gpu": "A100"}, "A step takes 90.6 s"),
        ({"model": "your own", "layers": 24, "hidden": 2048}, "your own has 1.3 billion"),
        ({"microbatch": 8, "model": "Llama 3 8B"}, "microbatch 8"),
        ({"network_gb_s": 1}, "DP 32 x TP 4 x PP 4"),
        ({"gpus_per_host": 1}, "TP 1 x"),
        ({"batch": 16, "gpus": 32_768}, "No layout divides"),
    ],
)
def test_each_control_reaches_cost_model(change: dict[str, object], part: str) -> None:
    module = import_module("helpers.explorers.cost")
    text = text_of(module, module.START_SETTING | change)
    assert part in text
    assert text != text_of(module, module.START_SETTING)


def test_message_size_labels_match_values() -> None:
    (sizes,) = (control for control in algorithms.CONTROLS if control.name == "nbytes")
    words = {value: label for label, value in sizes.options.items()}
    assert words[4**10] == "1.05 MB" and words[4**9] == "262 kB" and words[64] == "64 B"
