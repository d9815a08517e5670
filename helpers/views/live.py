"""Decide whether a page can be live, and show live content next to its still form.

Without its kernel, a notebook must still show its results. So only the controls are a widget: each result is
plain HTML in the cell's output, which the controls replace. `course lab` stores the words of `show_controls`
instead of the widget (helpers/course/export.py).
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import secrets
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
SAVE = "application/vnd.real-ranks.save+json"
EMPTY_PART = {"text/html": "", "text/plain": ""}


def widgets_can_live() -> bool:
    """Return whether this process is a notebook's kernel whose displays are for a reader, not for a file."""
    return os.environ.get("REAL_RANKS_LIVE") != "0" and in_kernel()


def in_kernel() -> bool:
    """Return whether this process is a notebook's kernel, without importing IPython in a terminal."""
    module = sys.modules.get("IPython")
    return module is not None and hasattr(module.get_ipython(), "kernel")


def require_live() -> None:
    """Raise NotImplementedError in a page without widgets, so that IPython displays the still form."""
    if not widgets_can_live():
        raise NotImplementedError


def show_controls(widget: Any, words: str, html: str = "") -> Callable[[], None]:
    """Display a widget. Return a function that removes it.

    words: text for a saved notebook, in which the widget would not work. html: the same text for a page.
    """
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    html = html or f"<p><em>{escape(words)}</em></p>"
    replace = show_part({WIDGET_VIEW: view, "text/html": html, "text/plain": words})
    return lambda: replace(EMPTY_PART)


def show_part(data: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Display a part of a cell's output, given as {type: content}. Return a function that replaces it."""
    from IPython.display import display

    handle = display(data, raw=True, display_id=True)
    return lambda new: handle.update(new, raw=True)


def ask_to_save() -> None:
    """Ask the page to save the notebook once this cell has run (look/extensions)."""
    if widgets_can_live():
        from IPython.display import display

        # Update a display that does not exist, which pages without the course's extension ignore.
        display({SAVE: {}}, raw=True, display_id=SAVE, update=True)


KEYS_SCRIPT = Path(__file__).with_name("keys.js")
"""JavaScript for the parts of a page with keyboard controls. It precedes the script of each part."""


def live_page(page: Path, data: dict[str, Any], still: str) -> str:
    """Return HTML in which the ES module `page` shows `data`, plain JSON, instead of `still`.

    The module's default export is called with an element that contains the still form, and with the data. It
    needs no kernel, so it also works in a saved notebook and in an HTML page made from it. If scripts are
    removed (on GitHub, or in an untrusted notebook), the still form remains. A widget is not used, because
    without its kernel JupyterLab would show an error message.
    """
    name = f"rr-{secrets.token_hex(8)}"
    parts = (path.read_text(encoding="utf-8") for path in (KEYS_SCRIPT, page))
    module, sent = _compress("\n".join(parts)), _compress(json.dumps(data))
    script = (
        "const text = (packed) => new Response(new Blob([Uint8Array.from(atob(packed), "
        '(c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("gzip"))).text();\n'
        f'const page = new Blob([await text("{module}")], {{type: "text/javascript"}});\n'
        "const {default: show} = await import(URL.createObjectURL(page));\n"
        f'const data = await text("{sent}");\n'
        f"for (const place of document.querySelectorAll('.{name}')) {{\n"
        f"  place.classList.remove('{name}');\n"
        "  show(place, JSON.parse(data));\n}"
    )
    return f'<div class="{name}">{still}</div><script type="module">{script}</script>'


def _compress(text: str) -> str:
    """Compress text to a tenth of its size, without characters that could end a script element."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
