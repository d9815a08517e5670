"""The last cell of a notebook: finished and open exercises, and links to these and to the next step."""

from __future__ import annotations

import re

import pytest

from helpers.checks.headings import headings
from helpers.course.next_steps import next_part, next_steps
from helpers.course.notebook_file import source_of
from helpers.course.paths import paths
from helpers.course.progress import record_quiz, record_score
from helpers.course.workspace import cells_of


def test_remaining_exercises_link_to_their_cells() -> None:
    record_score("ping_pong", "passed", 10, 10)
    record_quiz("recv-first", 2, True)
    shown = next_steps("02")
    assert "  ● 2.1 " in repr(shown) and "  ○ 2.2 " in repr(shown)
    assert "recv-first" not in repr(shown)
    by_id = {cell["id"]: source_of(cell) for cell in cells_of("02_blocking_p2p")}
    links = re.findall(
        r'href="02_blocking_p2p\.ipynb#cell-id=([^"]+)">(2\.\d)', shown._repr_html_()
    )
    assert len(links) == len([e for e in headings().values() if e.notebook == "02_blocking_p2p"])
    for cell, _ in links:
        assert "check(" in by_id[cell]


def test_lists_wrong_predictions_for_retry() -> None:
    record_quiz("recv-first", 0, False)
    shown = next_steps("02")
    assert "Predictions to try again: recv-first\n" in repr(shown)
    assert "Predictions to try again: <a" in shown._repr_html_()
    assert "recv-first" not in repr(shown).partition("Predictions to make")[2].partition("\n")[0]
    record_quiz("recv-first", 2, True)
    assert "again" not in repr(next_steps("02")) + next_steps("02")._repr_html_()


def test_links_to_next_stops_and_home() -> None:
    shown = next_steps("02")
    page = shown._repr_html_()
    assert "DDP in an evening: next is 04 · Collectives\n" in repr(shown)
    assert 'href="04_collectives.ipynb"' in page
    assert 'href="03_nonblocking_p2p.ipynb"' in page and 'href="home.ipynb"' in page
    assert "Why does my job hang" not in repr(shown)


def test_last_stop_shows_end_of_path() -> None:
    assert paths()["ddp"].end in repr(next_steps("10"))
    assert paths()["everything"].end in next_steps("23")._repr_html_()


def test_notebook_outside_paths_is_called_reference_work() -> None:
    assert "reference work" in repr(next_steps("16"))
    assert "reference work" not in repr(next_steps("02"))


def test_passed_exercise_leads_to_next_notebook() -> None:
    assert next_part("ping_pong") == ("04 · Collectives", "04_collectives.ipynb")


@pytest.mark.parametrize(
    ("name", "next_step", "cell"),
    [
        ("count_votes", "What launch returns", "## What launch returns: a Run"),
        ("my_slice", "Reading a failure", "## Reading a failure"),
        ("average_gradients", "Compare the weights", "## Compare the weights with one process"),
        ("token_ring", "Exercise 2.3", "## Exercise 2.3"),
        ("strong_scaling", "the end of “DDP in an evening”", "## Next"),
        ("muon_step", "the next notebook of your path", "## Next"),
    ],
)
def test_pass_links_to_next_cell(name: str, next_step: str, cell: str) -> None:
    words, link = next_part(name)
    notebook, _, where = link.partition(".ipynb#cell-id=")
    (found,) = (each for each in cells_of(notebook) if each["id"] == where)
    assert words.startswith(next_step) and source_of(found).startswith(cell)


def test_missing_notebook_keeps_next_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("helpers.course.workspace.cells_of", lambda notebook: [])
    assert next_part("ping_pong") == ("04 · Collectives", "04_collectives.ipynb")
    assert next_part("swap") == ("the next notebook of your path", "")
