"""Render pages from records: templates receive the class, and compute all other values with filters.

    Course --render--> class.html        Course, Standing --render--> learner.html

Texts and pictures may be hostile, so the environment escapes everything that a template prints. Pages are
self-contained: they need no scripts and no external resources.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from helpers.grading.points.counted import is_bonus
from helpers.grading.points.policy import describe_policy
from helpers.grading.reports.outcomes import (
    FAULT_TEXT,
    explaining_cases,
    failed_cases,
    hidden_text,
    is_fault,
    kind_of,
    override_text,
    shown_outcome,
    summary_of,
    visible_cases,
)
from helpers.grading.reports.standing import (
    Course,
    Standing,
    graded_points,
    late_text,
    max_points,
)
from helpers.grading.reports.text import (
    clip_text,
    escape_markdown,
    line,
    number,
    numbered_title,
    percent,
    points_text,
)
from helpers.views.failed_case import IN_CASE, START, TRAFFIC, hidden_rows_text, shown_rows
from helpers.views.page_style import PAGE_STYLE
from helpers.views.plain import plural

_TEMPLATES = Path(__file__).parent / "templates"
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MAX_BYTES = 2_000_000
# Maximum width and height. These limit the unpacked size in a browser, which the file's length does not.
_MAX_PIXELS = 4_000


def learner_page(course: Course, standing: Standing) -> bytes:
    """Return one learner's page as HTML in UTF-8, without flags, which are for the instructor."""
    return render("learner.html", course=course, standing=standing)


def render(template: str, **values: Any) -> bytes:
    """Fill in a template and return the page as UTF-8: Markdown if its name ends in .md, otherwise HTML."""
    page = _environment(template.endswith(".md")).get_template(template)
    return page.render(style=Markup(_style()), policy=_policy(_style()), **values).encode("utf-8")


def mark_code(text: str) -> Markup:
    """Return escaped HTML in which text between backticks is marked as code."""
    parts = clip_text(text).split("`")
    if len(parts) % 2 == 0:  # treat an unpaired backtick as an ordinary character
        parts[-2:] = ["`".join(parts[-2:])]
    marked = [
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    ]
    return Markup("").join(marked)


@cache
def _environment(markdown: bool) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=not markdown,
        undefined=StrictUndefined,
        # Jinja cannot escape Markdown, so escape all printed text at the end.
        finalize=_escape_value if markdown else _clean_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (
        (
            line,
            number,
            percent,
            plural,
            points_text,
            clip_text,
            numbered_title,
            checked_png,
            describe_policy,
            late_text,
        )
        + (
            failed_cases,
            hidden_text,
            is_bonus,
            is_fault,
            explaining_cases,
            hidden_rows_text,
            override_text,
            shown_rows,
            summary_of,
            visible_cases,
        )
        + (graded_points, max_points)
    )
    environment.filters.update({each.__name__: each for each in filters})
    environment.filters.update(code=mark_code, kind=kind_of)
    environment.globals.update(
        shown_outcome=shown_outcome,
        fault_says=FAULT_TEXT,
        in_case=IN_CASE,
        traffic=TRAFFIC,
        start=START,
    )
    return environment


def _clean_value(value: Any) -> Any:
    """Clean each text printed by a template. Markup already consists of clean parts."""
    return clip_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _escape_value(value: Any) -> Any:
    return escape_markdown(value) if isinstance(value, str) else value


@cache
def _style() -> str:
    return PAGE_STYLE.read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """Return a content security policy that allows only this style sheet and pictures inside the page."""
    # Allow the style by its hash, so that a style smuggled in by a text is not applied.
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def checked_png(picture: str) -> tuple[str, int, int] | None:
    """Return a picture's base64, width and height, or None if it is not a valid PNG.

    The bytes are encoded again, so that the text cannot contain anything else.
    """
    if not picture or len(picture) > _MAX_BYTES * 4 // 3:
        return None
    try:
        data = base64.b64decode(picture, validate=True)
    except (binascii.Error, ValueError):
        return None
    size = _size(data)
    if size is None or not all(0 < side <= _MAX_PIXELS for side in size) or not _is_whole(data):
        return None
    return base64.b64encode(data).decode("ascii"), *size


def _size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 33 or not data.startswith(_PNG_SIGNATURE) or data[8:16] != b"\0\0\0\rIHDR":
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _is_whole(data: bytes) -> bool:
    """Return whether all chunks have correct checksums and the last one is IEND (PNG specification, 5.3)."""
    at = len(_PNG_SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        end = at + 12 + length
        if end > len(data):
            return False
        if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return len(data) == end
        at = end
    return False
