"""Pages made from the templates in `page/`: all that they print is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.course.page import environment

PAGE = Path(__file__).with_name("page")


def page(template: str, **given: Any) -> str:
    """Fill in a template."""
    return environment(PAGE).get_template(template).render(**given)
