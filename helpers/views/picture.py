"""Define the argument of all drawing views, a trace, and their result: a figure and its description."""

from __future__ import annotations

import base64
import struct
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.ranks.run import Run
from helpers.trace.chrome import profiled
from helpers.trace.events import Trace
from helpers.views.drawing import STYLES, Drawing, to_palette
from helpers.views.live import widgets_can_live
from helpers.views.palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TraceSource = Run | Trace | list[dict[str, Any]]
"""A run, its trace, or the JSON exported by torch.profiler on each rank."""

_SCREEN_DPI = 110
_DRAWING_DPI = 96
_PRINT_DPI = 200


@dataclass(frozen=True, repr=False)
class Picture:
    """A matplotlib figure, or a drawing, and its `text`, which is the same in each run.

    At the end of a cell, a picture is shown as an image, with the text as its plain form. Images in stored
    notebooks have half the resolution of a reader's run, because the notebooks would otherwise be twice as
    large. live: HTML that a live page shows instead of the image, or "".
    """

    figure: Figure | Drawing
    text: str
    live: Callable[[], str] | None = None

    def __post_init__(self) -> None:
        """Draw matplotlib's axes as thin as in a drawing, so that the content is more prominent."""
        for axes in () if isinstance(self.figure, Drawing) else self.figure.axes:
            axes.tick_params(which="both", color=FAINT, labelcolor=INK)
            for spine in axes.spines.values():
                spine.set(edgecolor=FAINT, linewidth=STYLES["rule"].width)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, Any] | tuple[dict[str, Any], dict[str, Any]]:
        """Return the display data for a notebook. The text describes the image, also for exported pages."""
        if not widgets_can_live():
            image = base64.b64encode(self._repr_png_()).decode()
            return {"image/png": image}, {"image/png": {"alt": self.text}}
        if self.live is not None:
            return {"text/html": self.live()}
        return self._screen_image()

    def html(self) -> str:
        """Return HTML: the live form or, if there is none, the image with its text as description."""
        if self.live is not None and widgets_can_live():
            return self.live()
        image = base64.b64encode(self._repr_png_()).decode()
        alt = escape(self.text)
        return f'<img src="data:image/png;base64,{image}" alt="{alt}" style="max-width: 100%">'

    def _screen_image(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the image for a reader's screen: the stored size at twice the resolution."""
        png = self._png(2 * _SCREEN_DPI)
        width, height = struct.unpack(">II", png[16:24])
        room = {"width": width // 2, "height": height // 2, "alt": self.text}
        return {"image/png": base64.b64encode(png).decode()}, {"image/png": room}

    def _repr_png_(self) -> bytes:
        return self._png(_SCREEN_DPI)

    def _png(self, dpi: int) -> bytes:
        if isinstance(self.figure, Drawing):
            return self.figure.png(dpi / _DRAWING_DPI)
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        # these parts of matplotlib have no types
        surface: Any = FigureCanvasAgg(self.figure)
        usual, self.figure.dpi = self.figure.dpi, dpi
        try:
            with _without_font_warnings():
                surface.draw()
            return _png_of(surface.buffer_rgba())
        finally:
            self.figure.dpi = usual

    def save(self, path: str | Path) -> None:
        """Write the figure to a file in the format of its extension (.png, .svg, .pdf)."""
        if isinstance(self.figure, Drawing):
            self.figure.save(Path(path), self.text)
            return
        with _without_font_warnings():
            self.figure.savefig(path, dpi=_PRINT_DPI)


@contextmanager
def _without_font_warnings() -> Iterator[None]:
    """Suppress warnings about letters that are missing in the font and drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _png_of(rgba: Any) -> bytes:
    """Write a PNG. rgba: a memoryview of (height, width, 4) bytes."""
    from PIL import Image

    height, width = rgba.shape[:2]
    buffer = BytesIO()
    to_palette(Image.frombytes("RGBA", (width, height), rgba.tobytes())).save(
        buffer, format="png", optimize=True
    )
    return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure outside of matplotlib's global state. width, height: in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def trace_of(run_or_trace: Run | Trace) -> Trace:
    """Return the trace of a run. A trace is returned unchanged."""
    if isinstance(run_or_trace, Run):
        return run_or_trace.trace
    if isinstance(run_or_trace, Trace):
        return run_or_trace
    raise TypeError(
        f"a picture of what ranks said is drawn from a Run or its trace, not from "
        f"{type(run_or_trace).__name__}. Give it what launch(...) returned."
    )


def find_trace(source: TraceSource) -> Trace:
    """Return the trace of a run, or of the JSON exported by torch.profiler on each rank."""
    if isinstance(source, list) and all(isinstance(one, dict) for one in source):
        return profiled(source)
    return trace_of(source)  # type: ignore[arg-type]  # it rejects any other list
