"""A slider over any values. (Those of ipywidgets have no name that a screen reader could read.)"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets


class Slider(anywidget.AnyWidget):
    """`value` is one of the options' values; the page moves `index`."""

    _esm = Path(__file__).with_suffix(".js")
    _css = Path(__file__).with_suffix(".css")
    words = traitlets.Unicode().tag(sync=True)
    labels = traitlets.List(traitlets.Unicode()).tag(sync=True)
    index = traitlets.Int().tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)
    value = traitlets.Any()

    def __init__(self, words: str, options: Mapping[str, Any], value: Any) -> None:
        self._values = list(options.values())
        start = self._values.index(value)
        super().__init__(words=words, labels=list(options), index=start, value=value)

    @traitlets.observe("index")
    def _moved(self, change: Any) -> None:
        if 0 <= change["new"] < len(self._values):
            self.value = self._values[change["new"]]

    @traitlets.observe("value")
    def _set(self, change: Any) -> None:
        self.index = self._values.index(change["new"])
