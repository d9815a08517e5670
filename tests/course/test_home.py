"""Test the map of the course: each notebook's state, by passed exercises, hints and quizzes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.checks.headings import Heading, headings
from helpers.course.can_do import can_do_page
from helpers.course.cli import main
from helpers.course.home import Home, home, notebook_places, path_progress, write_home
from helpers.course.next_steps import next_part, next_steps
from helpers.course.notebook_file import read_notebook, source_of
from helpers.course.path_picture import path_picture
from helpers.course.paths import paths
from helpers.course.progress import (
    Progress,
    Score,
    read_progress,
    record_hint,
    record_quiz,
    record_score,
)
from helpers.course.quizzes import quizzes_of_notebooks
from helpers.course.workspace import copy_missing_notebooks, find_workspace

EXERCISES = [
    Heading("one", "02_blocking_p2p", "2.1", "One", 12),
    Heading("two", "02_blocking_p2p", "2.2", "Two", 8),
    Heading("more", "02_blocking_p2p", "2.3", "More", 20, further=True),
    Heading("three", "03_nonblocking_p2p", "3.1", "Three", 30),
    Heading("four", "07_data_partitioning", "7.1", "Four", 5),
]
FULL = Score("passed", 10, 10, "2026-01-01T00:00:00Z")
LATER = Score("wrong", 0, 10, "2026-01-02T00:00:00Z")


def states(progress: Progress) -> list[str]:
    return [place.state for place in notebook_places(progress, EXERCISES)]


def test_untouched_course_starts_with_first_notebook() -> None:
    assert states(Progress()) == ["next", "to come", "to come"]


def test_core_exercises_complete_notebook() -> None:
    done = Progress().with_score("one", FULL).with_score("two", FULL)
    assert states(done) == ["done", "next", "to come"]
    assert states(Progress().with_score("one", FULL)) == ["begun", "to come", "to come"]
    assert states(Progress().with_hint("more", 1)) == ["begun", "to come", "to come"]
    assert states(Progress().with_score("three", FULL)) == ["to come", "done", "next"]
    answered = Progress().with_answer("recv-first", 0, False, "2026-01-01T00:00:00Z")
    assert states(answered) == ["begun", "to come", "to come"]


def test_minutes_and_counts_cover_core_exercises() -> None:
    first, *_ = notebook_places(Progress().with_score("one", FULL), EXERCISES)
    assert (first.passed_count, first.core_count, first.remaining_minutes) == (1, 2, 8)
    assert first.next is not None and first.next.name == "two"


def test_home_continues_at_last_place() -> None:
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
    # a hint on another path changes nothing, but a check does
    hinted = started.with_hint("repair_mismatch", 1)
    assert stop(hinted) == ("ddp", "02")
    assert stop(hinted.with_score("repair_mismatch", LATER)) == ("hang", "06")
    assert stop(Progress().with_hint("repair_mismatch", 1)) == ("hang", "06")
    assert stop(Progress().with_score("ring_attention", FULL))[0] == "everything"
    everything = Progress()
    for exercise in course:
        everything = everything.with_score(exercise.name, FULL)
    done = home_for(everything)
    assert done.here is None and "Next: " not in repr(done)
    assert "Your next step" not in done._repr_html_() and "left" not in repr(done)


EXTRAS = ("my_slice", "token_ring", "init_from_env", "ring_attention")


@pytest.mark.parametrize("count", range(len(EXTRAS) + 1))
def test_optional_exercises_leave_path_unchanged(count: int) -> None:
    for name in ("count_votes", "ping_pong", *EXTRAS[:count]):
        record_score(name, "passed", 10, 10)
    now = home()
    assert now.way is not None and now.here is not None
    assert (now.way.path.name, now.here.stop.notebook[:2]) == ("ddp", "04")


def test_all_pages_agree_on_next_step() -> None:
    for name in ("ping_pong", "count_votes", "my_slice"):
        record_score(name, "passed", 10, 10)
    title = "04 · Collectives"
    assert f"Next: {title}" in repr(home()) and f">{title}</a>" in home().map_html()
    for notebook in ("00", "02"):
        assert f"DDP in an evening: next is {title}" in repr(next_steps(notebook))
    assert next_part("ping_pong")[0] == title


def test_skipped_stop_comes_last() -> None:
    for stop in paths()["ddp"].stops[2:]:
        for exercise in stop.exercises:
            record_score(exercise.name, "passed", 10, 10)
    record_score("count_votes", "passed", 10, 10)
    assert "DDP in an evening: next is 02 ·" in repr(next_steps("04"))
    assert "Next: 02 ·" in repr(home()) and next_part("count_votes")[0] != "02"


def test_chosen_path_persists() -> None:
    record_score("count_votes", "passed", 10, 10)
    done = CliRunner().invoke(main, ["progress", "--path", "everything"])
    assert done.exit_code == 0 and "Path: Everything" in done.output
    record_score("ping_pong", "passed", 10, 10)
    now = home()
    assert now.way is not None and now.way.path.name == "everything"
    assert "Next: 2.2" in repr(now) and next_part("ping_pong")[0].startswith("Exercise 2.2")
    page = now.map_html()
    assert 'data-path="ddp"' in page and 'data-path="everything"' not in page


def test_home_reports_missing_notebooks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REAL_RANKS_WORK", str(tmp_path))
    copy_missing_notebooks(find_workspace())
    write_home(tmp_path)
    assert "Missing" not in repr(home()) + home().map_html()
    (tmp_path / "02_blocking_p2p.ipynb").rename(tmp_path / "mine.ipynb")
    page, text = home().map_html(), repr(home())
    assert "Missing in your folder: 02_blocking_p2p.ipynb. `course lab` copies it there." in text
    assert "Missing in your folder: 02_blocking_p2p.ipynb" in page
    assert 'href="02_blocking_p2p' not in page and 'href="03_nonblocking_p2p.ipynb"' in page


def test_home_text_matches_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


def test_quiz_marks_link_to_their_cells() -> None:
    record_quiz("recv-first", 2, True)
    record_quiz("small-send", 0, False)
    page = home()._repr_html_()
    assert re.search(r'title="recv-first: answered"[^>]*>●<', page)
    assert re.search(r'title="small-send: to try again"[^>]*>◐<', page)
    assert re.search(r'title="tags-out-of-order: not answered yet"[^>]*>○<', page)
    for name, ids in quizzes_of_notebooks().items():
        cells = read_notebook(find_workspace().notebooks / f"{name}.ipynb")["cells"]
        asked = {cell["id"]: source_of(cell) for cell in cells if cell["cell_type"] == "code"}
        for quiz in ids:
            cell = re.search(rf'href="{name}\.ipynb#cell-id=([^"]+)"[^>]* title="{quiz}:', page)
            assert cell is not None and f'predict("{quiz}")' in asked[cell[1]], quiz


def finish(name: str) -> None:
    for stop in paths()[name].stops:
        for exercise in stop.exercises:
            record_score(exercise.name, "passed", 10, 10)


def test_times_state_their_scope() -> None:
    record_quiz("recv-first", 0, False)
    text = repr(home())
    assert "3 h of reading and exercises left" in text
    assert "15 min of exercises left" in text and "min left" not in text
    assert "0/3 quizzes (1 to try again)" in text


def test_home_shows_end_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_RANKS_WORK", str(tmp_path))
    solved = find_workspace().solutions / "09_ddp_from_the_inside.ipynb"
    finish("ddp")
    assert "<img" not in home().map_html()
    shutil.copy(solved, tmp_path)
    page, text = home().map_html(), repr(home())
    assert "You have finished DDP in an evening" in page and paths()["ddp"].end in page
    assert '<img src="data:image/png;base64,' in page
    steps = re.findall(r'<a class="step" href="(\d\d)[^>]*>([^<]+)<', page)
    assert steps == [("12", "Models that do not fit"), ("06", "Why does my job hang?")]
    assert "You have finished DDP in an evening" in text and "Next path: Why does my" in text
    assert "course progress --html" in page and "course progress --html" in text
    record_score("repair_mismatch", "wrong", 0, 10)
    later = home()
    if later.latest == "repair_mismatch":  # not if both were in the same second
        assert "You have finished DDP in an evening<" not in later.map_html()


def test_longest_path_follows_shorter_paths() -> None:
    for name in ("ddp", "big", "hang"):
        finish(name)
    assert [way.path.name for way in home().onward] == ["everything"]


@pytest.mark.parametrize("content", ["{", '{"cells": [{"id": "09-read-2"}]}', '{"cells": [3]}'])
def test_damaged_notebook_has_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setenv("REAL_RANKS_WORK", str(tmp_path))
    (tmp_path / "09_ddp_from_the_inside.ipynb").write_text(content)
    assert path_picture(paths()["ddp"]) == ""


def test_page_shows_acquired_skills() -> None:
    assert "solved 0 of" in can_do_page(read_progress())
    finish("hang")
    page = can_do_page(read_progress())
    assert paths()["hang"].end in page and "06 · Deadlocks" in page
    assert paths()["ddp"].end not in page and "http" not in page
    left = [each for each in headings().values() if not read_progress().has_passed(each.name)]
    assert left and f"{left[0].number} {left[0].title}<" not in page
