"""Saved notebooks contain no widgets of the course, which would show errors without a kernel."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from helpers.course.export import PlainWidgets, store_without_widgets
from helpers.views.live import WIDGET_VIEW

VIEW = {"model_id": "0" * 32, "version_major": 2, "version_minor": 0}


def notebook(*bundles: dict[str, Any]) -> dict[str, Any]:
    outputs = [
        {"output_type": "display_data", "metadata": {}, "data": {WIDGET_VIEW: VIEW} | data}
        for data in bundles
    ]
    cells = [{"cell_type": "markdown", "source": ""}, {"cell_type": "code", "outputs": outputs}]
    return {"cells": cells, "metadata": {"widgets": {"state": {}}}}


def test_stores_outputs_without_course_widgets() -> None:
    content = notebook({"text/html": "<p>Run this cell again", "text/plain": "Run this cell again"})
    store_without_widgets({"type": "notebook", "content": content}, path="", contents_manager=None)
    (output,) = content["cells"][1]["outputs"]
    assert output["data"].keys() == {"text/html", "text/plain"}
    assert not content["metadata"]


def test_keeps_widgets_of_other_libraries() -> None:
    content = notebook(
        {"text/plain": "IntSlider(value=0)"}, {"text/html": "<p>Run this cell again"}
    )
    store_without_widgets({"type": "notebook", "content": content})
    other, own = (output["data"] for output in content["cells"][1]["outputs"])
    assert WIDGET_VIEW in other and WIDGET_VIEW not in own
    assert "widgets" in content["metadata"]


def test_exports_text_instead_of_widgets() -> None:
    made = nbformat.from_dict(notebook({"text/plain": "Run this cell again"}, {}))
    exported, _ = PlainWidgets(enabled=True)(made, {})  # type: ignore[no-untyped-call]
    text, widget = (output["data"] for output in exported["cells"][1]["outputs"])
    assert text == {"text/plain": "Run this cell again"}
    assert widget == {WIDGET_VIEW: VIEW}  # without a text, there is nothing else to show
    assert "widgets" not in exported["metadata"]


@pytest.mark.parametrize(
    "model",
    [{}, {"type": "file", "content": "text"}, {"type": "notebook", "content": None}],
    ids=["empty", "file", "no-content"],
)
def test_leaves_other_file_types_unchanged(model: dict[str, Any]) -> None:
    before = dict(model)
    store_without_widgets(model)
    assert model == before
