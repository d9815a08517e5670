"""Compare parameters, work and activations with the papers' figures and with hand-computed values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.plan.model_size import Model
from helpers.plan.presets import GPT_1T, GPT_175B, LLAMA_8B, LLAMA_70B, LLAMA_405B, gpt

SMALL = Model("small", layers=2, hidden=4, heads=2, sequence=3, vocabulary=5)


def test_counts_parameters_of_small_gpt() -> None:
    # q, k, v, out: 4 x 16; MLP: 2 x 4 x 16; norms and biases: 13 x 4; table and positions: (5 + 3) x 4
    assert SMALL.layer_matrix_parameters == 64 + 128
    assert SMALL.layer_parameters == 192 + 52
    assert SMALL.parameters == 2 * 244 + 32


def test_counts_parameters_of_small_llama() -> None:
    small = replace(SMALL, gated=True, kv_heads=1, ffn=6)
    # q and out: 2 x 16; k and v of one head of two: 2 x 4 x 2; MLP: 3 x 4 x 6; norms: 2 x 4; two tables
    assert small.layer_matrix_parameters == 32 + 16 + 72
    assert small.parameters == 2 * (120 + 8) + 2 * 5 * 4


@pytest.mark.parametrize(
    ("model", "billions"), [(LLAMA_8B, 8.0), (LLAMA_70B, 70.6), (LLAMA_405B, 405.9)]
)
def test_llama_3_sizes_match_model_names(model: Model, billions: float) -> None:
    assert model.parameters / 1e9 == pytest.approx(billions, abs=0.05)


def test_parameter_counts_match_megatron_paper() -> None:
    """Narayanan et al. 2021, table 1."""
    models = [gpt("", 24, 2304, 24), gpt("", 40, 6144, 48), gpt("", 105, 20_480, 128), GPT_1T]
    assert [round(model.parameters / 1e9, 1) for model in models] == [1.7, 18.4, 529.6, 1008.0]


@pytest.mark.parametrize(("recompute", "factor", "output"), [(True, 96, 16), (False, 72, 12)])
def test_gpt_flops_match_paper_formula(recompute: bool, factor: int, output: int) -> None:
    s, h, layers, words = 2048, 12_288, 96, 51_200
    formula = factor * layers * h**2 * (1 + s / (6 * h) + words / (output * layers * h))
    assert GPT_175B.flops_per_token(recompute) == pytest.approx(formula, rel=1e-12)


def test_activations_need_34_bytes_per_unit() -> None:
    assert GPT_175B.activation_bytes == 34 * GPT_175B.hidden


def test_shared_kv_heads_reduce_activations() -> None:
    assert replace(LLAMA_70B, kv_heads=64).activation_bytes > LLAMA_70B.activation_bytes
