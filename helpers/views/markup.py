"""HTML that several views write, for pages that bring no style sheet of ours."""

from __future__ import annotations

import re
from html import escape


def with_code(text: str) -> str:
    """Return text as HTML, with code where it stands between backticks."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def preformatted(content: str, style: str = "") -> str:
    """Return HTML whose spaces and line breaks stay; style: what else it needs, as "color: inherit"."""
    # JupyterLab breaks an output's lines within words, and nbconvert's pages give it the font of prose.
    own = (
        "margin: 0px; padding: 0px; background: transparent; white-space: pre-wrap; word-break: normal; "
        "overflow-wrap: anywhere; font-family: Menlo, Consolas, monospace"
    )
    return f'<pre style="{own}; {style}">{content}</pre>'
