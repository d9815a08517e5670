"""Read tables written by spreadsheets of any country and program."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.table import Row, TableError, parse_number, read_table

ROWS = [Row(1, ("learner", "points")), Row(2, ("Ann Lee", "1.5"))]


@pytest.mark.parametrize(
    "data",
    [
        b"learner,points\nAnn Lee,1.5\n",
        b"learner,points\r\nAnn Lee,1.5",
        b"learner;points\nAnn Lee;1.5\n",
        b"learner\tpoints\nAnn Lee\t1.5\n",
        b"learner,points,,\nAnn Lee,1.5,,\n,,,\n",
        b"\xef\xbb\xbflearner,points\nAnn Lee,1.5\n",
        "learner\tpoints\r\nAnn Lee\t1.5\r\n".encode("utf-16"),
    ],
)
def test_reads_tables_in_all_formats(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "table.csv").write_bytes(data)
    assert read_table(tmp_path / "table.csv", "The table") == ROWS


def test_ignores_separator_line(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("sep=;\nlearner;points\nAnn, Lee;1,5\n")
    rows = read_table(tmp_path / "table.csv", "The table")
    assert rows == [Row(2, ("learner", "points")), Row(3, ("Ann, Lee", "1,5"))]


def test_separator_may_occur_in_quotes(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text('"a; b; ""c""; d",points\nAnn Lee,1.5\n')
    rows = read_table(tmp_path / "table.csv", "The table")
    assert [row.cells for row in rows] == [('a; b; "c"; d', "points"), ("Ann Lee", "1.5")]


TITLES = [
    ('\n"Student ID";"Name";"HW 1"\n"1";"Ann Lee";"1.5"\n', 3),
    ("\n ; ; \nStudent ID;Name;HW 1\n1;Ann Lee;1,5\n", 3),
    ("Student ID,Name,HW 1; part a; part b; c [100]\n1,Ann Lee,1.5\n", 3),
    ("Student ID;Name;HW 1, loops, tensors, groups [100]\n1;Ann Lee;1,5\n", 3),
    ("Name;HW 1, loops\nAnn Lee;1,5\nBob Ray;2,5\n", 2),
    ("Name\tHW 1, loops; groups\nLee, Ann\t1,5\nRay, Bob\t2\n", 2),
    ("Name;Login\nLee, Ann;a\nRay, Bob;b\nCho, Cy;c\n", 2),
    ("Name,Login,HW 1; loops\nAnn Lee,a\nBob Ray,b\n", 3),
    ('Name;Note\n"Ann\nLee";"a, b\n, c"\n', 2),
]


@pytest.mark.parametrize(("text", "width"), TITLES, ids=[str(at) for at in range(len(TITLES))])
def test_rows_determine_separator(tmp_path: Path, text: str, width: int) -> None:
    (tmp_path / "table.csv").write_text(text)
    rows = read_table(tmp_path / "table.csv", "The table")
    assert len(next(row.cells for row in rows if row.cells[0].startswith(("St", "N")))) == width


def test_table_may_have_one_column(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("Name\nAnn\n")
    assert [row.cells for row in read_table(tmp_path / "table.csv", "It")] == [("Name",), ("Ann",)]


def test_rows_have_line_numbers_of_file(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text('a,b\n\n"one\ntwo",c\n\nd,e\n')
    assert [row.line for row in read_table(tmp_path / "table.csv", "The table")] == [1, 3, 6]


def test_accepts_decimal_points_and_commas() -> None:
    assert [parse_number(cell) for cell in ("1,5", " 1.5 ", "2", "-0,5")] == [1.5, 1.5, 2.0, -0.5]
    for cell in ("", "1,000,000", "1,5,", "one"):
        with pytest.raises(ValueError):
            parse_number(cell)


@pytest.mark.parametrize("data", [b"\xff", b'a,"b\n', b"a,b\n" + b"x" * 200_000])
def test_non_table_error_fits_one_line(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "table.csv").write_bytes(data)
    with pytest.raises(TableError, match=r"table\.csv") as told:
        read_table(tmp_path / "table.csv", "The table")
    assert "\n" not in str(told.value)
