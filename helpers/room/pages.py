"""Render pages from the templates in `page/`, with all printed values escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.course.page import environment

PAGE_FOLDER = Path(__file__).with_name("page")


def render_page(template: str, **values: Any) -> str:
    """Fill in a template and return its HTML."""
    return environment(PAGE_FOLDER).get_template(template).render(**values)
