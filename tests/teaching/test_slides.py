"""Slides: how a notebook's cells are shown, and that nothing is cut off in a browser without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, sync_playwright

from helpers.course.cli import main
from helpers.course.notebook_file import Notebook, read_notebook
from helpers.course.paths import Stop, paths
from helpers.course.workspace import find_workspace
from helpers.teaching.lesson import read_lesson
from tests.browser.conftest import BROWSERS, QUIET
from tests.teaching.draw_diagrams import diagrams
from tests.teaching.measure import HEIGHT, WIDTH, measure_slides

pytest.importorskip("sphinx_revealjs", reason="the extra `slides` is not installed")
pytest.importorskip("latex2mathml", reason="the extra `slides` is not installed")

from helpers.teaching.prose import diagram_file, sentences, to_html
from helpers.teaching.slides import Deck, build_deck, split_program, write_slides

SOLVED = sorted(find_workspace().solutions.glob("*.ipynb"))


@pytest.fixture
def page() -> Iterator[Page]:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser found: none of {', '.join(BROWSERS)} is on the PATH")
    with (
        sync_playwright() as driver,
        driver.chromium.launch(executable_path=browser, args=QUIET) as chromium,
    ):
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(30_000)
        yield page


def notebook(*cells: tuple[str, str]) -> Notebook:
    made = [
        {"cell_type": kind, "id": f"cell-{i}", "metadata": {}, "source": source, "outputs": []}
        for i, (kind, source) in enumerate(cells)
    ]
    return {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def whole(path: Path) -> tuple[Path, Stop]:
    return path, Stop(path.stem)


def solved(name: str) -> list[tuple[Stop, Notebook]]:
    path = next(path for path in SOLVED if path.name.startswith(name))
    return [(Stop(path.stem), read_notebook(path))]


def text_of(made: Deck) -> str:
    return "\n".join(slide.body for slide in made.slides)


def test_parts_end_at_headings_not_comments() -> None:
    found = read_lesson(
        "02_test",
        notebook(
            ("markdown", "# 02 · Test\n\nWords.\n\n## One\n\n```bash\n# not a heading\n```"),
            ("code", "f()"),
            ("markdown", "More.\n\n## Two"),
        ),
    )
    assert [part.title for part in found.parts] == ["02 · Test", "One", "Two"]
    assert [len(part.cells) for part in found.parts] == [1, 3, 0]


def test_sentences_keep_code_formulas_and_initials() -> None:
    assert sentences(
        "Call `a. b` and $x. y$, e.g. twice. Then R. Hockney said so! gloo waits."
    ) == [
        "Call `a. b` and $x. y$, e.g. twice.",
        "Then R. Hockney said so!",
        "gloo waits.",
    ]


def test_splits_long_programs_between_statements() -> None:
    functions = [f"def f{i}():\n" + "    pass\n" * 6 for i in range(6)]
    pieces = split_program("\n".join(functions), 20)
    assert (
        "\n\n".join(pieces).replace("\n\n", "\n")
        == "\n".join(functions).replace("\n\n", "\n").strip()
    )
    assert all(piece.startswith("def f") and piece.count("\n") < 20 for piece in pieces)


def test_formulas_become_mathml_and_diagrams_pictures() -> None:
    assert "<math" in to_html(r"It takes $\alpha + \beta n$.")
    assert "029F5" not in to_html(r"$$a \setminus b$$")
    missing = [code for code in diagrams() if not diagram_file(code).is_file()]
    assert not missing, (
        "run `python -m tests.teaching.draw_diagrams`, whose text says what it needs"
    )


def test_exercise_slides_show_task_and_stub() -> None:
    made = build_deck(solved("02"))
    assert "BEGIN SOLUTION" not in text_of(made)
    (task,) = (
        slide for slide in made.slides if slide.kind == "task" and slide.title == "Ping-pong"
    )
    assert task.label.startswith("Exercise 2.1 · 12 min") and "Target" in task.body
    notes = {note.title: note.body for note in task.notes}
    assert set(notes) == {"Time", "Usual wrong answers", "Break it live", "If they are stuck"}
    assert notes["Usual wrong answers"].count("<b>") == 3
    stub = made.slides[made.slides.index(task) + 1]
    assert "NotImplementedError" in stub.body


def test_options_add_optional_exercises_and_solutions() -> None:
    plain = build_deck(solved("02"))
    full = build_deck(solved("02"), further=True, solutions=True)
    assert "Tagged mail" not in {slide.title for slide in plain.slides}
    assert "Tagged mail" in {slide.title for slide in full.slides}
    labels = [slide.label for slide in full.slides]
    assert labels.count("Solution") >= 5 and "Solution" not in [s.label for s in plain.slides]
    assert "BEGIN SOLUTION" not in text_of(full)


@pytest.mark.extended
@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_slides_have_title_body_and_time(path: Path) -> None:
    made = build_deck([(Stop(path.stem), read_notebook(path))])
    assert len(made.slides) > 20
    for slide in made.slides:
        assert slide.title and slide.body.strip()
        assert slide.notes[0].title == "Time"
    assert any(slide.kind == "quiz" for slide in made.slides)


@pytest.mark.extended
def test_slides_fit_and_fetch_nothing(page: Page, tmp_path: Path) -> None:
    """This notebook is a sample of all: it has players' pictures, lanes, tables of verdicts and a curve."""
    asked, errors = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    path = write_slides([whole(SOLVED[2])], tmp_path / "02.html", run=False)
    found = measure_slides(page, path)
    assert len(found) > 30
    assert [look for look in found if not look.fits] == []
    assert not errors and not [
        url for url in asked if not url.startswith(("file:", "data:", "blob:"))
    ]


def test_focused_player_keeps_keys_from_slides(page: Page, tmp_path: Path) -> None:
    """Notebook 00 is stored with a player, so nothing has to run here."""
    path = write_slides([whole(SOLVED[0])], tmp_path / "00.html", run=False)
    page.goto(path.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    page.wait_for_selector("[data-lm-suppress-shortcuts]", state="attached")
    page.evaluate(
        "() => { while (!Reveal.getCurrentSlide().querySelector('[data-lm-suppress-shortcuts]')"
        " && !Reveal.isLastSlide()) Reveal.next(); }"
    )
    where = page.evaluate("Reveal.getIndices()")
    page.get_by_role("button", name="Play").first.click()
    page.wait_for_function("!document.body.innerText.includes('Before the first event.')")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices()") == where
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("Reveal.getIndices()") != where


@pytest.mark.extended
def test_speaker_view_shows_notes(page: Page, tmp_path: Path) -> None:
    path = write_slides([whole(SOLVED[2])], tmp_path / "02.html", run=False)
    page.goto(path.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    with page.context.expect_page() as opened:
        page.keyboard.press("s")
    opened.value.get_by_text("min for this part").first.wait_for()


def test_command_writes_file_for_each_notebook(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["slides", "02", "4", "--stored", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "02_blocking_p2p.html",
        "04_collectives.html",
    ]


@pytest.mark.extended
def test_path_slides_move_text_into_notes(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["slides", "--path", "ddp", "--stored", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    sources = [solved(stop.notebook)[0][1] for stop in paths()["ddp"].stops]
    path = paths()["ddp"]
    made = build_deck(list(zip(path.stops, sources, strict=True)), learning_path=path)
    first, *_ = made.slides
    assert first.title == path.title and "At the end" in first.body
    assert 30 < len(made.slides) < 50
    assert all(len(column) == 1 for column in made.columns)
    spoken = [s for s in made.slides if any(note.title == "Say" for note in s.notes)]
    assert len(spoken) > 20
    assert "<title>DDP in an evening</title>" in (tmp_path / "ddp.html").read_text(encoding="utf-8")


def test_missing_package_error_suggests_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helpers.teaching.reveal.find_spec", lambda name: None)
    done = CliRunner().invoke(main, ["slides", "02", "--stored", "--out", str(tmp_path)])
    assert done.exit_code == 1 and "pip install" in done.output and "[slides]" in done.output
    assert "reveal" in done.output


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("further", [False, True], ids=["core", "all"])
@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_slides_of_every_notebook_fit(
    page: Page, tmp_path: Path, path: Path, further: bool, shots: Path | None
) -> None:
    made = write_slides(
        [whole(path)], tmp_path / "all.html", run=False, further=further, solutions=further
    )
    found = measure_slides(page, made, shots)
    assert [look for look in found if not look.fits] == []


@pytest.fixture(params=SOLVED, ids=lambda path: path.stem)
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make slides with players, before starting the browser, whose driver has a separate event loop."""
    return write_slides([whole(request.param)], tmp_path / "live.html")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_slides_with_live_players_fit(live: Path, page: Page) -> None:
    found = measure_slides(page, live)
    assert [look for look in found if not look.fits] == []
