"""Show the cost model with controls: change a cluster or a model, and see the best layouts.

`helpers/plan` contains the model and its sources. For the page, cost.js does the same arithmetic, without
context parallelism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from helpers.explorers.form import Control, choice, steps
from helpers.plan.cluster import Cluster
from helpers.plan.model_size import Model
from helpers.plan.presets import CLUSTERS, MODELS
from helpers.plan.search import MICROBATCH_SIZES, Plan, best_of_each_mesh, plans
from helpers.views.memory_bars import LOOKS
from helpers.views.palette import COLLECTIVE, FAINT, SEND, WAIT

ROWS_SHOWN = 6
CUSTOM = "your own"
TITLE = "Layouts of a training run"
CONTROLS: tuple[Control, ...] = (
    choice("model", "model", (*MODELS, CUSTOM)),
    choice("gpu", "GPU", tuple(CLUSTERS)),
    choice("microbatch", "microbatch", {"the best": 0, **{str(n): n for n in MICROBATCH_SIZES}}),
    steps("gpus", "GPUs", [2**k for k in range(3, 16)]),
    steps("gpus_per_host", "GPUs in a host", (1, 2, 4, 8, 16, 32, 64)),
    steps("memory_gb", "GPU memory [GB]", range(16, 289, 8)),
    steps("host_gb_s", "in a host [GB/s]", range(25, 901, 25)),
    steps("network_gb_s", "network [GB/s]", range(1, 201)),
    steps("batch", "samples per step", [2**k for k in range(4, 14)]),
    steps("layers", "your own: layers", range(4, 161, 4)),
    steps("hidden", "your own: hidden size", range(1024, 32_769, 1024)),
)
START_SETTING = {
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
SENTENCE_TEMPLATES = {
    "row": "{layout}: {total:seconds} per step (compute {compute:seconds}, bubble {bubble:seconds}, TP "
    "traffic {tp:seconds}, PP traffic {pp:seconds}, DP traffic {dp:seconds}), MFU "
    "{mfu:0%}, {memory:bytes} per GPU",
    "size": "{model} has {billions:1} billion parameters.",
    "best": "Best: {layout}. A step takes {total:seconds}, the GPUs do {mfu:0%} of their peak in useful "
    "work, and 1 trillion tokens take {days:1} days.",
    "nothing": "Nothing fits: the smallest layout, {layout}, needs {memory:bytes} of {memory_gb} GB.",
    "uneven": "No layout divides this batch evenly among these GPUs. Try fewer GPUs, or more samples.",
}


def page_data() -> dict[str, Any]:
    return {
        "models": {name: asdict(model) for name, model in MODELS.items()},
        "custom": asdict(_custom_model(0, 0)),
        "clusters": {name: asdict(make(1)) for name, make in CLUSTERS.items()},
        "microbatches": MICROBATCH_SIZES,
        "shown": ROWS_SHOWN,
        "times": [FAINT, WAIT.color, COLLECTIVE.color, SEND.color, "#56B4E9"],
        "parts": [color for color, _ in LOOKS[:4]],
    }


def plan(batch: int, microbatch: int, **setting: Any) -> dict[str, Any]:
    """Return the best layouts, one for each DP x TP x PP, and the training time with the best of them."""
    model, cluster = model_and_cluster(setting)
    microbatches = (microbatch,) if microbatch else ()
    tried = plans(model, cluster, batch, microbatches)
    best = best_of_each_mesh(tried)[:ROWS_SHOWN]
    rows = [*map(_row, best)]
    values = {"billions": model.parameters / 1e9, "rows": rows}
    if best:
        seconds = 1e12 / (batch * model.sequence / best[0].time.total_s)
        return rows[0] | values | {"days": seconds / 86_400, "says": ["size", "best"]}
    if not tried:
        return values | {"says": ["size", "uneven"]}
    least = min(tried, key=lambda plan: plan.memory.total)
    return values | _row(least) | {"says": ["size", "nothing"]}


def _row(plan: Plan) -> dict[str, Any]:
    time, memory = plan.time, plan.memory
    return {
        "layout": str(plan.layout),
        "times": [*time.parts().values()],
        "total": time.total_s,
        "parts": [*memory.parts().values()],
        "memory": memory.total,
        "mfu": plan.utilization,
        **dict(zip(("compute", "bubble", "tp", "pp", "dp"), time.parts().values(), strict=True)),
    }


def model_and_cluster(setting: Mapping[str, Any]) -> tuple[Model, Cluster]:
    """Return the model and the cluster described by the controls."""
    own = setting["model"] == CUSTOM
    cluster = replace(
        CLUSTERS[setting["gpu"]](setting["gpus"]),
        gpus_per_host=setting["gpus_per_host"],
        memory_bytes=setting["memory_gb"] * 10**9,
        host_bandwidth=setting["host_gb_s"] * 1e9,
        network_bandwidth=setting["network_gb_s"] * 1e9,
    )
    model = _custom_model(setting["layers"], setting["hidden"]) if own else MODELS[setting["model"]]
    return model, cluster


def _custom_model(layers: int, hidden: int) -> Model:
    return Model(CUSTOM, layers, hidden, hidden // 128, 4096)
