"""Which layouts are tried, and in which order they come back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.plan.presets import LLAMA_8B, LLAMA_405B, cluster_of, h100, model_called
from helpers.plan.search import fastest, layouts, one_for_each_mesh, plan_of, smallest


def test_every_layout_uses_all_gpus_and_leaves_no_host_no_sample_and_no_stage() -> None:
    tried = list(layouts(LLAMA_405B, h100(1024), 384))
    assert len(tried) == len(set(tried)) > 100
    for layout in tried:
        assert layout.gpus == 1024
        assert 8 % layout.tp == 0 and 128 % layout.tp == 0
        assert 384 % (layout.dp * layout.microbatch) == 0
        full = -(-126 // layout.pp)
        assert full * (layout.pp - 1) < 126 and full % layout.interleave == 0
        assert layout.interleave == 1 or layout.microbatches(384) % layout.pp == 0


def test_only_what_fits_comes_back_the_fastest_first() -> None:
    plans = fastest(LLAMA_8B, h100(64), 256)
    times = [plan.time.total_s for plan in plans]
    assert plans and times == sorted(times)
    assert all(plan.memory.total <= 80 * 10**9 for plan in plans)
    everything = list(layouts(LLAMA_8B, h100(64), 256))
    fitting = [p for p in (plan_of(LLAMA_8B, h100(64), at, 256) for at in everything) if p.fits]
    assert len(fitting) == len(plans) < len(everything)


def test_more_memory_never_makes_the_best_plan_slower() -> None:
    cluster = h100(512)
    best = [
        fastest(LLAMA_405B, replace(cluster, memory_bytes=gb * 10**9), 1024)[0].time.total_s
        for gb in (40, 80, 160, 320)
    ]
    assert best == sorted(best, reverse=True) and best[0] > best[-1]


def test_each_mesh_is_shown_once_by_its_fastest_plan() -> None:
    plans = fastest(LLAMA_8B, h100(64), 256)
    kept = one_for_each_mesh(plans)
    meshes = [(plan.layout.dp, plan.layout.tp, plan.layout.pp) for plan in kept]
    assert len(meshes) == len(set(meshes)) and kept[0] is plans[0]


@pytest.mark.parametrize(
    ("change", "meshes", "ahead"),
    [
        ({"network_bandwidth": 100e9}, [(256, 8, 8), (128, 8, 16)], 1.02),
        ({"network_bandwidth": 25e9}, [(64, 8, 32), (128, 8, 16)], 1.11),
        ({"memory_bytes": 72 * 10**9}, [(512, 8, 4), (256, 8, 8), (128, 8, 16)], 1.02),
        ({"gpus_per_host": 64}, [(2048, 8, 1)], 1.12),
    ],
)
def test_another_cluster_changes_the_best_layout_as_notebook_15_says(
    change: dict[str, Any], meshes: list[tuple[int, int, int]], ahead: float
) -> None:
    plans = one_for_each_mesh(fastest(LLAMA_405B, replace(h100(16_384), **change), 2048))
    assert [(p.layout.dp, p.layout.tp, p.layout.pp) for p in plans[: len(meshes)]] == meshes
    assert plans[1].time.total_s / plans[0].time.total_s == pytest.approx(ahead, abs=0.01)


def test_where_nothing_fits_the_smallest_is_known() -> None:
    assert fastest(LLAMA_405B, h100(8), 64) == []
    least = smallest(LLAMA_405B, h100(8), 64)
    assert least is not None and least.memory.total > 80 * 10**9
    assert smallest(LLAMA_8B, h100(3), 1) is None or LLAMA_8B.layers % 3


def test_given_microbatches_are_the_only_ones() -> None:
    assert {layout.microbatch for layout in layouts(LLAMA_8B, h100(8), 64, (4,))} == {4}


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Llama 3 70B"):
        model_called("Llama 3")
    with pytest.raises(ValueError, match="H100, A100"):
        cluster_of("V100", 8)
    with pytest.raises(ValueError, match="at least 1"):
        cluster_of("H100", 0)
