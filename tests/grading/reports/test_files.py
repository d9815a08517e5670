"""The written files, their names, and obstacles to writing them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.grading.grade_options import CannotGrade
from helpers.grading.reports import write_reports
from helpers.grading.reports.slugs import page_names
from tests.grading.reports.builders import a_class, course_of, exercise, record
from tests.grading.reports.hostile import TEXTS

CLASS_FILES = {
    "class.html",
    "records.sqlite",
    "gradebook.csv",
    "junit.xml",
    "summary.md",
}

ODD_NAMES = [
    *TEXTS.values(),
    "../../etc/passwd",
    "/etc/passwd",
    "..\\..\\windows",
    "..",
    ".",
    "",
    " ",
    "con",
    "CON",
    "nul.txt",
    "a" * 300,
    "a" * 301,
    "😀",
    "😁",
    "ada",
    "Ada",
    "ÅDA",
    "A\u030aDA",
    "李",
    "-rf",
    "a/b",
    "a\0b",
    "a:b",
    "\ud800",
]


def test_page_names_are_safe_and_unique() -> None:
    names = page_names(ODD_NAMES)
    assert len(names) == len(set(ODD_NAMES))
    assert len({name.casefold() for name in names.values()}) == len(names)
    for name in names.values():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{10,}\.html", name) and len(name) < 70
    assert page_names(["Ada"])["Ada"] == names["Ada"]


def test_writes_every_report(tmp_path: Path) -> None:
    records = a_class(9)
    written = write_reports(course_of(records, "Autumn"), tmp_path / "new" / "out")
    below = {str(path.relative_to(tmp_path / "new" / "out")) for path in written}
    pages = {name for name in below if name.startswith("learners/")}
    assert below == CLASS_FILES | pages
    assert len(pages) == len({each.learner for each in records})
    assert {str(path) for path in written} == {
        str(path) for path in (tmp_path / "new").rglob("*") if path.is_file()
    }
    first = {path: path.read_bytes() for path in written}
    assert write_reports(course_of(records, "Autumn"), tmp_path / "new" / "out") == written
    assert {path: path.read_bytes() for path in written} == first


def test_hostile_records_write_only_into_output(tmp_path: Path) -> None:
    records = [record(name, exercise()) for name in dict.fromkeys(ODD_NAMES)]
    write_reports(course_of(records, "Autumn"), tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == CLASS_FILES | {"learners"}
    assert len(list((tmp_path / "out" / "learners").iterdir())) == len(records)


def test_reports_never_follow_links(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "learners").symlink_to(elsewhere)
    with pytest.raises(CannotGrade, match="learners is a symbolic link"):
        write_reports(course_of([record()], "Autumn"), out)
    assert not list(elsewhere.iterdir())
    (out / "learners").unlink()
    kept = elsewhere / "kept"
    kept.write_text("kept")
    for name in ("class.html", "gradebook.csv", f"learners/{page_names(['Ada'])['Ada']}"):
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(kept)
        write_reports(course_of([record("Ada")], "Autumn"), out)
        assert kept.read_text() == "kept" and not (out / name).is_symlink()


def test_report_writing_leaves_no_temporary_files(tmp_path: Path) -> None:
    write_reports(course_of(a_class(9), "Autumn"), tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.html")} == {0o644}


def test_output_folder_can_be_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    write_reports(course_of([record()], "Autumn"), tmp_path / "out")
    assert (tmp_path / "real" / "class.html").is_file()


def test_unwritable_output_error_fits_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        with pytest.raises(CannotGrade) as told:
            write_reports(course_of([record()], "Autumn"), out)
        assert str(out) in str(told.value) and "\n" not in str(told.value)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "class.html").mkdir()
    with pytest.raises(CannotGrade, match=re.escape("class.html")):
        write_reports(course_of([record()], "Autumn"), tmp_path / "out")


def test_second_run_removes_departed_learner_pages(tmp_path: Path) -> None:
    write_reports(course_of([record("Ada"), record("Bob")], "Autumn"), tmp_path)
    (tmp_path / "learners" / "notes.html").write_text("the instructor's own")
    write_reports(course_of([record("Ada")], "Autumn"), tmp_path)
    left = [path.name for path in tmp_path.rglob("*.html")]
    assert not [name for name in left if name.startswith("bob-")]
    assert len([name for name in left if name.startswith("ada-")]) == 1 and "notes.html" in left
