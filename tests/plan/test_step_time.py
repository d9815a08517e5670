"""Check step times: hand-computed values, and the direction in which each option changes them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout
from helpers.plan.model_size import Model
from helpers.plan.presets import LLAMA_70B, LLAMA_405B, h100
from helpers.plan.step_time import dp_traffic_s, step_time, utilization

MODEL = Model("small", layers=8, hidden=128, heads=8, sequence=64, vocabulary=1000)
CLUSTER = Cluster("test", 64, 8, 10**9, 1e12, 0.5, 100e9, 10e9, latency_s=0.0)


def test_single_gpu_step_only_computes() -> None:
    time = step_time(MODEL, CLUSTER, Layout(1, 1, 1, recompute=True), batch=10)
    work = 10 * 64 * MODEL.flops_per_token(recompute=True)
    assert time.parts() == {
        "compute": pytest.approx(work / 0.5e12),
        "bubble": 0,
        "TP traffic": 0,
        "PP traffic": 0,
        "DP traffic": 0,
    }


def test_plain_step_recomputes_only_attention_scores() -> None:
    time = step_time(MODEL, CLUSTER, Layout(1, 1, 1), batch=1)
    work = 64 * (MODEL.flops_per_token() + 8 * MODEL.scores_flops)
    assert time.compute_s == pytest.approx(work / 0.5e12)


def test_ring_transfers_all_but_one_part() -> None:
    assert CLUSTER.ring_s(1e9, 8, 8) == pytest.approx(7 / 8 * 1e9 / 100e9)
    assert CLUSTER.ring_s(1e9, 4, 1) == pytest.approx(3 / 4 * 1e9 / 10e9)
    assert CLUSTER.ring_s(1e9, 1, 1) == 0


def test_inter_host_traffic_divides_among_gpus() -> None:
    inside, between = 7 / 8 * 1e9 / 100e9, 1 / 2 * (1e9 / 8) / 10e9
    assert CLUSTER.ring_s(1e9, 16, 8) == pytest.approx(inside + between)


def test_ring_pays_latency_for_every_message() -> None:
    slow = replace(CLUSTER, latency_s=1e-3)
    assert slow.ring_s(0, 16, 8, calls=5) == pytest.approx(5 * (7 + 1) * 1e-3)


def test_layer_needs_four_tp_all_reduces() -> None:
    time = step_time(MODEL, CLUSTER, Layout(1, 8, 1), batch=3)
    all_reduce = 2 * 7 / 8 * (2 * 64 * 128) / 100e9
    assert time.tp_s == pytest.approx(3 * 8 * 4 * all_reduce)
    again = step_time(MODEL, CLUSTER, Layout(1, 8, 1, recompute=True), batch=3)
    assert again.tp_s == pytest.approx(time.tp_s * 6 / 4)


@pytest.mark.parametrize(("tp", "bandwidth"), [(1, 100e9), (8, 10e9)])
def test_cp_layer_needs_three_ring_passes(tp: int, bandwidth: float) -> None:
    """The ring stays within a host if TP leaves room there, and otherwise uses the network."""
    layout = Layout(1, tp, 1, cp=8)
    time = step_time(MODEL, CLUSTER, layout, batch=3)
    ring = 7 / 8 * (2 * 2 * 64 * 128) / tp / bandwidth
    assert time.cp_s == time.parts()["CP traffic"] == pytest.approx(3 * 8 * 3 * ring)
    assert time.total_s == pytest.approx(sum(time.parts().values()))
    again = step_time(MODEL, CLUSTER, replace(layout, recompute=True), batch=3)
    assert again.cp_s == pytest.approx(time.cp_s * 4 / 3)


def test_fewer_kv_heads_reduce_cp_traffic() -> None:
    all_heads, two = (
        step_time(replace(MODEL, kv_heads=n), CLUSTER, Layout(1, 1, 1, cp=8), 1) for n in (0, 2)
    )
    assert two.cp_s == pytest.approx(all_heads.cp_s / 4)


def test_cp_divides_work_and_messages() -> None:
    one, cut = (step_time(MODEL, CLUSTER, Layout(1, 2, 8, cp=n), 12) for n in (1, 4))
    assert cut.compute_s == pytest.approx(one.compute_s / 4)
    assert (cut.tp_s, cut.pp_s) == pytest.approx((one.tp_s / 4, one.pp_s / 4))
    busy = [time.compute_s + time.tp_s + time.cp_s + time.pp_s for time in (one, cut)]
    assert cut.bubble_s / busy[1] == pytest.approx(one.bubble_s / busy[0])


def test_bubble_matches_notebook_12() -> None:
    time = step_time(MODEL, CLUSTER, Layout(1, 1, 4), batch=12)
    assert time.bubble_s / time.total_s == pytest.approx(3 / (12 + 3))


@pytest.mark.parametrize("pp", [2, 4, 8])
def test_more_microbatches_reduce_bubble_share(pp: int) -> None:
    shares = []
    for batch in (1, 2, 8, 64):
        time = step_time(MODEL, CLUSTER, Layout(1, 1, pp), batch)
        shares.append(time.bubble_s / time.total_s)
    assert shares == sorted(shares, reverse=True) and shares[0] > 4 * shares[-1]


def test_interleaving_divides_bubble_and_multiplies_messages() -> None:
    one, two = (step_time(MODEL, CLUSTER, Layout(1, 1, 4, interleave=v), 12) for v in (1, 2))
    assert two.pp_s == pytest.approx(2 * one.pp_s)
    busy = [time.compute_s + time.pp_s for time in (one, two)]
    assert two.bubble_s / busy[1] == pytest.approx(one.bubble_s / busy[0] / 2)


def test_dp_traffic_grows_with_zero_stage() -> None:
    traffic = [dp_traffic_s(MODEL, CLUSTER, Layout(8, 1, 1, zero=z), 10) for z in range(4)]
    assert traffic[0] == traffic[1] == pytest.approx(2 * 7 / 8 * 2 * MODEL.parameters / 100e9)
    assert traffic[2] == pytest.approx(traffic[0] / 2 * 11)
    assert traffic[3] == pytest.approx(traffic[0] / 2 * 30)


@pytest.mark.parametrize("zero", range(4))
def test_cp_ranks_share_dp_traffic(zero: int) -> None:
    dp, mixed = (Layout(16, 1, 1, zero=zero), Layout(4, 1, 1, zero=zero, cp=4))
    assert dp_traffic_s(MODEL, CLUSTER, mixed, 10) == dp_traffic_s(MODEL, CLUSTER, dp, 10)


@pytest.mark.parametrize(("zero", "times"), [(0, 2), (1, 3 / 2), (2, 21 / 11), (3, 4 / 3)])
def test_fp32_gradients_double_only_gradient_traffic(zero: int, times: float) -> None:
    layout = Layout(8, 1, 1, zero=zero)
    half, full = (
        dp_traffic_s(MODEL, CLUSTER, replace(layout, gradient_bytes=n), 10) for n in (2, 4)
    )
    assert full == pytest.approx(times * half)


def test_hidden_dp_traffic_costs_no_time() -> None:
    slow = replace(CLUSTER, network_bandwidth=1e6)
    fast = replace(CLUSTER, network_bandwidth=1e15, host_bandwidth=1e15)
    layout = Layout(64, 1, 1)
    assert step_time(MODEL, fast, layout, 64).dp_s == 0
    time = step_time(MODEL, slow, layout, 64)
    assert time.dp_s == pytest.approx(dp_traffic_s(MODEL, slow, layout, 1) - time.compute_s * 2 / 3)


def test_doubling_bandwidth_never_slows_step() -> None:
    cluster = h100(512)
    for layout in (Layout(64, 8, 1), Layout(16, 8, 4), Layout(512, 1, 1, zero=3)):
        one = step_time(LLAMA_70B, cluster, layout, 1024)
        better = replace(cluster, network_bandwidth=2 * cluster.network_bandwidth)
        assert step_time(LLAMA_70B, better, layout, 1024).total_s <= one.total_s


@pytest.mark.parametrize(("parts", "ratio"), [(1, 1.65), (8, 0.96)])
def test_predicts_llama_cp_step_time(parts: int, ratio: float) -> None:
    """Llama 3, arXiv 2407.21783, table 4: 380 teraFLOP/s per GPU. The number of parts is not published.

    Notebook 23 has the other two rows: 1.26 and 1.54 with one part, 0.93 and 0.91 with eight.
    """
    model, layout = (
        replace(LLAMA_405B, sequence=131_072),
        Layout(8, 8, 16, 1, 2, False, parts, cp=16),
    )
    assert layout.gpus == 16_384
    published = 128 * model.sequence * model.flops_per_token() / (380e12 * layout.gpus)
    time = step_time(model, h100(layout.gpus), layout, 128)
    assert time.total_s / published == pytest.approx(ratio, abs=0.01)


def test_peak_utilization_equals_one() -> None:
    seconds = 64 * 64 * MODEL.flops_per_token() / (64 * 1e12)
    assert utilization(MODEL, CLUSTER, seconds, 64) == pytest.approx(1)
