"""What lives on a page: whether it can now, and how it is shown next to its still form."""

from __future__ import annotations

import base64
import gzip
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def widgets_can_live() -> bool:
    """Say whether this is a notebook's kernel whose displays are for a reader, not for a file."""
    if os.environ.get("REAL_RANKS_LIVE") == "0":
        return False
    from IPython import get_ipython

    return hasattr(get_ipython(), "kernel")


def widget_view(make: Callable[[], Any]) -> dict[str, Any]:
    """Return what shows a new widget, to be sent along with the still form: nothing where none can live.

    A page takes the widget while the kernel has it, and in a saved notebook what else the bundle holds.
    """
    if not widgets_can_live():
        return {}
    view = {"version_major": 2, "version_minor": 0, "model_id": make().model_id}
    return {WIDGET_VIEW: view}


KEYS = Path(__file__).with_name("keys.js")
"""JavaScript for the parts of a page that have keys of their own; it stands before that of each part."""


def live_page(page: Path, data: dict[str, Any], still: str) -> str:
    """Return the HTML that shows `data`, plain JSON, by the ES module `page` in place of `still`.

    The module's default export is called with an element, which holds the still form, and the data. It needs
    no kernel, so that a saved notebook plays as well, and so does an HTML page made of it; where scripts are
    taken away (GitHub, a notebook that is not trusted) the still form stays. (A widget without its kernel is
    an error message in JupyterLab, whatever else is saved.)
    """
    name = f"rr-{secrets.token_hex(8)}"
    parts = (path.read_text(encoding="utf-8") for path in (KEYS, page))
    module, sent = _packed("\n".join(parts)), _packed(json.dumps(data))
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


def _packed(text: str) -> str:
    """Compress a text for a script: a tenth of its size, and nothing in it can end the script's element."""
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()
