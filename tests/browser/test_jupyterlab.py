"""Notebook 02 in real JupyterLab in a real browser: run, look, press Stop, continue.

It stores pictures in the folder $RR_SHOTS, so that you can look at them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from helpers.course.notebook_file import read_notebook
from helpers.course.progress import decode
from tests.browser.lab import Lab
from tests.browser.notebook_page import NUMBERED, WIDTH, NotebookPage

NAME = "02_blocking_p2p.ipynb"
RUN_ALL_S = 120.0

HANG = """\
import time

def hang(rank, world_size):
    print("rank", rank, "sleeps")
    time.sleep(600)

launch(hang, 3, timeout=900)"""

LEAVES = """\
def leaves(rank, world_size):
    if rank:
        dist.recv(torch.ones(1), src=0)

launch(leaves, 2, on_failure="return")"""

LONG_LINE = """\
def long_line(rank, world_size):
    mine, first, second = torch.full((8,), rank), torch.empty(8), torch.empty(8)
    dist.all_gather([first, second] if world_size == 2 else [first] * world_size, mine * 1.0, async_op=False)

timeline(launch(long_line, 2))"""

MANY_LINES = "\n".join(
    [
        "def many_lines(rank, world_size):",
        "    ones = torch.ones(1)",
        *["    dist.all_reduce(ones)"] * 40,
        "",
        "timeline(launch(many_lines, 2))",
    ]
)

# Interactive outputs, each with a part that takes the focus when a reader uses it.
USED: dict[str, tuple[str, Literal["button", "radio", "slider"], str]] = {
    "a player": ("timeline(run)", "button", "Play"),
    "a player's slider": ("timeline(run)", "slider", "Step"),
    "an explorer's slider": (
        'from helpers import explore; explore("pipeline")',
        "slider",
        "stages",
    ),
    "an explorer's button": ('from helpers import explore; explore("pipeline")', "button", "Reset"),
    "a quiz": ('predict("recv-first")', "button", "Check"),
}

IN_SIGHT = """line => {
    const [row, list] = [line, line.parentElement].map(part => part.getBoundingClientRect());
    return row.top >= list.top && row.bottom <= list.bottom;
}"""

CUT = """player => [...player.querySelectorAll("*")]
    .filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
    .map(part => part.className || part.tagName)"""


@pytest.mark.extended
@pytest.mark.timeout(300)
def test_notebook_continues_after_stopped_launch(
    page: Page, lab: Lab, work: Path, shots: Path | None
) -> None:
    cells = [c for c in read_notebook(work / NAME)["cells"] if c["cell_type"] == "code"]
    page.goto(lab.url(f"lab/tree/{NAME}"))
    notebook = NotebookPage(page, shots)
    notebook.wait_until_open(len(cells))
    notebook.photograph("opened")
    notebook.run_all()
    notebook.wait_until_all_have_run(RUN_ALL_S)
    _check_rendered_outputs(notebook)
    _check_passed_check(notebook)
    _check_run_playback(notebook)
    _check_deadlock_playback(notebook)
    _check_long_line_on_narrow_page(notebook)
    _check_current_line_is_visible(notebook)
    _check_quiz_clicks(notebook, work)
    _check_slider_redraws(notebook)
    for what in USED:
        _check_jupyterlab_keys(notebook, what)
    _check_reference_is_shown(notebook)
    notebook.assert_accessible()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.use_theme(theme)
        _check_diagram_theme(notebook)
        notebook.photograph_whole(theme.rpartition(" ")[2].lower())
    _check_stop_and_next_cell(notebook)
    _check_quiz_after_restart(notebook)


def _check_rendered_outputs(notebook: NotebookPage) -> None:
    lanes = notebook.output("run = launch(one_message, 2)")
    expect(lanes).to_contain_text("rank 0")
    expect(lanes).to_contain_text("tensor([3., 1., 4.])")
    picture = notebook.output("traffic(").locator("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.complete && image.naturalWidth > 400")
    assert picture.evaluate("image => image.naturalWidth / image.clientWidth") == pytest.approx(
        2, 0.01
    )
    deadlock = notebook.output("launch(both_receive_first")
    expect(deadlock).to_contain_text("Deadlock")
    expect(deadlock).to_contain_text("in recv←1")
    passed = notebook.output("result = check(ping_pong)")
    expect(passed).to_contain_text("Exercise 2.1: Ping-pong")
    expect(passed).to_contain_text("passed")
    expect(notebook.page.locator(".jp-NotebookPanel [data-mime-type*='error']")).to_have_count(0)


def _check_passed_check(notebook: NotebookPage) -> None:
    cell = notebook.add_and_run("check(token_ring)")
    player, page = cell.locator(".rr-player"), notebook.page
    player.locator(".rr-stage").scroll_into_view_if_needed()
    expect(player.get_by_role("button", name="Pause")).to_be_visible(timeout=20_000)
    notebook.photograph("passed", cell)
    player.get_by_label("Speed").select_option("4")
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible(timeout=60_000)
    count = player.locator(".rr-count")
    expect(count).to_have_text(re.compile(r"^(\d+) / \1$"))
    cell.get_by_role("link", name="Exercise 2.3, Exchange in pairs").click()
    expect(page.get_by_role("heading", name="Exercise 2.3: Exchange in pairs")).to_be_in_viewport()
    page.emulate_media(reduced_motion="reduce")
    still = notebook.add_and_run("check(token_ring)").locator(".rr-player")
    still.locator(".rr-stage").scroll_into_view_if_needed()
    page.wait_for_timeout(1500)
    expect(still.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(still.locator(".rr-count")).to_have_text(count.inner_text())
    page.emulate_media(reduced_motion="no-preference")


def _check_run_playback(notebook: NotebookPage) -> None:
    player = notebook.output("timeline(run)").locator(".rr-player").first
    now, does = player.locator(".rr-said"), player.locator("tbody tr")
    # at rest the player shows the whole picture, and nothing is faded until it plays
    expect(player.locator(".rr-count")).to_have_text("4 / 4")
    expect(player.locator(".rr-future")).to_be_hidden()
    notebook.photograph("at-rest", player)
    player.get_by_role("button", name="To the beginning").click()
    expect(now).to_have_text("Before the first event.")
    expect(player.locator(".rr-future")).to_be_visible()
    player.get_by_role("button", name="One step on").click()
    expect(now).to_have_text(re.compile(r"^Rank \d calls (send|recv).*line \d+\)\.$"))
    player.focus()
    notebook.page.keyboard.press("End")
    expect(does.nth(1)).to_contain_text("after recv←0")
    expect(does.nth(1)).to_contain_text("[3 1 4]")
    notebook.page.keyboard.press("ArrowLeft")
    expect(player.locator(".rr-count")).to_have_text("3 / 4")
    notebook.page.keyboard.press("End")
    player.get_by_role("button", name="Play", exact=True).click()
    notebook.photograph("playing", player)
    # a step takes about a second, and the sentence changes with each step
    for step in range(1, 5):
        expect(player.locator(".rr-count")).to_have_text(f"{step} / 4")
        expect(now).to_have_text(re.compile(r"^Rank \d (calls|is done with) (send|recv)"))
    expect(player.get_by_role("button", name="Play", exact=True)).to_be_visible()
    expect(player.locator(".rr-line.rr-at")).to_have_count(2)
    notebook.photograph("played", player)


def _check_deadlock_playback(notebook: NotebookPage) -> None:
    output = notebook.output("launch(both_receive_first")
    player = output.locator(".rr-player")
    expect(output.get_by_text("A cycle of receives")).to_have_count(1)
    who = player.locator(".rr-ending").get_by_role(
        "img", name="wait graph of 2 ranks: cycle 0 → 1 → 0"
    )
    expect(who).to_be_visible()
    expect(player.locator(".rr-in")).to_have_count(2)
    notebook.photograph("deadlock-played", player)
    left = notebook.add_and_run(LEAVES).locator(".rr-player")
    expect(left.locator(".rr-table tbody tr").first).to_contain_text("has returned")
    left.get_by_role("button", name="To the beginning").click()
    expect(left.locator(".rr-table tbody tr").first).to_contain_text("nothing yet")


def _check_long_line_on_narrow_page(notebook: NotebookPage) -> None:
    player = notebook.add_and_run(LONG_LINE).locator(".rr-player")
    player.get_by_role("button", name="To the end").click()
    for width in (700, 850, 1000, 1600):
        notebook.resize(width)
        assert player.evaluate(CUT) == [], width
        notebook.photograph(f"player-{width}", player)
    notebook.resize(WIDTH)


def _check_current_line_is_visible(notebook: NotebookPage) -> None:
    player = notebook.add_and_run(MANY_LINES).locator(".rr-player")
    page = notebook.page.locator(".jp-NotebookPanel .jp-WindowedPanel-outer")
    for button in ("To the end", "To the beginning", "One step on"):
        player.get_by_role("button", name=button).click()
    first = player.locator(".rr-line.rr-at").first
    assert first.evaluate(IN_SIGHT)
    at = page.evaluate("panel => panel.scrollTop")
    player.get_by_role("button", name="To the end").click()
    last = player.locator(".rr-line.rr-at").last
    expect(last.locator(".rr-number")).to_have_text("42")
    assert last.evaluate(IN_SIGHT)
    assert page.evaluate("panel => panel.scrollTop") == at


def _check_slider_redraws(notebook: NotebookPage) -> None:
    source = 'from helpers import explore\nexplore("collective", ranks=3)'
    shown = notebook.add_and_run(source).locator(".jp-OutputArea")
    expect(shown).to_contain_text("all_gather on 3 ranks", timeout=20_000)
    shown.get_by_role("slider", name="ranks").focus()
    notebook.page.keyboard.press("ArrowRight")
    expect(shown).to_contain_text("all_gather on 4 ranks", timeout=20_000)
    shown.get_by_role("radio", name="reduce", exact=True).check()
    expect(shown).to_contain_text("reduce root 0 SUM on 4 ranks", timeout=20_000)
    notebook.photograph("explorer", shown)


def _check_jupyterlab_keys(notebook: NotebookPage, what: str) -> None:
    source, role, name = USED[what]
    notebook.add_and_run(f"# {what}\n{source}")
    cell = notebook.cell(f"# {what}")
    prompt = cell.locator(".jp-InputPrompt").first

    def use() -> str:
        expect(prompt).to_have_text(NUMBERED, timeout=60_000)
        part = cell.locator(".jp-OutputArea").get_by_role(role, name=name, exact=True).first
        part.click()
        part.focus()
        return prompt.inner_text()

    for keys in ("Control+Enter", "Shift+Enter"):
        before = use()
        notebook.page.keyboard.press(keys)
        expect(prompt, f"{keys} after {what}").not_to_have_text(before, timeout=60_000)
    count = notebook.code_cells.count()
    before = use()
    notebook.page.keyboard.press("Alt+Enter")
    expect(prompt, f"Alt+Enter after {what}").not_to_have_text(before, timeout=60_000)
    expect(notebook.code_cells).to_have_count(count + 1)
    before = use()
    for key in ("Escape", "Shift+Enter"):
        notebook.page.keyboard.press(key)
    expect(prompt, f"Escape after {what}").not_to_have_text(before, timeout=60_000)


def _check_reference_is_shown(notebook: NotebookPage) -> None:
    shown = notebook.add_and_run("from helpers import show_me\nshow_me(ping_pong)")
    page = shown.locator(".jp-OutputArea")
    expect(page).to_contain_text("Reference", timeout=20_000)
    expect(page.locator("pre")).to_have_count(2)
    expect(page.locator(".rr-player")).to_have_count(2)
    notebook.photograph("beside", shown)


def _check_quiz_clicks(notebook: NotebookPage, work: Path) -> None:
    quiz = notebook.output('predict("recv-first")')
    options = quiz.locator('input[type="radio"]')
    check = quiz.get_by_role("button", name="Check")
    check.click()
    expect(quiz).to_contain_text("Choose an answer first.")
    options.nth(0).click()
    check.click()
    expect(quiz).to_contain_text("✗ a) Wrong.")
    notebook.photograph("quiz-wrong", quiz)
    options.nth(2).click()
    check.click()
    expect(quiz).to_contain_text("✓ c) Right.")
    expect(quiz.get_by_role("link", name="Run the next cell")).to_be_visible()
    expect(quiz).not_to_contain_text("Wrong.")
    notebook.photograph("quiz-right", quiz)
    progress = decode((work / ".progress.json").read_text())
    assert progress.quizzes["recv-first"].correct
    assert progress.exercises["ping_pong"].best.outcome == "passed"


def _check_diagram_theme(notebook: NotebookPage) -> None:
    """The diagram is gray and drawn once, in the light theme; the dark theme inverts it."""
    diagram = notebook.page.locator(".jp-RenderedMermaid img").first
    dark = notebook.page.locator("body[data-jp-theme-light='false']").count() > 0
    expect(diagram).to_have_css("filter", re.compile("^invert" if dark else "^grayscale"))


def _check_stop_and_next_cell(notebook: NotebookPage) -> None:
    hanging = notebook.add_and_run(HANG)
    shown = hanging.locator(".jp-OutputArea")
    expect(shown).to_contain_text("rank 2 sleeps", timeout=60_000)
    expect(shown).to_contain_text("now: ", timeout=60_000)
    expect(shown).to_contain_text(re.compile(r"cell \[\d+\], line 5"), timeout=60_000)
    notebook.photograph("hanging", hanging)
    notebook.stop()
    expect(shown).to_contain_text(
        "all 3 ranks were terminated. The kernel is ready", timeout=20_000
    )
    expect(shown).not_to_contain_text("ranks running for")
    notebook.photograph("stopped", hanging)
    after = notebook.add_and_run("launch(one_message, 2).values").locator(".jp-OutputArea")
    expect(after).to_contain_text("[None, tensor([3., 1., 4.])]", timeout=20_000)


def _check_quiz_after_restart(notebook: NotebookPage) -> None:
    notebook.restart()
    quiz = notebook.output('predict("recv-first")')
    told = quiz.locator(".jupyter-widgets-disconnected").first
    expect(told).to_be_visible(timeout=20_000)
    # text that style sheets add is not part of the page's text
    shown = "part => getComputedStyle(part, '::before').content"
    assert "Run this cell again" in told.evaluate(shown)
    inner = told.locator(".jupyter-widgets-disconnected").first
    assert inner.evaluate("part => getComputedStyle(part, '::before').display") == "none"
    notebook.photograph("restarted", quiz)
