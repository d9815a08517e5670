"""Who is in the class: rosters as platforms export them, and clear lines where they do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.roster import RosterError, match_roster, read_roster


def roster_file(tmp_path: Path, data: str | bytes) -> Path:
    path = tmp_path / "roster.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is empty"),
        ("\n\n , \n", "is empty"),
        ("Student,ID,Section\n", "names no learners"),
        ("Student,ID,id\nAda,1,2\n", "has the column 'ID' twice"),
        ("Student,ID\nLovelace, Ada,1\n", "row 2, has 3 cells"),
        (b"Student,ID\nAd\xe4,1\n", "is not UTF-8"),
        ("Student,ID\nAda,1\n".encode("utf-16"), "is not UTF-8"),
        ('Student,ID\n"Ada,1\n', "is not a readable CSV"),
        ("Student,ID\n" + "x" * 200_000 + ",1\n", "is not a readable CSV"),
    ],
)
def test_a_file_that_is_no_roster_is_one_clear_line(
    tmp_path: Path, data: str | bytes, words: str
) -> None:
    with pytest.raises(RosterError, match=words) as told:
        read_roster(roster_file(tmp_path, data))
    assert "roster.csv" in str(told.value) and "\n" not in str(told.value)


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RosterError, match="cannot be read: No such file"):
        read_roster(tmp_path / "none.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_column_is_found_and_both_sides_are_told(tmp_path: Path, delimiter: str) -> None:
    text = "Student,Login\nAda,al1\nBob,bb2\nEve,ee3\n".replace(",", delimiter)
    match = match_roster(read_roster(roster_file(tmp_path, text)), ["al1", "BB2", "zz9"])
    assert match.column == "Login" and match.rows == ("al1", "BB2", None)
    assert match.without_submission == ("ee3",) and match.without_entry == ("zz9",)


def test_names_that_differ_in_case_only_stay_apart(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login\nada\nAda\n"))
    assert match_roster(roster, ["Ada", "ada"]).rows == ("ada", "Ada")
    roster = read_roster(roster_file(tmp_path, "Login\nADA\nbob\n"))
    match = match_roster(roster, ["Ada", "ada", "bob"])
    assert match.rows == (None, "bob") and match.without_entry == ("Ada", "ada")


def test_accents_match_however_they_are_written(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login\nZo\u00eb\n"))
    assert match_roster(roster, ["Zoe\u0308"]).rows == ("Zoe\u0308",)


def test_duplicates_and_another_class_are_refused(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login,ID\nada,1\nada,2\n"))
    with pytest.raises(RosterError, match="names 'ada' twice in the column 'Login'"):
        match_roster(roster, ["ada"])
    roster = read_roster(roster_file(tmp_path, "Login,ID\neve,1\n"))
    with pytest.raises(RosterError, match="names nobody who handed something in") as told:
        match_roster(roster, ["ada\n\x1b[31m"])
    assert "\n" not in str(told.value) and "\x1b" not in str(told.value)
    assert match_roster(roster, []).without_submission == ("eve",)


def test_a_large_roster_is_matched(tmp_path: Path) -> None:
    names = [f"learner{at:05d}" for at in range(5_000)]
    text = "Student,ID,Login\n" + "".join(f"S {at},{at},{name}\n" for at, name in enumerate(names))
    match = match_roster(read_roster(roster_file(tmp_path, text)), names[:500])
    assert sum(map(bool, match.rows)) == 500 and len(match.without_submission) == 4_500


def test_a_platforms_number_names_its_learner(tmp_path: Path) -> None:
    path = tmp_path / "canvas.csv"
    path.write_text('Student,ID,SIS Login ID\n"Lee, Cy",123,cl\n"Li, Ai",124,al\n')
    match = match_roster(read_roster(path), ["leecy (123)", "liai (124)"])
    assert match.column == "ID" and match.rows == ("leecy (123)", "liai (124)")


def test_who_takes_a_name_like_anothers_does_not_take_the_row(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("Student,ID\nbob,1\nann,2\n")
    match = match_roster(read_roster(path), ["ann", "bob", "BOB"])
    assert match.rows == ("bob", "ann") and match.without_entry == ("BOB",)
