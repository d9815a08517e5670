"""Display a short text for the learner: as Markdown in a notebook, and as plain text elsewhere."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

# Use a small gap, because ipywidgets makes each line as high as a button, so two line breaks would be too
# high.
_GAP = '<span style="display: block; height: 0.6em"></span>'


@dataclass(frozen=True, repr=False)
class LearnerMessage:
    """The result of `hint` and of an answered quiz. Its text is always the same, so that it can be stored."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text


def to_plain(text: str) -> str:
    """Return a message for a terminal, without the marks of `code`, **bold** and fenced code."""
    parts = re.split(r"^```\w*\n(.*?)^```[ ]*$", text, flags=re.DOTALL | re.MULTILINE)
    for index, part in enumerate(parts):
        if index % 2:  # the text between fences
            parts[index] = re.sub(r"^(?=.)", "    ", part.rstrip(), flags=re.MULTILINE)
        else:
            parts[index] = re.sub(r"`([^`]+)`|\*\*([^*]+)\*\*", r"\1\2", part)
    return "".join(parts)


def to_html(text: str) -> str:
    """Return a message as HTML: paragraphs, `code`, **bold**, links to notebooks and fenced code."""
    parts = re.split(r"^```\w*\n(.*?)^```[ ]*$", html.escape(text), flags=re.DOTALL | re.MULTILINE)
    for index, part in enumerate(parts):
        if index % 2:  # the text between fences
            parts[index] = f"<pre>{part.rstrip()}</pre>"
        else:
            part = re.sub(r"`([^`]+)`", r"<code>\1</code>", part.strip())
            part = re.sub(r"\[([^\]]+)\]\((\w+\.ipynb[#=\w-]*)\)", r'<a href="\2">\1</a>', part)
            part = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", part)
            parts[index] = part.replace("\n\n", _GAP)
    return "".join(parts)
