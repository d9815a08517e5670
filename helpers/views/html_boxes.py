"""Write HTML for results with inline styles, which JupyterLab keeps even in untrusted notebooks.

Grays are translucent, so that both light and dark themes show them.
"""

from __future__ import annotations

from html import escape

RED = "rgb(200, 74, 0)"
GREY = "rgba(128, 128, 128, 0.45)"


def div(content: str, style: str = "") -> str:
    """Return a `div` element around HTML."""
    attribute = f' style="{style}"' if style else ""
    return f"<div{attribute}>{content}</div>"


def muted(text: str) -> str:
    """Return a line of text that is less important than the others."""
    return div(escape(text), "opacity: 0.7; font-size: 90%")


def border_left(bad: bool) -> str:
    """Return the line at the left of a box, as the value of `border-left`."""
    return f"6px double {RED}" if bad else f"2px solid {GREY}"
