"""Pages made from this folder's templates: all that they print is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from helpers.course.page import environment


def page(template: str, **given: Any) -> str:
    """Fill in a template of this folder."""
    return environment(Path(__file__).parent / "templates").get_template(template).render(**given)
