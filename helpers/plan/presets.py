"""Models and GPUs offered by the notebook and the explorer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from helpers.plan.cluster import Cluster
from helpers.plan.model_size import Model

ACHIEVABLE_SHARE = 0.6
"""Assumed share of the peak reached by kernels. It is the same for all GPUs, and not fitted to any run."""


def gpt(name: str, layers: int, hidden: int, heads: int) -> Model:
    """Return a GPT as in Narayanan et al.: 51,200 words, 2,048 tokens in a sample."""
    return Model(name, layers, hidden, heads)


def llama(name: str, layers: int, hidden: int, heads: int, ffn: int) -> Model:
    """Return a Llama 3 (arXiv 2407.21783, table 3): 8 heads for keys and values, 8,192 tokens."""
    return Model(name, layers, hidden, heads, 8192, 128_256, ffn, 8, True)


def a100(gpus: int) -> Cluster:
    """Return a cluster like that of Narayanan et al., arXiv 2104.04473, section 5.

    A host has eight A100 with 80 GB each: 312 teraFLOP/s, NVLink 300 GB/s, InfiniBand 200 Gb/s for each GPU.
    """
    return Cluster(f"{gpus:,} A100", gpus, 8, 80 * 10**9, 312e12, ACHIEVABLE_SHARE, 300e9, 25e9)


def h100(gpus: int) -> Cluster:
    """Return a cluster like that of Llama 3, arXiv 2407.21783, section 3.3.

    A host has eight H100 with 80 GB each: 989 teraFLOP/s, NVLink 450 GB/s, RoCE 400 Gb/s for each GPU.
    """
    return Cluster(f"{gpus:,} H100", gpus, 8, 80 * 10**9, 989e12, ACHIEVABLE_SHARE, 450e9, 50e9)


LLAMA_8B = llama("Llama 3 8B", 32, 4096, 32, 14_336)
LLAMA_70B = llama("Llama 3 70B", 80, 8192, 64, 28_672)
LLAMA_405B = llama("Llama 3 405B", 126, 16_384, 128, 53_248)
GPT_175B = gpt("GPT-3 175B", 96, 12_288, 96)
GPT_1T = gpt("GPT 1T", 128, 25_600, 160)

MODELS: Mapping[str, Model] = {
    model.name: model for model in (LLAMA_8B, LLAMA_70B, GPT_175B, LLAMA_405B, GPT_1T)
}
CLUSTERS: Mapping[str, Callable[[int], Cluster]] = {"H100": h100, "A100": a100}
