"""Draw the course's Mermaid diagrams for slides: `python -m tests.teaching.draw_diagrams mermaid.min.js`.

The script is in the npm package mermaid (`npm pack mermaid`). The course does not contain it, because it has
three megabytes, and slides need only its drawings.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from helpers.course.notebook_file import read_notebook, source_of
from helpers.course.workspace import find_workspace
from helpers.teaching.prose import DIAGRAM_FOLDER, diagram_file
from tests.browser.conftest import BROWSERS, QUIET

_FENCED = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DRAW = """async ([name, code]) => {
  // labels as text: a machine with wider letters would cut those in boxes of HTML
  mermaid.initialize({ startOnLoad: false, theme: "neutral", htmlLabels: false,
    flowchart: { htmlLabels: false }, fontFamily: "system-ui, 'DejaVu Sans', sans-serif" });
  return (await mermaid.render(name, code)).svg;
}"""


def diagrams() -> Iterator[str]:
    """Return the source of each diagram in the course."""
    for path in sorted(find_workspace().solutions.glob("*.ipynb")):
        for cell in read_notebook(path)["cells"]:
            if cell["cell_type"] == "markdown":
                yield from _FENCED.findall(source_of(cell))


def draw(script: Path) -> None:
    """Draw all diagrams, and remove pictures of diagrams that the course no longer has."""
    DIAGRAM_FOLDER.mkdir(exist_ok=True)
    wanted = {diagram_file(code): code.strip() for code in diagrams()}
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=browser, args=QUIET) as chromium,
    ):
        page = chromium.new_page()
        page.add_script_tag(path=script)
        for file, code in wanted.items():
            svg = page.evaluate(_DRAW, [f"diagram-{file.stem}", code])
            file.write_text(svg + "\n", encoding="utf-8")
    for file in DIAGRAM_FOLDER.glob("*.svg"):
        if file not in wanted:
            file.unlink()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
