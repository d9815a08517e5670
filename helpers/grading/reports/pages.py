"""The templates' surroundings: escaping that no template can forget, and a policy that forbids scripts.

`learner_page` and `class_page` call `render`. Pages are self-contained: no script, no outside resource.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from helpers.grading.reports.text import line, number, percent, shown

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **given: Any) -> bytes:
    """Fill in a template and give the page as UTF-8."""
    style = _style()
    page = (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),
            policy=_policy(style),
            **given,
        )
    )
    return page.encode("utf-8")


def code_marked(text: str) -> Markup:
    """Set what stands between backticks as code; all of it is escaped."""
    parts = shown(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its fellow is a backtick
        parts[-2:] = ["`".join(parts[-2:])]
    marked = [
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part)
        for place, part in enumerate(parts)
    ]
    return Markup("").join(marked)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_fit_to_be_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(line=line, number=number, percent=percent, code=code_marked)
    return environment


def _fit_to_be_shown(value: Any) -> Any:
    """Clean each text that a template prints; what is Markup was made of clean parts."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _style() -> str:
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """Allow this one style sheet, by its hash, and pictures inside the page; nothing else."""
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'none'; style-src 'sha256-{digest}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
