"""The cost model's explorer: a picture and words for each setting, and controls that are tied."""

from __future__ import annotations

import pytest

from helpers.explorers.cost import CUSTOM, START, show
from helpers.explorers.explore import explore


def test_the_best_layout_is_said_in_words() -> None:
    words = show(**START).words
    assert words.startswith("Best: DP 128 x TP 4 x PP 1, ZeRO-3, microbatch 1. A step takes 30.4 s")
    assert "1 trillion tokens take 21.0 days" in words
    assert show(**START | {"memory_gb": 16, "gpus": 8}).words.startswith("Nothing fits.")


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"gpus": 4096}, "on 4,096 H100"),
        ({"gpu": "A100"}, "512 A100"),
        ({"model": CUSTOM, "layers": 24, "hidden": 2048}, "your own: 1.3 billion parameters"),
        ({"microbatch": 8, "model": "Llama 3 8B"}, "microbatch 8"),
        ({"network_gb_s": 1}, "DP 32 x TP 4 x PP 4"),
        ({"gpus_per_host": 1}, "TP 1 x"),
    ],
)
def test_each_control_reaches_the_picture(change: dict[str, object], part: str) -> None:
    (picture,), (first,) = show(**START | change).pictures, show(**START).pictures
    assert part in picture.text
    assert picture.text != first.text


def test_a_gpu_brings_its_links_and_a_model_of_ones_own_its_sizes() -> None:
    widget = explore("cost").widget()
    controls = {getattr(c, "words", "") or c.description: c for c in widget.children[0].children}
    assert controls["layers"].disabled
    controls["GPU"].value = "A100"
    links = [controls[name].value for name in ("in a host [GB/s]", "network [GB/s]")]
    assert links == [300, 25]
    controls["model"].value = CUSTOM
    assert not controls["layers"].disabled
    widget.close_all()
