"""Gradebooks can be read by Canvas and Moodle, and have no cells that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.grading.names import Source
from helpers.grading.platforms import canvas, moodle
from helpers.grading.reports.gradebooks import (
    csv_bytes,
    escape_formula,
    gradebook,
    platform_import,
)
from helpers.grading.roster import RosterMatch, match_roster, read_roster
from tests.grading.reports.builders import course_of, exercise, fault, record, unreadable
from tests.grading.reports.hostile import TEXTS, UNSHOWABLE, hostile_record, unreadable_record

FORMULAS = [
    '=HYPERLINK("http://localhost/","x")',
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1:A2)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "  =1+1",
    '"=1+1',
    "'=1+1",
    '""=1+1',
    "“=1+1",
    "\u00a0=1+1",
    "\u200b=1+1",
    "\ufeff=1+1",
    "\u202e=1+1",
    "\0=1+1",
    "\x1b[31m=1+1",
    "＝1+1",
    "＋1+1",
    "－1+1",
    "＠SUM(A1)",
    "﹦1+1",
    "x;=1+1",
    'x";=1+1;"',
    "x\t=1+1",
    "x,=1+1",
    "x\r\n=1+1",
    "x|=1+1",
    "=cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "+49 170 1234",
]


def cells_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def is_run(cell: str) -> bool:
    """Return whether a spreadsheet might run a cell; if in doubt, True."""
    bare = unicodedata.normalize("NFKC", cell).strip()
    while bare and (bare[0] in '"“”‘’„«»`´' or unicodedata.category(bare[0]) in ("Cf", "Cc", "Zs")):
        bare = bare[1:]
    number = bare[1:].replace(".", "", 1).isascii() and bare[1:].replace(".", "", 1).isdigit()
    return bare[:1] in "=+-@\t\r−" and bool(bare) and not number


def every_reading(data: bytes) -> list[str]:
    """Return the cells as split by spreadsheets of every country."""
    text = data.decode("utf-8-sig")
    found = []
    for delimiter in ",;\t|":
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            found += row
    return found


@pytest.mark.parametrize("formula", FORMULAS)
def test_csv_cells_contain_no_runnable_formulas(formula: str) -> None:
    data = csv_bytes([["name", formula, 1.5], [formula, "x", -2]], bom=False)
    assert not [cell for cell in every_reading(data) if is_run(cell)]
    assert cells_of(data)[0][2] == "1.5" and cells_of(data)[1][2] == "-2"


@given(st.text(st.sampled_from("=+-@＝－\t\r\n \"',;|x1.\u200b\u00a0\0\ud800"), max_size=12))
def test_csv_text_never_becomes_formula(text: str) -> None:
    data = csv_bytes([["x", text, "y"]], bom=True)
    assert not [cell for cell in every_reading(data) if is_run(cell)]
    assert len(cells_of(data)) == 1 and len(cells_of(data)[0]) == 3


def test_gradebook_keeps_numbers_and_names() -> None:
    for text in (
        "12",
        "-3",
        "+4.5",
        "0012",
        "Lovelace, Ada",
        "O'Neil",
        "Smith-Jones",
        "a=b",
        "李",
        "",
    ):
        assert escape_formula(text) == text
    data = csv_bytes([[1, 2.0, 2.5, 1 / 3, None, float("nan"), 1234567.0]], bom=False)
    assert data == b"1,2,2.5,0.33,,0,1234567\r\n"


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_records_keep_row_length(name: str) -> None:
    text = TEXTS[name]
    course = course_of(
        [hostile_record(text), hostile_record(text, 1), unreadable_record(text + "!")], text
    )
    data = gradebook(course)
    assert not UNSHOWABLE.search(data.decode("utf-8-sig").replace("\r\n", "\n"))
    assert len({len(row) for row in cells_of(data)}) == 1
    assert not [cell for cell in every_reading(data) if is_run(cell)]
    assert len(data) < 100_000


ADA = record("ada", exercise("ping_pong"), exercise("token_ring", "wrong"))
ADA_5 = record("ada", exercise("tree_broadcast"), notebook="05_collective_algorithms")
BOB = record("bob", exercise("ping_pong", "not attempted"), exercise("token_ring"))
FAULTY = record("cleo", exercise("ping_pong"), fault("token_ring"))
NAMED = ("02_blocking_p2p", "05_collective_algorithms")
CLASS = [ADA, ADA_5, BOB, FAULTY, replace(unreadable("dan"), notebook="02_blocking_p2p")]

CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Essay (17),02_blocking_p2p (4711),Current Score
,,,,,Manual Posting,,
    Points Possible,,,,,10,20,(read only)
"Lovelace, Ada",101,S1,ada,A,9,,90
"Byron, Bob",102,S2,bob,A,8,3,80
"Cleo, =1+1",103,S3,cleo,"A and B",7,,70
"Dan, Dan",104,S4,dan,A,,,
"Eve, Eve",105,S5,eve,A,,,
"Student, Test",999,,,A,,,
"""

MOODLE = """\
First name,Last name,ID number,Institution,Email address,Assignment: 02_blocking_p2p (Real),Last downloaded
Ada,Lovelace,ada,X,ada@a.example,-,1700000000
Bob,Byron,bob,X,bob@a.example,-,1700000000
"""


def matched(tmp_path: Path, text: str, encoding: str = "utf-8") -> RosterMatch:
    path = tmp_path / "roster.csv"
    path.write_text(text, encoding=encoding)
    sources = {each.learner: Source(each.learner, each.learner) for each in CLASS}
    return match_roster(read_roster(path), sources)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_writes_columns_for_canvas_import(tmp_path: Path, encoding: str) -> None:
    data = platform_import(
        canvas.PLATFORM, course_of(CLASS, "Autumn", NAMED), matched(tmp_path, CANVAS, encoding)
    )
    assert data is not None and data.startswith(b"Student,ID,")  # a BOM would be part of the name
    head, to_reach, *rows = cells_of(data)
    assert head == [
        *("Student", "ID", "SIS User ID", "SIS Login ID", "Section"),
        *("02_blocking_p2p (4711)", "05_collective_algorithms"),
    ]
    assert to_reach[0].strip() == "Points Possible" and to_reach[5:] == ["20", "10"]
    assert [row[0] for row in rows] == [
        *("Lovelace, Ada", "Byron, Bob", "Cleo, =1+1", "Dan, Dan", "Eve, Eve"),
    ]
    grades = {row[3]: row[5:] for row in rows}
    assert grades["ada"] == ["14", "10"] and grades["bob"] == ["10", ""]
    # a person decides about a fault, an unreadable file, and a missing submission
    assert grades["cleo"] == grades["dan"] == grades["eve"] == ["", ""]
    assert [row[1] for row in rows] == ["101", "102", "103", "104", "105"]


def test_canvas_identifiers_stay_unchanged(tmp_path: Path) -> None:
    # the columns of lib/gradebook_exporter.rb, with first and last name in two of them
    text = CANVAS.replace("Student,ID", "LastName,FirstName,ID").replace(",,,,,Man", ",,,,,,Man")
    text = text.replace("    Points Possible,", "    Points Possible,,").replace(
        '"Lovelace, Ada"', "Lovelace,=Ada"
    )
    text = text.replace("S1,ada,A,", 'S1,@ada,"CS 1, -B",')
    rows = [row for row in text.splitlines() if not row.startswith(('"', ",,"))]
    path = tmp_path / "roster.csv"
    path.write_text("\n".join(rows))
    match = match_roster(read_roster(path), {"@ada": Source("@ada", "@ada")})
    data = platform_import(
        canvas.PLATFORM, course_of([replace(ADA, learner="@ada")], "Autumn", NAMED), match
    )
    assert data is not None
    head, _, ada = cells_of(data)
    assert head[:6] == ["LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert ada == ["Lovelace", "=Ada", "101", "S1", "@ada", "CS 1, -B", "14", ""]


def test_fills_in_moodle_worksheet_grades(tmp_path: Path) -> None:
    # the columns of mod/assign/gradingtable.php in a download, three of which Moodle reads again
    head = (
        "Identifier,Full name,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade)"
    )
    people = ("7,ada,-,", "8,bob,-,3.00", "9,cleo,-,4.00")
    text = "\n".join([head, *(f"Participant {each},50.00,Yes,-" for each in people)])
    data = platform_import(
        moodle.PLATFORM, course_of([ADA, FAULTY], "Autumn", NAMED[:1]), matched(tmp_path, text)
    )
    assert data is not None
    assert data.decode().splitlines() == [
        head,
        "Participant 7,ada,-,35,50.00,Yes,-",
        "Participant 8,bob,-,3.00,50.00,Yes,-",  # nothing handed in
        "Participant 9,cleo,-,4.00,50.00,Yes,-",  # a fault: a person decides
    ]


def test_writes_columns_for_moodle_import(tmp_path: Path) -> None:
    match = matched(tmp_path, MOODLE)
    assert match.column == "ID number" and match.without_entry == ("cleo", "dan")
    data = platform_import(moodle.PLATFORM, course_of(CLASS, "Autumn", NAMED), match)
    assert data is not None
    head, *rows = cells_of(data)
    assert head == [
        *("First name", "Last name", "ID number", "Email address"),
        *("Assignment: 02_blocking_p2p (Real)", "05_collective_algorithms"),
    ]
    assert rows[0] == ["Ada", "Lovelace", "ada", "ada@a.example", "14", "10"]
    assert rows[1][4:] == ["10", ""]


def test_moodle_gets_no_grade_above_100(tmp_path: Path) -> None:
    big = exercise(points=150.0, out_of=200.0)
    course = course_of([record("ada", big), record("bob", big)], "Autumn")
    data = platform_import(moodle.PLATFORM, course, matched(tmp_path, MOODLE))
    assert data is not None
    head, ada, _ = cells_of(data)
    assert head[-1].endswith("(%)") and ada[-1] == "75"


def test_roster_yields_only_own_platform_file(tmp_path: Path) -> None:
    course = course_of(CLASS, "Autumn", NAMED)
    assert platform_import(moodle.PLATFORM, course, matched(tmp_path, CANVAS)) is None
    assert platform_import(canvas.PLATFORM, course, matched(tmp_path, MOODLE)) is None


def test_writes_gradebook_of_class() -> None:
    data = gradebook(course_of(CLASS, "Autumn", NAMED))
    assert data.startswith(b"\xef\xbb\xbf")  # Excel reads it as UTF-8
    head, ada, bob, cleo, dan = cells_of(data)
    by_name = dict(zip(head, ada, strict=True))
    assert by_name["Points"] == "24" and by_name["Out of"] == "30" and by_name["Percent"] == "80"
    assert by_name["2.1 ping_pong (10)"] == "10" and by_name["2.2 token_ring (10)"] == "4"
    assert dict(zip(head, bob, strict=True))["Remarks"] == "not handed in: 05_collective_algorithms"
    told = dict(zip(head, cleo, strict=True))
    assert told["2.2 token_ring (10)"] == "" and told["Out of"] == "20"
    assert (
        "unreadable: line 3, column 7: this is not valid JSON"
        in dict(zip(head, dan, strict=True))["Remarks"]
    )
