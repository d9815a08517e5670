"""Convert a notebook's prose to self-contained HTML.

Formulas are converted to MathML. Diagrams are stored pictures (`diagrams/`), which are drawn by `python -m
tests.teaching.draw_diagrams`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

from latex2mathml.converter import convert
from nbconvert.filters import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

DIAGRAM_FOLDER = Path(__file__).parent / "diagrams"

_FENCE_PATTERN = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_MASKED_PATTERN = re.compile(
    r"`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|\be\.g\.|\bi\.e\.", re.DOTALL
)
_SENTENCE_END_PATTERN = re.compile(r"(?<!\b[A-Z])[.?!][*\")]*\s+")


class _Renderer(IPythonRenderer):
    """Renders formulas and diagrams without needing the network."""

    def inline_math(self, body: str) -> str:
        return _formula(body, "inline")

    def block_math(self, body: str) -> str:
        return _formula(body, "block")

    def block_mermaidjs(self, code: str) -> str:
        picture = diagram_file(code)
        if picture.is_file():
            return f'<figure class="diagram">{picture.read_text(encoding="utf-8")}</figure>'
        return str(self.block_code(code))  # the diagram is newer than the pictures


def _formula(tex: str, display: str) -> str:
    """Return a formula as MathML."""
    # latex2mathml's character for \setminus is missing from most fonts
    return str(convert(tex.replace(r"\setminus", r"\backslash"), display=display))


def diagram_file(code: str) -> Path:
    """Return the path of a Mermaid diagram's picture."""
    digest = hashlib.sha256(code.strip().encode()).hexdigest()[:12]
    return DIAGRAM_FOLDER / f"{digest}.svg"


def to_html(markdown: str) -> str:
    """Return a notebook's Markdown as HTML."""
    renderer = _Renderer(escape=False, exclude_anchor_links=True)
    return str(MarkdownWithMath(renderer=renderer).render(markdown))


def code_html(source: str, language: str = "python") -> str:
    """Return a program as HTML with classes for syntax highlighting."""
    return str(Highlight2HTML()(source, language=language))


def blocks(markdown: str) -> Iterator[str]:
    """Yield the paragraphs, lists, tables and fenced blocks of Markdown text."""
    start = 0
    for fence in _FENCE_PATTERN.finditer(markdown):
        yield from _paragraphs(markdown[start : fence.start()])
        yield fence[0]
        start = fence.end()
    yield from _paragraphs(markdown[start:])


def _paragraphs(markdown: str) -> Iterator[str]:
    yield from (block.strip() for block in re.split(r"\n\s*\n", markdown) if block.strip())


def is_prose(block: str) -> bool:
    """Return whether a block is a paragraph or a list, and not a table, formula or fenced block."""
    return not block.startswith(("```", "|", "$$", "<", ">"))


def sentences(paragraph: str) -> list[str]:
    """Split a paragraph into sentences. Full stops in code, formulas and addresses are ignored."""
    text = " ".join(paragraph.split())
    masked = _MASKED_PATTERN.sub(lambda match: "X" * len(match[0]), text)
    ends = [0, *(match.end() for match in _SENTENCE_END_PATTERN.finditer(masked)), len(text)]
    return [text[a:b].strip() for a, b in zip(ends, ends[1:], strict=False) if text[a:b].strip()]


def questions(markdown: str) -> list[str]:
    """Return the questions in Markdown text."""
    found = [each for block in blocks(markdown) if is_prose(block) for each in sentences(block)]
    return [each for each in found if each.rstrip('*")').endswith("?")]
