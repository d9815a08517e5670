"""A typical class: its learners are found from the files, and none is lost."""

from __future__ import annotations

import csv
import os
import re
import shutil
import zipfile
from datetime import datetime
from pathlib import Path

import pytest

from helpers.checks.check_notebook import grade_notebook
from helpers.grading.grader import NOT_RUN
from helpers.grading.record import read_records
from tests.grading.conftest import SOLUTIONS
from tests.grading.notebooks import RIGHT, WRONG, write_notebook
from tests.grading.test_batch import grade

pytestmark = pytest.mark.usefixtures("plan")
NAME = "02_blocking_p2p.ipynb"


def gradebook(out: Path) -> dict[str, dict[str, str]]:
    with (out / "gradebook.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["Learner"]: row for row in csv.DictReader(file)}


@pytest.mark.extended
def test_file_contents_outrank_file_names(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "ann" / "05_homework.ipynb", RIGHT)
    write_notebook(folder / f"bob_{NAME}.txt", RIGHT)
    write_notebook(folder / "cy" / "work" / NAME, WRONG)
    (folder / "cy" / "solutions").mkdir()
    shutil.copy(SOLUTIONS / NAME, folder / "cy" / "solutions")
    with zipfile.ZipFile(folder / f"dora_{NAME}.zip", "w") as packed:
        packed.write(folder / "cy" / "work" / NAME, NAME)
    (folder / "emil").mkdir()
    (folder / f"fay_{NAME}").write_text("version https://git-lfs.github.com/spec/v1\noid 1\n")
    write_notebook(folder / "team 7" / NAME, RIGHT)
    (tmp_path / "groups.csv").write_text("group,learner\nteam 7,gus\nteam 7,hana\n")
    done = grade(folder, out, "--groups", str(tmp_path / "groups.csv"))
    assert done.returncode == 1, done.stderr
    assert "5 of 8 submissions graded" in done.stdout and "; 3 cannot be read." in done.stdout
    assert (
        "Note: cy: The answers in cy/solutions/02_blocking_p2p.ipynb are the course's own solutions"
        in done.stdout
    )
    rows = gradebook(out)
    assert list(rows) == ["ann", "bob", "cy", "dora", "emil", "fay", "gus", "hana"]
    points = {name: row["2.1 ping_pong (2)"] for name, row in rows.items()}
    assert points["ann"] == points["bob"] == points["gus"] == points["hana"] == "2"
    assert points["cy"] == "0" and points["dora"] == points["emil"] == points["fay"] == ""
    assert "is a zip archive, not a notebook. Unpack it" in rows["dora"]["Remarks"]
    assert (
        "emil is an empty folder." in rows["emil"]["Remarks"]
        and "git lfs pull" in rows["fay"]["Remarks"]
    )


@pytest.mark.extended
def test_removes_results_of_withdrawn_learner(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    for name, cell in (("ann", RIGHT), ("bob", WRONG)):
        write_notebook(folder / name / NAME, cell)
    grade(folder, out)
    assert list(out.rglob("*bob-*")) and (out / "answers").is_dir()
    shutil.rmtree(folder / "bob")
    done = grade(folder, out)
    assert "Note: bob: removed the results of files" in done.stdout
    assert not list(out.rglob("*bob-*"))
    assert [record.learner for record in read_records(out)] == ["ann"]
    assert list(gradebook(out)) == ["ann"]


ENGLISH = "Identifier,Full name,Status,Grade,Maximum grade\nParticipant 22,Ann Lee,-,,20\n"
GERMAN = "ID;Vollständiger Name;Status;Bewertung;Bestwertung\nTeilnehmer/in 22;Ann Lee;-;;20,00\n"


@pytest.mark.extended
def test_removes_platform_file_with_old_points(tmp_path: Path) -> None:
    folder, out, roster = tmp_path / "class", tmp_path / "out", tmp_path / "roster.csv"
    write_notebook(folder / "Ann Lee_22_assignsubmission_file" / NAME, RIGHT)
    for text, words in (
        (GERMAN, "set the platform's language to English"),
        (ENGLISH, f"Wrote {out / 'moodle.csv'}"),
        (GERMAN, "moodle.csv: removed, because it contained an earlier run's points"),
        (ENGLISH, f"Wrote {out / 'moodle.csv'}"),
        ("", "moodle.csv: removed, because it contained an earlier run's points"),
    ):
        roster.write_text(text)
        done = grade(folder, out, *(["--roster", str(roster)] if text else []))
        assert done.returncode == 0, done.stderr
        assert words in done.stdout and list(gradebook(out)) == ["Ann Lee"]
        assert (out / "moodle.csv").exists() == (text == ENGLISH)


@pytest.mark.extended
def test_keeps_roster_inside_results_folder(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "Ann Lee_22_assignsubmission_file" / NAME, RIGHT)
    out.mkdir()
    (out / "moodle.csv").write_text(GERMAN)
    done = grade(folder, out, "--roster", str(out / "moodle.csv"))
    assert done.returncode == 0 and (out / "moodle.csv").read_text() == GERMAN


@pytest.mark.extended
def test_grades_blind_marking_in_german(tmp_path: Path) -> None:
    folder, out, roster = tmp_path / "class", tmp_path / "out", tmp_path / "roster.csv"
    for number, cell in ((24, RIGHT), (25, WRONG)):
        write_notebook(folder / f"Teilnehmer_in_{number}_assignsubmission_file_" / NAME, cell)
    rows = "".join(f"Teilnehmer/in {number},,x,,20\n" for number in (24, 25, 26))
    roster.write_text(f"ID,Vollständiger Name,Status,Bewertung,Bestwertung\n{rows}")
    done = grade(folder, out, "--roster", str(roster))
    assert done.returncode == 0 and "not on the roster" not in done.stdout, done.stdout
    points = {name: row["2.1 ping_pong (2)"] for name, row in gradebook(out).items()}
    assert points == {"Teilnehmer_in 24": "2", "Teilnehmer_in 25": "0"}


@pytest.mark.extended
def test_excessive_override_counts_with_note(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "ann" / NAME, WRONG)
    out.mkdir()
    (out / "overrides.csv").write_text(
        "learner,exercise,points,reason,by,when\nann,ping_pong,99,oral,,\nann,token_ring,1,oral,,\n"
    )
    done = grade(folder, out)
    note = "ann, ping_pong: the override gives 99 points, but the exercise is worth 2. All of them count."
    assert done.stdout.count("the override gives") == 1 and f"Note: {note}" in done.stdout
    assert gradebook(out)["ann"]["2.1 ping_pong (2)"] == "99"


@pytest.mark.extended
def test_skips_solutions_in_submitted_course_folder(
    tmp_path: Path,
) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    for name in ("ann", "bob"):
        write_notebook(folder / name / NAME, WRONG)
    own = folder / "ann" / "solutions"
    own.mkdir()
    for path in sorted(SOLUTIONS.glob("0[0-4]*.ipynb")):
        shutil.copy(path, own)
    done = grade(folder, out)
    assert done.returncode == 0, done.stderr
    records = [each for each in read_records(out) if "/solutions/" in each.file]
    assert len(records) == 5 and {x.message for each in records for x in each.exercises} == {
        NOT_RUN
    }
    assert done.stdout.count("the course's own solutions") == 1 and " and 2 more are" in done.stdout
    remarks = {name: row["Remarks"] for name, row in gradebook(out).items()}
    assert "solutions" in remarks["ann"] and len(remarks["ann"]) < 400 and not remarks["bob"]
    assert (out / "class.html").read_text().count("and 2 more") >= 1
    # a single notebook is also graded, as when an instructor tries the grading
    shutil.rmtree(own)
    shutil.copy(SOLUTIONS / NAME, folder / "ann" / NAME)
    grade(folder, out)
    assert all(each.points for each in read_records(out)[0].exercises)


STRAY = "def my_slice(rank, world_size, n):\n    return 0, n"


@pytest.mark.extended
def test_notes_answer_from_other_notebook(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "ann" / NAME, RIGHT, "def token_ring(*args):\n    return 1", STRAY)
    assert grade(folder, out).returncode == 0
    note = "This file also contains an answer to 0.2 (`my_slice`). It does not count here"
    assert note in gradebook(out)["ann"]["Remarks"]
    (page,) = (out / "learners").glob("*.html")
    for path in (page, out / "class.html"):
        assert "an answer to 0.2" in path.read_text(), path
    (result, *_, last) = grade_notebook(folder / "ann" / NAME, only="")
    assert result.passed and last.notes[-1].startswith(note)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("year", "words"),
    [(2931, "is in the future"), (1980, "is more than a year before the first deadline")],
)
def test_impossible_time_adds_note_without_penalty(tmp_path: Path, year: int, words: str) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    at = datetime(year, 1, 1, 12).timestamp()
    for name in ("ann", "bob"):
        path = write_notebook(folder / name / NAME, RIGHT)
    os.utime(path, (at, at))
    (tmp_path / "policy.toml").write_text('[deadlines]\n"02" = 2020-10-12\n')
    grade(folder, out, "--policy", str(tmp_path / "policy.toml"))
    rows = gradebook(out)
    assert "days late" in rows["ann"]["Remarks"] and rows["ann"]["2.1 ping_pong (2)"] == "0"
    assert words in rows["bob"]["Remarks"] and rows["bob"]["2.1 ping_pong (2)"] == "2"
    assert "late" not in rows["bob"]["Remarks"]
    page = (out / "class.html").read_text()
    assert words in page[page.index("Needs your attention") :]


@pytest.mark.extended
def test_change_reason_mentions_unreadable_file(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    for name in ("ann", "bob", "cy"):
        path = write_notebook(folder / name / NAME, RIGHT)
    grade(folder, out)
    path.write_text("")
    shutil.rmtree(folder / "bob")
    grade(folder, out)
    changes = (out / "changes.csv").read_text(encoding="utf-8-sig").splitlines()
    why = {row["Learner"]: row["Why"] for row in csv.DictReader(changes)}
    assert why == {
        "bob": "its notebook is no longer handed in",
        "cy": f"a file now handed in cannot be read: cy/{NAME}",
    }


@pytest.mark.extended
def test_counts_of_one_use_singular(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "ann" / "00_start_here.ipynb", STRAY)
    done = grade(folder, out)
    assert "1 of 1 submission graded" in done.stdout
    page = (out / "class.html").read_text()
    assert "<b>1</b> learner<" in page and "<b>1</b> notebook," in page
    assert not re.search(r"\b1 (?:points|notebooks|learners|files)\b", done.stdout + page)


WAITS = "def ping_pong(*args):\n    raise OSError('as if the machine were busy')"


@pytest.mark.extended
def test_second_attempt_follows_all_submissions(tmp_path: Path) -> None:
    folder, out = tmp_path / "class", tmp_path / "out"
    write_notebook(folder / "ann" / NAME, WAITS)
    for number, name in enumerate(("bob", "cy", "dora", "emil", "fay")):
        write_notebook(folder / name / NAME, RIGHT.replace("rank > 1", f"rank > 1 + 0 * {number}"))
    done = grade(folder, out, "--jobs", "2")
    order = [line for line in done.stdout.splitlines() if " of 6: " in line]
    assert order[-1].startswith("6 of 6: ann") and "6 of 6 submissions graded" in done.stdout
    assert "ann: ping_pong will run again alone, for up to" in done.stderr
    again = grade(folder, out)
    assert "run again alone" not in again.stderr
