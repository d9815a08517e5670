"""Make HTML for notebooks from the templates next to this file. All printed values are escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, **values: Any) -> str:
    """Fill in a template."""
    folder = Path(__file__).parent / "templates"
    return environment(folder).get_template(template).render(**values)


@cache
def environment(folder: Path) -> Environment:
    """Return the Jinja environment that reads the templates of a folder."""
    # Import it here, so that `from helpers import hint` does not wait for a template engine.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
