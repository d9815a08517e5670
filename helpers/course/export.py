"""Leave widgets out when `jupyter nbconvert` or JupyterLab's menu makes a page of a notebook."""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import Preprocessor

from helpers.views.live import WIDGET_VIEW


class PlainWidgets(Preprocessor):
    """Exports quizzes and hints as text.

    A page without a kernel could show their widgets only with scripts from the network, and the widgets
    would not work.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Remove widgets from all cells, and their saved state from the notebook."""
        nb, resources = super().preprocess(nb, resources)  # type: ignore[no-untyped-call]
        nb.metadata.pop("widgets", None)
        return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Remove the widget from each output that also has a text."""
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/plain" in data:
                data.pop(WIDGET_VIEW, None)
        return cell, resources
