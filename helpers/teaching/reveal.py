"""Read from sphinx-revealjs the files of reveal.js, which shows a page's sections as slides.

These files are embedded in each page, so that a talk consists of one file.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup


@dataclass(frozen=True)
class RevealAssets:
    """Embedded files. style: the CSS. scripts: reveal.js, followed by its speaker view."""

    style: Markup
    scripts: tuple[Markup, ...]


def read_reveal() -> RevealAssets:
    """Read reveal.js. Raise ModuleNotFoundError if the extra `slides` is not installed."""
    # do not import the package, because that would load all of Sphinx
    package = find_spec("sphinx_revealjs")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("reveal.js is not installed", name="sphinx_revealjs")
    folder = Path(package.origin).parent / "_static" / "revealjs"
    scripts = (folder / "dist" / "reveal.js", folder / "plugin" / "notes" / "notes.js")
    return RevealAssets(
        Markup((folder / "dist" / "reveal.css").read_text(encoding="utf-8")),
        # a closing tag inside a script would end it
        tuple(
            Markup(f.read_text(encoding="utf-8").replace("</script", r"<\/script")) for f in scripts
        ),
    )
