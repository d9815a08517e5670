"""The cost model with controls: change a cluster or a model, and see which layouts are best now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from helpers.explorers.form import Control, Shown, choice, steps
from helpers.plan.cluster import Cluster
from helpers.plan.model_size import Model
from helpers.plan.presets import CLUSTERS, MODELS, cluster_of, model_called
from helpers.plan.search import fastest
from helpers.views.plan_bars import plan_picture

CUSTOM = "your own"
CONTROLS: tuple[Control, ...] = (
    choice("model", "model", (*MODELS, CUSTOM)),
    steps("layers", "layers", range(4, 161, 4)),
    steps("hidden", "hidden size", range(1024, 32_769, 1024)),
    choice("gpu", "GPU", tuple(CLUSTERS)),
    steps("gpus", "GPUs", [2**k for k in range(3, 16)]),
    steps("gpus_per_host", "GPUs in a host", (1, 2, 4, 8, 16, 32, 64)),
    steps("memory_gb", "memory [GB]", range(16, 289, 8)),
    steps("host_gb_s", "in a host [GB/s]", range(25, 901, 25)),
    steps("network_gb_s", "network [GB/s]", range(1, 201)),
    steps("batch", "samples a step", [2**k for k in range(4, 14)]),
    choice("microbatch", "microbatch", {"the best": 0, "1": 1, "2": 2, "4": 4, "8": 8}),
)
START = {
    "model": "Llama 3 70B",
    "layers": 48,
    "hidden": 6144,
    "gpu": "H100",
    "gpus": 512,
    "gpus_per_host": 8,
    "memory_gb": 80,
    "host_gb_s": 450,
    "network_gb_s": 50,
    "batch": 2048,
    "microbatch": 0,
}


def show(batch: int, microbatch: int, **setting: Any) -> Shown:
    """Draw the best layouts, and say what it would mean to train with the first."""
    model, cluster = sizes(**setting)
    microbatches = (microbatch,) if microbatch else ()
    plans = fastest(model, cluster, batch, microbatches=microbatches)
    picture = plan_picture(model, cluster, batch, microbatches=microbatches)
    if not plans:
        words = "Nothing fits. More GPUs, more memory on each, or another batch?"
        return Shown(words, (picture,))
    best = plans[0]
    days = 1e12 / (batch * model.sequence / best.time.total_s) / 86_400
    words = (
        f"Best: {best.layout}. A step takes {best.time.total_s:.3g} s, the GPUs do {best.utilization:.0%} "
        f"of their peak in useful work, and 1 trillion tokens take {days:,.1f} days."
    )
    return Shown(words, (picture,))


def sizes(
    model: str,
    layers: int,
    hidden: int,
    gpu: str,
    gpus: int,
    gpus_per_host: int,
    memory_gb: int,
    host_gb_s: int,
    network_gb_s: int,
) -> tuple[Model, Cluster]:
    """Return the model and the cluster that the controls describe."""
    chosen = (
        Model(CUSTOM, layers, hidden, hidden // 128, 4096)
        if model == CUSTOM
        else model_called(model)
    )
    cluster = replace(
        cluster_of(gpu, gpus),
        gpus_per_host=gpus_per_host,
        memory_bytes=memory_gb * 10**9,
        host_bandwidth=host_gb_s * 1e9,
        network_bandwidth=network_gb_s * 1e9,
    )
    return chosen, cluster


def link(controls: Mapping[str, Any]) -> None:
    """Have a GPU bring its links, and a model of one's own its sizes."""

    def take_links(change: object) -> None:
        chosen = cluster_of(controls["gpu"].value, 8)
        controls["host_gb_s"].value = round(chosen.host_bandwidth / 1e9)
        controls["network_gb_s"].value = round(chosen.network_bandwidth / 1e9)

    def allow_sizes(change: object) -> None:
        for name in ("layers", "hidden"):
            controls[name].disabled = controls["model"].value != CUSTOM

    controls["gpu"].observe(take_links, "value")
    controls["model"].observe(allow_sizes, "value")
    allow_sizes(None)
