"""Leave widgets out of saved notebooks and exported pages, because these have no kernel.

`look` makes JupyterLab call `store_without_widgets` when it saves a notebook, and `workspace.set_up_jupyter`
makes exports use `PlainWidgets`.
"""

from __future__ import annotations

from typing import Any

from nbconvert.preprocessors import Preprocessor

from helpers.views.live import WIDGET_VIEW

_STATE = "widgets"


def store_without_widgets(model: dict[str, Any], **_: Any) -> None:
    """Remove the course's widgets from a notebook that is being saved.

    Otherwise JupyterLab would show an error when the notebook is opened again, because it tries to show the
    missing widget instead of its text. A widget without an HTML text does not belong to the course, and is
    kept.
    """
    if model.get("type") != "notebook" or not isinstance(model.get("content"), dict):
        return
    notebook = model["content"]
    outputs = [each for cell in notebook.get("cells", ()) for each in cell.get("outputs", ())]
    bundles = [output["data"] for output in outputs if WIDGET_VIEW in output.get("data", ())]
    for bundle in bundles:
        if "text/html" in bundle:
            del bundle[WIDGET_VIEW]
    if bundles and not any(WIDGET_VIEW in bundle for bundle in bundles):
        notebook["metadata"].pop(_STATE, None)


class PlainWidgets(Preprocessor):
    """Exports quizzes and hints as text.

    A page without a kernel could show their widgets only with scripts from the network, and the widgets would
    not work.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Remove widgets from all cells, and their saved state from the notebook."""
        nb, resources = super().preprocess(nb, resources)  # type: ignore[no-untyped-call]
        nb.metadata.pop(_STATE, None)
        return nb, resources

    def preprocess_cell(self, cell: Any, resources: Any, index: int) -> tuple[Any, Any]:
        """Remove the widget from each output that also contains text."""
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/plain" in data:
                data.pop(WIDGET_VIEW, None)
        return cell, resources
