"""The module has the computed number of parameters and the shapes of a transformer."""

from __future__ import annotations

import pytest
import torch

from helpers.plan.model_size import Model
from helpers.plan.presets import GPT_175B, LLAMA_8B, LLAMA_70B, LLAMA_405B
from helpers.plan.transformer import Transformer


@pytest.mark.parametrize("model", [LLAMA_8B, LLAMA_70B, LLAMA_405B], ids=lambda m: m.name)
def test_counts_all_parameters_except_last_norm(model: Model) -> None:
    with torch.device("meta"):
        built = Transformer(model)
    assert sum(p.numel() for p in built.parameters()) == model.parameters + model.hidden


def test_small_transformer_learns() -> None:
    model = Model("small", 2, 16, 4, sequence=8, vocabulary=11, ffn=24, kv_heads=2, gated=True)
    net = Transformer(model)
    words = torch.arange(10).reshape(2, 5)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        scores = net(words)
        assert scores.shape == (10, 11)
        loss = torch.nn.functional.cross_entropy(scores, words.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_rejects_model_without_gated_mlp() -> None:
    with pytest.raises(ValueError, match="GPT-3 175B is not gated"):
        Transformer(GPT_175B)
