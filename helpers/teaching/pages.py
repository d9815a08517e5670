"""Render slides and teachers' pages from the templates in `page/`, with all values escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.course.page import environment


def render_page(template: str, **values: Any) -> str:
    """Fill in a template and return its HTML."""
    folder = Path(__file__).with_name("page")
    return environment(folder).get_template(template).render(**values)
