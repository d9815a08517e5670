"""Test the map of the course: each notebook's state, by passed exercises, hints and quizzes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.checks.headings import Heading, headings
from helpers.course.home import Home, home, notebook_places, path_progress
from helpers.course.notebook_file import read_notebook, source_of
from helpers.course.paths import paths
from helpers.course.progress import Progress, Score, record_hint, record_quiz, record_score
from helpers.course.quizzes import quizzes_of_notebooks
from helpers.course.workspace import find_workspace

EXERCISES = [
    Heading("one", "02_blocking_p2p", "2.1", "One", 12),
    Heading("two", "02_blocking_p2p", "2.2", "Two", 8),
    Heading("more", "02_blocking_p2p", "2.3", "More", 20, further=True),
    Heading("three", "03_nonblocking_p2p", "3.1", "Three", 30),
    Heading("four", "07_data_partitioning", "7.1", "Four", 5),
]
FULL = Score("passed", 10, 10, "2026-01-01T00:00:00Z")


def states(progress: Progress) -> list[str]:
    return [place.state for place in notebook_places(progress, EXERCISES)]


def test_the_first_notebook_is_next_if_none_is_begun() -> None:
    assert states(Progress()) == ["next", "to come", "to come"]


def test_a_notebook_is_done_with_its_core_exercises_and_begun_by_any_sign() -> None:
    done = Progress().with_score("one", FULL).with_score("two", FULL)
    assert states(done) == ["done", "next", "to come"]
    assert states(Progress().with_score("one", FULL)) == ["begun", "to come", "to come"]
    assert states(Progress().with_hint("more", 1)) == ["begun", "to come", "to come"]
    assert states(Progress().with_score("three", FULL)) == ["to come", "done", "next"]
    answered = Progress().with_answer("recv-first", 0, False, "2026-01-01T00:00:00Z")
    assert states(answered) == ["begun", "to come", "to come"]


def test_minutes_and_counts_are_of_core_exercises() -> None:
    first, *_ = notebook_places(Progress().with_score("one", FULL), EXERCISES)
    assert (first.passed, first.core, first.minutes) == (1, 2, 8)
    assert first.next is not None and first.next.name == "two"


def test_a_learner_continues_at_the_last_place() -> None:
    course = list(headings().values())

    def home_for(progress: Progress) -> Home:
        found = notebook_places(progress, course)
        return Home(found, path_progress(progress, found))

    def stop(progress: Progress) -> tuple[str, str]:
        now = home_for(progress)
        assert now.way is not None and now.here is not None
        return now.way.path.name, now.here.stop.notebook[:2]

    assert stop(Progress()) == ("ddp", "00")
    started = Progress()
    for exercise in paths()["ddp"].stops[0].exercises:
        started = started.with_score(exercise.name, FULL)
    # the path does not contain notebook 01
    assert stop(started) == ("ddp", "02")
    # a learner with exercises on no short path continues on the path through everything
    beyond = started.with_score("my_slice", FULL).with_hint("init_from_env", 1)
    assert stop(beyond) == ("everything", "01")
    # a learner who began with deadlocks continues there
    assert stop(started.with_hint("repair_mismatch", 1)) == ("hang", "06")
    assert stop(Progress().with_score("ring_attention", FULL))[0] == "everything"
    everything = Progress()
    for exercise in course:
        everything = everything.with_score(exercise.name, FULL)
    done = home_for(everything)
    assert done.here is None and "Next: " not in repr(done)
    assert "Your next step" not in done._repr_html_() and "left" not in repr(done)


def test_text_and_page_say_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record_score("ping_pong", "passed", 10, 10)
    record_hint("token_ring", 1)
    record_quiz("recv-first", 2, True)
    page, text = home()._repr_html_(), repr(home())
    plain = re.sub(r"<[^>]+>", " ", page)
    assert "02 · Blocking send and receive" in text and "02 · Blocking send and receive" in plain
    assert "1/3 exercises, 1/3 quizzes" in text and "1 of 3" in plain
    assert 'href="02_blocking_p2p.ipynb"' in page
    assert len(re.findall(r"<tr><td", page)) == len({e.notebook for e in headings().values()})
    assert "IV Running for real" in text and "IV Running for real" in plain


def test_each_quiz_is_shown_by_itself_and_leads_to_its_cell() -> None:
    record_quiz("recv-first", 2, True)
    record_quiz("small-send", 0, False)
    page = home()._repr_html_()
    assert re.search(r'title="recv-first: answered"[^>]*>●<', page)
    assert re.search(r'title="small-send: not right yet"[^>]*>◐<', page)
    assert re.search(r'title="tags-out-of-order: not answered yet"[^>]*>○<', page)
    for name, ids in quizzes_of_notebooks().items():
        cells = read_notebook(find_workspace().notebooks / f"{name}.ipynb")["cells"]
        asked = {cell["id"]: source_of(cell) for cell in cells if cell["cell_type"] == "code"}
        for quiz in ids:
            cell = re.search(rf'href="{name}\.ipynb#cell-id=([^"]+)"[^>]* title="{quiz}:', page)
            assert cell is not None and f'predict("{quiz}")' in asked[cell[1]], quiz
