"""Published runs for comparison with the notebooks' predictions: their layouts and their speed."""

from __future__ import annotations

from dataclasses import dataclass

from helpers.plan.model_size import Model
from helpers.plan.presets import gpt


@dataclass(frozen=True)
class PublishedRun:
    """A GPT on A100, from table 1 of Narayanan et al. 2021, arXiv 2104.04473.

    The microbatches come from the script `run_table_1.sh` in Megatron-LM's examples.

    Args:
        microbatch: Samples of 2,048 tokens.
        parts: Parts of each stage; more than 1 with interleaved 1F1B.
        samples: Samples per step.
        teraflops: Teraflop/s reached by each GPU.
    """

    model: Model
    dp: int
    tp: int
    pp: int
    microbatch: int
    parts: int
    samples: int
    teraflops: int


_ROWS = (
    (24, 2304, 24, 32, 1, 1, 16, 1, 512, 137),
    (30, 3072, 32, 32, 2, 1, 16, 1, 512, 138),
    (36, 4096, 32, 32, 4, 1, 16, 1, 512, 142),
    (40, 6144, 48, 32, 8, 1, 8, 1, 1024, 135),
    (48, 8192, 64, 32, 8, 2, 4, 1, 1536, 138),
    (60, 10_240, 80, 32, 8, 4, 2, 3, 1792, 140),
    (80, 12_288, 96, 24, 8, 8, 2, 2, 2304, 148),
    (96, 16_384, 128, 15, 8, 16, 1, 2, 2160, 155),
    (105, 20_480, 128, 9, 8, 35, 1, 3, 2520, 163),
    (128, 25_600, 160, 6, 8, 64, 1, 1, 3072, 163),
)

NARAYANAN_2021 = tuple(
    PublishedRun(gpt("GPT", layers, hidden, heads), *layout_and_speed)
    for layers, hidden, heads, *layout_and_speed in _ROWS
)
