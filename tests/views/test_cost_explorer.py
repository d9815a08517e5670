"""The explorer: a picture and words for each setting, and controls that change it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from helpers.views.cost_explorer import (
    CUSTOM,
    Setting,
    cost_explorer,
    drawn,
    explorer_widget,
    in_words,
)
from helpers.views.live import WIDGET_VIEW

FIRST = Setting()


def test_while_outputs_are_compared_only_text_and_image_are_given() -> None:
    explorer = cost_explorer()
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain"}
    assert bundle["text/plain"] == repr(explorer) == f"{drawn(FIRST).text}\n{in_words(FIRST)}"
    assert explorer._repr_png_().startswith(b"\x89PNG")


def test_the_best_layout_is_said_in_words() -> None:
    words = in_words(FIRST)
    assert words.startswith("Best: DP 128 x TP 4 x PP 1, ZeRO-3, microbatch 1. A step takes 30.4 s")
    assert "1 trillion tokens take 21.0 days" in words
    assert in_words(replace(FIRST, memory_gb=16, gpus=8)).startswith("Nothing fits.")


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
    setting = replace(FIRST, **change)  # type: ignore[arg-type]
    assert part in drawn(setting).text
    assert drawn(setting).text != drawn(FIRST).text


def test_moving_a_control_draws_again() -> None:
    widget = explorer_widget(FIRST)
    panel, words, image = widget.children
    controls = {control.description: control for control in panel.children}
    assert len(controls) == len(fields(Setting))
    before = (words.value, bytes(image.value))
    assert before[1].startswith(b"\x89PNG") and controls["layers"].disabled
    controls["network [GB/s]"].value = 4
    assert "DP 32 x TP 4 x PP 4" in words.value
    assert words.value != before[0] and bytes(image.value) != before[1]
    controls["model"].value = CUSTOM
    assert not controls["layers"].disabled and "your own" not in before[0]
    widget.close_all()


def test_another_gpu_brings_its_links() -> None:
    widget = explorer_widget(FIRST)
    controls = {control.description: control for control in widget.children[0].children}
    controls["GPU"].value = "A100"
    links = [controls[name].value for name in ("in a host [GB/s]", "network [GB/s]")]
    assert links == [300, 25]
    widget.close_all()


def test_live_the_page_gets_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helpers.views.live.widgets_can_live", lambda: True)
    bundle = cost_explorer()._repr_mimebundle_()
    assert bundle[WIDGET_VIEW]["model_id"]


@pytest.mark.parametrize("wrong", [{"model": "GPT-5"}, {"gpus": 100}, {"batch": 7}])
def test_what_the_controls_do_not_offer_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no model is called|powers of two"):
        cost_explorer(**wrong)  # type: ignore[arg-type]
