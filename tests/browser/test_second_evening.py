"""Notebook 00 on two evenings: a passed answer is saved at once, and outputs survive their kernel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.course.notebook_file import read_notebook, source_of
from helpers.views.live import WIDGET_VIEW
from tests.browser.lab import Lab
from tests.browser.notebook_page import NotebookPage

ANSWER = "def count_votes"


@pytest.fixture
def name() -> str:
    return "00_start_here.ipynb"


@pytest.mark.extended
@pytest.mark.timeout(300)
def test_outputs_survive_kernel_shutdown(
    page: Page, lab: Lab, work: Path, name: str, shots: Path | None
) -> None:
    path = work / name
    cells = [c for c in read_notebook(path)["cells"] if c["cell_type"] == "code"]
    page.goto(lab.url(f"lab/tree/{name}"))
    notebook = NotebookPage(page, shots)
    notebook.wait_until_open(len(cells))
    notebook.run_all()
    notebook.wait_until_all_have_run(120)
    broken = notebook.output("break_it(")
    quiz = notebook.output('predict("one-stays-away")')
    broken.get_by_label("late", exact=True).select_option("rank 1")
    expect(broken).to_contain_text("rank 1 is late", timeout=20_000)
    quiz.locator('input[type="radio"]').nth(2).click()
    quiz.get_by_role("button", name="Check").click()
    expect(quiz).to_contain_text("c) Wrong.")
    hints = notebook.add_and_run('from helpers import hint\nhint("my_slice")')
    hints.get_by_role("button", name="Next hint").click()
    expect(hints).to_contain_text("hint 2 of 3")
    notebook.photograph("first-evening", broken)
    notebook.restart()
    notebook.wait_until_open(len(cells) + 1)
    notebook.save()
    page.reload()
    notebook.wait_until_open(len(cells) + 1)
    expect(broken).to_contain_text("Run this cell again to use the menus.")
    expect(broken).to_contain_text("rank 1 is late")
    expect(broken.get_by_role("button", name="Play").first).to_be_visible()
    expect(quiz).to_contain_text("Run this cell again to choose an answer.")
    expect(quiz).to_contain_text("c) Wrong.")
    expect(hints).to_contain_text("hint 2 of 3")
    expect(hints).to_contain_text("Run this cell again for the next hint.")
    expect(page.get_by_text("Error displaying widget")).to_have_count(0)
    for number, part in enumerate((broken, quiz, hints)):
        part.scroll_into_view_if_needed()
        notebook.photograph(f"second-evening-{number}", part)
    assert WIDGET_VIEW not in path.read_text()


@pytest.mark.extended
@pytest.mark.timeout(240)
def test_quiz_works_after_restart(page: Page, lab: Lab, work: Path, name: str) -> None:
    path = work / name
    cells = [c for c in read_notebook(path)["cells"] if c["cell_type"] == "code"]
    page.goto(lab.url(f"lab/tree/{name}"))
    notebook = NotebookPage(page, None)
    notebook.wait_until_open(len(cells))
    call = 'from helpers import predict\npredict("one-stays-away")  # now'
    quiz = notebook.add_and_run(call)
    radios = quiz.locator('input[type="radio"]')
    radios.first.focus(timeout=60_000)
    page.keyboard.press("ArrowDown")
    expect(radios.nth(1)).to_be_focused()
    expect(radios.nth(1)).to_be_checked()
    page.keyboard.press("Tab")
    expect(quiz.get_by_role("button", name="Check")).to_be_focused()
    page.keyboard.press("Enter")
    expect(quiz).to_contain_text("b) Wrong.", timeout=20_000)
    notebook.restart()
    shown = quiz.locator(".jupyter-widgets-disconnected").first
    expect(shown).to_have_attribute("inert", "", timeout=60_000)
    notebook.wait_until_idle()
    notebook.cell("# now").locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(quiz).to_contain_text("You answered b) ✗ Try again.", timeout=60_000)
    radios.first.check()


HANG = """import torch.distributed as dist
from helpers import launch
def meet(rank, world_size):
    if rank != 3:
        dist.barrier()
try:
    run = launch(meet, 4)
except Exception as error:
    run = error.run
run"""
SCALE = (
    "graph => graph.getBoundingClientRect().width / Number.parseFloat(graph.getAttribute('width'))"
)
LESS = "part => part.scrollWidth - part.clientWidth"


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_outputs_stay_readable_on_half_page(
    page: Page, lab: Lab, work: Path, name: str, shots: Path | None
) -> None:
    cells = [c for c in read_notebook(work / name)["cells"] if c["cell_type"] == "code"]
    page.goto(lab.url(f"lab/tree/{name}"))
    notebook = NotebookPage(page, shots)
    notebook.wait_until_open(len(cells))
    hung = notebook.add_and_run(HANG + "\n# now")
    graph = hung.locator(".rr-graph svg")
    expect(graph).to_be_visible(timeout=60_000)
    notebook.resize(640, 450)
    graph.scroll_into_view_if_needed()
    assert graph.evaluate(SCALE) >= 0.79
    notebook.photograph("graph")
    stage = hung.locator(".rr-stage")
    stage.scroll_into_view_if_needed()
    expect(stage).to_have_class(re.compile("rr-more"))
    expect(stage).to_have_attribute("tabindex", "0")
    notebook.photograph("stage")
    stage.evaluate("stage => stage.scrollTo(0, stage.scrollHeight)")
    expect(stage).not_to_have_class(re.compile("rr-more"))
    table = page.locator(".jp-RenderedMarkdown", has=page.get_by_text("When you are stuck")).last
    assert table.evaluate(LESS) <= 0


@pytest.mark.extended
@pytest.mark.timeout(180)
def test_saves_notebook_after_passing_check(
    page: Page, lab: Lab, work: Path, name: str, shots: Path | None
) -> None:
    path = work / name
    cells = [c for c in read_notebook(path)["cells"] if c["cell_type"] == "code"]
    page.goto(lab.url(f"lab/tree/{name}"))
    notebook = NotebookPage(page, shots)
    notebook.wait_until_open(len(cells))
    answer = next(source_of(cell) for cell in cells if ANSWER in source_of(cell))
    checked = notebook.add_and_run(
        "import torch\nimport torch.distributed as dist\nfrom helpers import check\n\n"
        + answer.replace(ANSWER, "# written today\ndef count_votes")
        + "\n\ncheck(count_votes)"
    )
    expect(checked.locator(".jp-OutputArea")).to_contain_text("passed", timeout=60_000)
    expect(page.locator(".jp-mod-dirty")).to_have_count(0, timeout=20_000)
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    notebook.wait_until_open(len(cells) + 1)
    expect(notebook.cell("# written today").locator(".jp-OutputArea")).to_contain_text("passed")
