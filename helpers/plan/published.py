"""Training runs whose layout and speed were published, to hold the cost model against.

Each row is copied from the table that it cites. Where a table leaves out the microbatch or the
interleaving, they come from the authors' own script, which is cited next to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout
from helpers.plan.model_size import Model
from helpers.plan.presets import LLAMA_405B, a100, gpt, h100
from helpers.plan.search import Plan, plan_of

MEGATRON = (
    "Narayanan et al. 2021, arXiv 2104.04473, table 1; microbatch: examples/sc21/run_table_1.sh"
)
RECOMPUTATION = "Korthikanti et al. 2022, arXiv 2205.05198, tables 3 and 5"
LLAMA = "Llama 3, arXiv 2407.21783, table 4"


@dataclass(frozen=True)
class Published:
    """One published run: a step's seconds, or the teraFLOP/s of a GPU from which they follow.

    counts_recomputed: the published teraFLOP/s include work that recomputation does again.
    """

    source: str
    model: Model
    cluster: Cluster
    layout: Layout
    batch: int
    teraflops: float = 0.0
    seconds: float = 0.0
    counts_recomputed: bool = False

    @property
    def step_s(self) -> float:
        """Return the published seconds of a step, or those that follow from its work and all GPUs' speed."""
        if self.seconds:
            return self.seconds
        again = self.counts_recomputed and self.layout.recompute
        work = self.batch * self.model.sequence * self.model.flops_per_token(again)
        return work / (self.teraflops * 1e12 * self.cluster.gpus)

    def predict(self) -> Plan:
        """Count the same layout by the cost model."""
        return plan_of(self.model, self.cluster, self.layout, self.batch)


def _megatron(
    model: Model,
    mesh: tuple[int, int, int],
    batch: int,
    teraflops: float,
    microbatch: int,
    interleave: int = 1,
) -> Published:
    tp, pp, gpus = mesh
    layout = Layout(gpus // tp // pp, tp, pp, microbatch, 0, True, interleave)
    return Published(MEGATRON, model, a100(gpus), layout, batch, teraflops, 0.0, True)


def _recomputation(
    model: Model,
    pp: int,
    batch: int,
    microbatch: int,
    seconds: tuple[float, float],
    interleave: int,
) -> tuple[Published, Published]:
    full, selective = (
        Published(
            RECOMPUTATION,
            model,
            a100(8 * pp),
            Layout(1, 8, pp, microbatch, 0, again, interleave),
            batch,
            seconds=seconds[0 if again else 1],
        )
        for again in (True, False)
    )
    return full, selective


def _llama(dp: int, each: int, teraflops: float) -> tuple[Published, Published]:
    """Make the row twice: its schedule is interleaved, but the report does not say in how many parts."""
    cluster = h100(dp * 8 * 16)
    none, most = (
        Published(
            LLAMA, LLAMA_405B, cluster, Layout(dp, 8, 16, 1, 2, False, parts), dp * each, teraflops
        )
        for parts in (1, 8)
    )
    return none, most


PUBLISHED = (
    _megatron(gpt("GPT 1.7B", 24, 2304, 24), (1, 1, 32), 512, 137, 16),
    _megatron(gpt("GPT 3.6B", 30, 3072, 32), (2, 1, 64), 512, 138, 16),
    _megatron(gpt("GPT 7.5B", 36, 4096, 32), (4, 1, 128), 512, 142, 16),
    _megatron(gpt("GPT 18B", 40, 6144, 48), (8, 1, 256), 1024, 135, 8),
    _megatron(gpt("GPT 39B", 48, 8192, 64), (8, 2, 512), 1536, 138, 4),
    _megatron(gpt("GPT 76B", 60, 10_240, 80), (8, 4, 1024), 1792, 140, 2, 3),
    _megatron(gpt("GPT 146B", 80, 12_288, 96), (8, 8, 1536), 2304, 148, 2, 2),
    _megatron(gpt("GPT 310B", 96, 16_384, 128), (8, 16, 1920), 2160, 155, 1, 2),
    _megatron(gpt("GPT 530B", 105, 20_480, 128), (8, 35, 2520), 2520, 163, 1, 3),
    _megatron(gpt("GPT 1008B", 128, 25_600, 160), (8, 64, 3072), 3072, 163, 1),
    *_recomputation(gpt("GPT 22B", 48, 6144, 64), 1, 4, 4, (1.42, 1.10), 1),
    *_recomputation(gpt("GPT 175B", 96, 12_288, 96), 8, 64, 1, (18.13, 13.75), 3),
    *_recomputation(gpt("GPT 530B", 105, 20_480, 128), 35, 280, 1, (49.05, 37.83), 3),
    *_recomputation(gpt("GPT 1T", 128, 25_600, 160), 64, 512, 1, (94.42, 71.49), 1),
    *_llama(64, 32, 430),
    *_llama(128, 16, 400),
)
