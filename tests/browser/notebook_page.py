"""Control one notebook in JupyterLab's page, like its reader."""

from __future__ import annotations

import re
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

WIDTH, HEIGHT = 1280, 900
TALLEST = 16_000
"""Pixels that a browser can draw at once."""

NUMBERED = re.compile(r"^\[\d+\]:$")

OURS = (".rr-page", ".jupyter-widgets", ".jp-OutputArea .jp-RenderedHTML")
"""The parts of a page that the course draws; the rest is JupyterLab's."""

CUT = """panel => [...panel.querySelectorAll(".rr-page, .jupyter-widgets, .jp-OutputArea .jp-RenderedHTML")]
    .filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
    .map(part => `${part.className || part.tagName}: ${part.scrollWidth} in ${part.clientWidth}`)"""


class NotebookPage:
    """A learner's actions in an open notebook. Every wait has a deadline."""

    def __init__(self, page: Page, shots: Path | None) -> None:
        self.page = page
        self._shots = shots
        self._taken = 0

    @property
    def code_cells(self) -> Locator:
        return self.page.locator(".jp-NotebookPanel .jp-CodeCell")

    def cell(self, text: str) -> Locator:
        """Return the code cell whose source contains `text`."""
        editor = self.page.locator(".jp-InputArea-editor", has_text=text)
        return self.code_cells.filter(has=editor).first

    def output(self, text: str) -> Locator:
        return self.cell(text).locator(".jp-Cell-outputArea")

    def wait_until_open(self, cells: int) -> None:
        expect(self.code_cells).to_have_count(cells, timeout=60_000)
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait for the kernel, because cells run before its start may be lost."""
        idle = self.page.get_by_text(re.compile(r"\| Idle$"))
        expect(idle).to_be_visible(timeout=60_000)

    def run_all(self) -> None:
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()

    def wait_until_all_have_run(self, deadline_s: float) -> None:
        folded = self.page.locator(".jp-Cell-inputWrapper .jp-Placeholder")  # without a number
        prompts = self.code_cells.filter(has_not=folded).locator(".jp-InputPrompt")
        count = prompts.count()
        assert count > 0
        expect(prompts).to_have_text([NUMBERED] * count, timeout=deadline_s * 1000)

    def add_and_run(self, source: str) -> Locator:
        """Write a new cell at the notebook's end, run it, and return it."""
        count = self.code_cells.count()
        self.page.locator(".jp-NotebookPanel .jp-Cell").last.locator(".jp-InputPrompt").click()
        self.page.keyboard.press("Escape")
        # elements in outputs have lost the focus by now
        expect(self.page.locator(".jp-Notebook.jp-mod-commandMode")).to_be_visible()
        self.page.locator(".jp-NotebookPanel .jp-Cell").last.focus()
        self.page.keyboard.press("b")
        expect(self.code_cells).to_have_count(count + 1)
        cell = self.code_cells.last
        cell.locator(".cm-content").click()
        self.page.keyboard.insert_text(source)
        self.page.keyboard.press("Control+Enter")
        return cell

    def stop(self) -> None:
        """Press the Stop button in the notebook's toolbar."""
        self.page.locator('[data-jp-item-name="interrupt"] jp-button').click()

    def save(self) -> None:
        """Press the Save button in the notebook's toolbar, and wait for the file."""
        self.page.locator('[data-jp-item-name="save"] jp-button').click()
        expect(self.page.locator(".jp-mod-dirty")).to_have_count(0, timeout=20_000)

    def restart(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.get_by_role("menuitem", name="Kernel", exact=True).click()
        # the name of the menu item ends with its keyboard shortcut
        restart = re.compile("^Restart Kernel…")
        self.page.get_by_role("menuitem", name=restart).click()
        self.page.get_by_role("button", name="Confirm Kernel Restart").click()

    def resize(self, width: int, height: int = HEIGHT) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
        # JupyterLab lays out its panels some time after the window was resized
        self.page.wait_for_timeout(500)

    def assert_accessible(self) -> None:
        """Check the course's parts of the page with axe: names, roles, keyboard, contrast."""
        found = Axe().run(self.page, context={"include": [[place] for place in OURS]}).response
        grave = [v for v in found["violations"] if v["impact"] in {"serious", "critical"}]
        assert not grave, [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in grave]
        assert found["passes"]

    def assert_nothing_cut(self) -> None:
        cut = self.page.locator(".jp-NotebookPanel").evaluate(CUT)
        assert not cut, cut

    def use_theme(self, name: str) -> None:
        self.page.get_by_role("menuitem", name="Settings", exact=True).click()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Theme$")).hover()
        self.page.locator(".lm-Menu-itemLabel", has_text=re.compile(f"^{name}$")).click()
        light = "true" if name.endswith("Light") else "false"
        expect(self.page.locator("body")).to_have_attribute(
            "data-jp-theme-light", light, timeout=20_000
        )

    def photograph(self, what: str, part: Locator | None = None) -> None:
        """Store a picture of the page, or of a part of it, if pictures were requested."""
        if self._shots is None:
            return
        self._taken += 1
        path = self._shots / f"{self._taken:02d}-{what}.png"
        if part is None:
            self.page.screenshot(path=path)
        else:
            part.screenshot(path=path)

    def photograph_whole(self, what: str) -> None:
        """Store pictures of the notebook from top to bottom, one after the other, if they were requested."""
        if self._shots is None:
            return
        panel = self.page.locator(".jp-NotebookPanel-notebook .jp-WindowedPanel-outer")
        whole = int(panel.evaluate("panel => panel.scrollHeight"))
        width = int(self.page.evaluate("window.innerWidth"))
        self.resize(width, min(whole + 200, TALLEST))
        seen = panel.evaluate("panel => panel.clientHeight")
        for number, top in enumerate(range(0, whole, seen), 1):
            panel.evaluate("(panel, top) => panel.scrollTo(0, top)", top)
            self.page.wait_for_timeout(500)  # parts that scroll into view are drawn first
            self.photograph(f"{what}-{number}")
        self.resize(width)
