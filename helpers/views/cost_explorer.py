"""The cost model with controls: change a cluster or a model, and see which layouts are best now.

    widgets  ->  Setting  ->  drawn()  ->  Picture  ->  image and words

Notebooks call `cost_explorer`. While notebooks are run to be stored or compared, the picture of the
first setting is given: the ids of widgets are new in every kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from helpers.plan.cluster import Cluster
from helpers.plan.model_size import Model
from helpers.plan.presets import CLUSTERS, MODELS, cluster_of, model_called
from helpers.plan.search import fastest
from helpers.views.live import widget_view
from helpers.views.picture import Picture
from helpers.views.plan_bars import plan_picture

CUSTOM = "your own"
_GPUS = tuple(2**k for k in range(3, 16))
_HOSTS = (1, 2, 4, 8, 16, 32, 64)
_BATCHES = tuple(2**k for k in range(4, 14))
_LAYERS, _HIDDEN = (4, 160), (1024, 32_768)


@dataclass(frozen=True)
class Setting:
    """What the controls say. layers and hidden count for a model of your own only."""

    model: str = "Llama 3 70B"
    layers: int = 48
    hidden: int = 6144
    gpu: str = "H100"
    gpus: int = 512
    gpus_per_host: int = 8
    memory_gb: int = 80
    host_gb_s: int = 450
    network_gb_s: int = 50
    batch: int = 2048
    microbatch: int = 0

    def sizes(self) -> tuple[Model, Cluster]:
        """Give the model and the cluster that the controls describe."""
        model = (
            Model(CUSTOM, self.layers, self.hidden, self.hidden // 128, 4096)
            if self.model == CUSTOM
            else model_called(self.model)
        )
        cluster = replace(
            cluster_of(self.gpu, self.gpus),
            gpus_per_host=self.gpus_per_host,
            memory_bytes=self.memory_gb * 10**9,
            host_bandwidth=self.host_gb_s * 1e9,
            network_bandwidth=self.network_gb_s * 1e9,
        )
        return model, cluster


def drawn(setting: Setting) -> Picture:
    """Draw the best layouts of a setting."""
    model, cluster = setting.sizes()
    sizes = (setting.microbatch,) if setting.microbatch else ()
    return plan_picture(model, cluster, setting.batch, microbatches=sizes)


def in_words(setting: Setting) -> str:
    """Say which layout is best, and what it would mean to train with it."""
    model, cluster = setting.sizes()
    sizes = (setting.microbatch,) if setting.microbatch else ()
    plans = fastest(model, cluster, setting.batch, microbatches=sizes)
    if not plans:
        return "Nothing fits. More GPUs, more memory on each, or another batch?"
    best = plans[0]
    tokens = setting.batch * model.sequence / best.time.total_s
    days = 1e12 / tokens / 86_400
    return (
        f"Best: {best.layout}. A step takes {best.time.total_s:.3g} s, the GPUs do {best.utilization:.0%} "
        f"of their peak in useful work, and 1 trillion tokens take {days:,.1f} days."
    )


@dataclass(frozen=True, repr=False)
class CostExplorer:
    """Controls and a picture. Each display has controls of its own, which begin at `setting`."""

    setting: Setting

    def __repr__(self) -> str:
        return f"{drawn(self.setting).text}\n{in_words(self.setting)}"

    def _repr_png_(self) -> bytes:
        return drawn(self.setting)._repr_png_()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self)} | widget_view(lambda: explorer_widget(self.setting))


def cost_explorer(model: str = "Llama 3 70B", gpus: int = 512, batch: int = 2048) -> CostExplorer:
    """Show the best layouts of a model with controls for model, cluster and batch.

    model: as in `plan_bars`, or "your own" with its layers and hidden size. gpus: a power of two from 8 to
    32,768. batch: samples in a step, a power of two from 16 to 8,192. Raises ValueError for others.
    """
    if model != CUSTOM:
        model_called(model)
    if gpus not in _GPUS or batch not in _BATCHES:
        raise ValueError(
            f"the controls offer powers of two: {_GPUS[0]} to {_GPUS[-1]:,} GPUs and {_BATCHES[0]} to "
            f"{_BATCHES[-1]:,} samples, not {gpus:,} and {batch:,}."
        )
    return CostExplorer(Setting(model=model, gpus=gpus, batch=batch))


def explorer_widget(setting: Setting) -> Any:
    """Make the widget: the controls, below them the best layout in words, and the picture."""
    import ipywidgets as widgets

    controls = _controls(setting, widgets)
    image = widgets.Image(format="png", layout={"width": "100%", "max_width": "1050px"})
    words = widgets.HTML()

    def show(change: object = None) -> None:
        now = Setting(**{name: control.value for name, control in controls.items()})
        for name in ("layers", "hidden"):
            controls[name].disabled = now.model != CUSTOM
        image.value = drawn(now)._repr_png_()
        words.value = f"<b>{in_words(now)}</b>"

    def take_links(change: object) -> None:
        chosen = cluster_of(controls["gpu"].value, 8)
        controls["host_gb_s"].value = round(chosen.host_bandwidth / 1e9)
        controls["network_gb_s"].value = round(chosen.network_bandwidth / 1e9)

    controls["gpu"].observe(take_links, "value")
    for control in controls.values():
        control.observe(show, "value")
    show()
    panel = widgets.Box(list(controls.values()), layout={"flex_flow": "row wrap"})
    return widgets.VBox([panel, words, image])


def _controls(setting: Setting, widgets: Any) -> dict[str, Any]:
    """Make one control for each field of Setting, of the same name."""
    look: dict[str, Any] = {"style": {"description_width": "110px"}, "layout": {"width": "310px"}}

    def choice(name: str, words: str, options: Any) -> Any:
        return widgets.Dropdown(
            options=options, value=getattr(setting, name), description=words, **look
        )

    def steps(name: str, words: str, options: tuple[int, ...]) -> Any:
        shown = [(f"{number:,}", number) for number in options]
        return widgets.SelectionSlider(
            options=shown, value=getattr(setting, name), description=words,
            continuous_update=False, **look,
        )  # fmt: skip

    def slider(name: str, words: str, least: int, most: int, step: int) -> Any:
        return widgets.IntSlider(
            value=getattr(setting, name), min=least, max=most, step=step, description=words,
            continuous_update=False, **look,
        )  # fmt: skip

    sizes = [("the best", 0), *((str(n), n) for n in (1, 2, 4, 8))]
    return {
        "model": choice("model", "model", [*MODELS, CUSTOM]),
        "layers": slider("layers", "layers", *_LAYERS, 4),
        "hidden": slider("hidden", "hidden size", *_HIDDEN, 1024),
        "gpu": choice("gpu", "GPU", list(CLUSTERS)),
        "gpus": steps("gpus", "GPUs", _GPUS),
        "gpus_per_host": steps("gpus_per_host", "GPUs in a host", _HOSTS),
        "memory_gb": slider("memory_gb", "memory [GB]", 16, 288, 8),
        "host_gb_s": slider("host_gb_s", "in a host [GB/s]", 25, 900, 25),
        "network_gb_s": slider("network_gb_s", "network [GB/s]", 1, 200, 1),
        "batch": steps("batch", "samples a step", _BATCHES),
        "microbatch": choice("microbatch", "microbatch", sizes),
    }
