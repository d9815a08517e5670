"""Check the memory of the GPU that needs most: hand-computed values, and the effect of each option."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.plan.layout import Layout
from helpers.plan.memory import memory_of, stage_parameters
from helpers.plan.model_size import Model
from helpers.plan.presets import LLAMA_70B

SMALL = Model("small", layers=8, hidden=128, heads=8, sequence=64, vocabulary=1000)
PLAIN = Layout(dp=4, tp=1, pp=1, zero=0)


def test_ddp_needs_16_bytes_per_parameter() -> None:
    memory, n = memory_of(SMALL, PLAIN, 64), SMALL.parameters
    assert (memory.weights, memory.gradients, memory.optimizer) == (2 * n, 2 * n, 12 * n)
    outputs = 64 * 4 * 1000
    assert memory.activations == 64 * 8 * 34 * 128 + outputs
    assert memory.total == sum(memory.parts().values()) == 16 * n + memory.activations


def test_each_zero_stage_shards_more_state() -> None:
    n = SMALL.parameters
    one, two, three = (memory_of(SMALL, replace(PLAIN, zero=z), 64) for z in (1, 2, 3))
    assert n % 4 == 0
    assert (one.weights, one.gradients, one.optimizer) == (2 * n, 2 * n, 3 * n)
    assert (two.weights, two.gradients, two.optimizer) == (2 * n, n // 2, 3 * n)
    whole = 2 * SMALL.layer_parameters
    assert (three.weights, three.gradients) == (n // 2 + whole, n // 2 + whole)


def test_fp32_gradients_cost_two_extra_bytes() -> None:
    n = SMALL.parameters
    plain = memory_of(SMALL, replace(PLAIN, gradient_bytes=4), 64)
    assert plain.total - plain.activations == 18 * n
    two = memory_of(SMALL, replace(PLAIN, zero=2, gradient_bytes=4), 64)
    assert (two.weights, two.gradients, two.optimizer) == (2 * n, n, 3 * n)


def test_zero_saves_nothing_with_one_replica() -> None:
    alone = Layout(1, 1, 1)
    plain, *others = (memory_of(SMALL, replace(alone, zero=z), 8) for z in range(4))
    assert all(memory == plain for memory in others)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallelism_divides_all_memory(tp: int) -> None:
    whole, cut = (memory_of(LLAMA_70B, Layout(1, t, 1), 8).total for t in (1, tp))
    assert cut == pytest.approx(whole / tp, rel=1e-9)


@pytest.mark.parametrize("zero", range(4))
def test_cp_divides_activations_and_shards_state(zero: int) -> None:
    dp, cp = (memory_of(SMALL, Layout(n, 1, 1, zero=zero, cp=8 // n), 64) for n in (8, 1))
    assert replace(cp, activations=0) == replace(dp, activations=0)
    assert cp.activations == dp.activations / 8


def test_first_stage_holds_layers_and_table() -> None:
    layers = 3 * SMALL.layer_parameters  # of eight layers in three stages, the largest has three
    assert stage_parameters(SMALL, Layout(1, 1, 3)) == layers + SMALL.table_parameters
    assert stage_parameters(SMALL, Layout(1, 1, 1)) == SMALL.parameters


def test_1f1b_limits_microbatches_to_stage_count() -> None:
    layout, one = Layout(1, 1, 4), 2 * 64 * 34 * 128  # two layers, 64 tokens
    kept = {batch: memory_of(SMALL, layout, batch).activations for batch in (1, 3, 4, 40)}
    assert kept == {1: one, 3: 3 * one, 4: 4 * one, 40: 4 * one}


def test_interleaving_keeps_more_activations() -> None:
    plain, parts = (memory_of(SMALL, Layout(1, 1, 4, interleave=v), 40) for v in (1, 2))
    assert parts.activations == plain.activations * (1 + 3 / (4 * 2))


def test_recomputation_keeps_inputs_and_one_layer() -> None:
    memory = memory_of(SMALL, Layout(1, 1, 4, recompute=True), 40)
    assert memory.activations == 64 * (2 * 4 * 2 * 128 + 34 * 128)


def test_rejects_indivisible_batch_with_suggestion() -> None:
    with pytest.raises(ValueError, match="that 8 divides"):
        memory_of(SMALL, Layout(4, 1, 1, microbatch=2), 12)
