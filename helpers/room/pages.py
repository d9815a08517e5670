"""The pages of the board, from the templates in `page/`: all that they print is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

PAGE = Path(__file__).with_name("page")


def page(template: str, **given: Any) -> str:
    """Fill in a template."""
    return _environment().get_template(template).render(**given)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
