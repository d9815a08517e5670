"""Rosters exported by platforms, and clear messages about rosters that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.names import Source
from helpers.grading.owners import find_sources, name_learners
from helpers.grading.platforms.protocol import Entries, Roster
from helpers.grading.roster import RosterError, RosterMatch, read_roster
from helpers.grading.roster import match_roster as match_sources


def match_roster(roster: Roster, learners: list[str]) -> RosterMatch:
    return match_sources(roster, {each: Source(each, f"{each}/") for each in learners})


def folder_sources(*names: str) -> dict[str, Source]:
    return find_sources(Entries(names, ()), {})


def roster_file(tmp_path: Path, data: str | bytes) -> Path:
    path = tmp_path / "roster.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "is empty"),
        ("\n\n , \n", "is empty"),
        ("Student,ID,Section\n", "lists no learners"),
        ("Student,ID,Section\nPoints Possible,,\n", "only rows that are not learners"),
        ("Student,ID,id\nAda,1,2\n", "has the column 'ID' twice"),
        ("Student,ID\nLovelace, Ada,1\n", "line 2, has 3 cells"),
        (b"Student,ID\nAd\xe4,1\n", "is not UTF-8"),
        ('Student,ID\n"Ada,1\n', "this is not CSV"),
        ("Student,ID\n" + "x" * 200_000 + ",1\n", "this is not CSV"),
    ],
)
def test_non_roster_error_fits_one_line(tmp_path: Path, data: str | bytes, words: str) -> None:
    with pytest.raises(RosterError, match=words) as told:
        read_roster(roster_file(tmp_path, data))
    assert "roster.csv" in str(told.value) and "\n" not in str(told.value)


def test_missing_file_error_fits_one_line(tmp_path: Path) -> None:
    with pytest.raises(RosterError, match="cannot be read: No such file"):
        read_roster(tmp_path / "none.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_finds_column_and_reports_unmatched_names(tmp_path: Path, delimiter: str) -> None:
    text = "Student,Login\nAda,al1\nBob,bb2\nEve,ee3\n".replace(",", delimiter)
    match = match_roster(read_roster(roster_file(tmp_path, text)), ["al1", "BB2", "zz9"])
    assert match.column == "Login" and match.rows == ("al1", "BB2", None)
    assert match.without_submission == ("ee3",) and match.without_entry == ("zz9",)


def test_distinguishes_names_by_letter_case(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login\nada\nAda\n"))
    assert match_roster(roster, ["Ada", "ada"]).rows == ("ada", "Ada")
    roster = read_roster(roster_file(tmp_path, "Login\nADA\nbob\n"))
    match = match_roster(roster, ["Ada", "ada", "bob"])
    assert match.rows == (None, "bob") and match.without_entry == ("Ada", "ada")


def test_matches_composed_and_decomposed_accents(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login\nZo\u00eb\n"))
    assert match_roster(roster, ["Zoe\u0308"]).rows == ("Zoe\u0308",)


def test_rejects_roster_of_different_class(tmp_path: Path) -> None:
    roster = read_roster(roster_file(tmp_path, "Login,ID\neve,1\n"))
    with pytest.raises(RosterError, match="contains no learner who handed something in") as told:
        match_roster(roster, ["ada\n\x1b[31m"])
    assert "\n" not in str(told.value) and "\x1b" not in str(told.value)
    assert match_roster(roster, []).without_submission == ("eve",)


@pytest.mark.extended
def test_matches_large_roster(tmp_path: Path) -> None:
    names = [f"learner{at:05d}" for at in range(5_000)]
    text = "Student,ID,Login\n" + "".join(f"S {at},{at},{name}\n" for at, name in enumerate(names))
    match = match_roster(read_roster(roster_file(tmp_path, text)), names[:500])
    assert sum(map(bool, match.rows)) == 500 and len(match.without_submission) == 4_500


def folders(*names: str) -> dict[str, Source]:
    return {source.name: source for source in folder_sources(*names).values()}


def test_platform_number_identifies_its_learner(tmp_path: Path) -> None:
    path = tmp_path / "canvas.csv"
    path.write_text('Student,ID,SIS Login ID\n"Lee, Cy",123,cl\n"Li, Ai",124,al\n')
    sources = {
        x.name: x
        for x in find_sources(
            Entries((), ("leecy_123_9_x", "liai_124_8_x")),
            {"leecy_123_9_x": "", "liai_124_8_x": ""},
        ).values()
    }
    match = match_sources(read_roster(path), sources)
    assert match.column == "ID" and match.rows == ("leecy (123)", "liai (124)")


def test_number_in_name_never_identifies_learner(tmp_path: Path) -> None:
    """Numbers of attempts, copies or groups never give a learner's points to somebody else."""
    path = tmp_path / "roster.csv"
    path.write_text("Student,ID\nKay,1\nBob,2\nZoe,3\n")
    match = match_roster(read_roster(path), ["kay (2)", "zoe"])
    assert match.rows == (None, None, "zoe") and match.without_entry == ("kay (2)",)
    # a number after a single name may be the number of an attempt
    assert match_roster(read_roster(path), ["kay_2", "zoe"]).rows == ("kay_2", None, "zoe")
    both = match_roster(read_roster(path), ["kay_1", "kay_2", "zoe"])
    assert both.rows == (None, None, "zoe") and both.without_entry == ("kay_1", "kay_2")
    named_otherwise = {"kay (2)": Source("kay (2)", "kay (2)", "canvas", "2")}
    with pytest.raises(RosterError, match="contains no learner"):
        match_sources(read_roster(path), named_otherwise)
    path.write_text("Identifier,Full name\nParticipant 7,Zed Fox\nParticipant 8,Ann Lee\n")
    match = match_sources(
        read_roster(path),
        folders("Team A_7_assignsubmission_file", "Ann Lee_8_assignsubmission_file"),
    )
    assert match.rows == (None, "Ann Lee") and match.without_entry == ("Team A",)


# mod/assign/gradingtable.php of moodle/moodle fixes these columns, and col_recordid "Participant N"
WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,Last modified (grade)
Participant 22,Ann Lee,a@uni.example,Submitted for grading,,100.00,Yes,-
Participant 23,Ann Lee,b@uni.example,Submitted for grading,,100.00,Yes,-
Participant 24,Bob Ray,c@uni.example,No submission,,100.00,Yes,-
"""
# grade/export/txt of moodle/moodle, as described on docs.moodle.org under "Grade export"
GRADE_EXPORT = """\
First name,Last name,ID number,Institution,Department,Email address,Assignment: 00_start_here (Real)
Ann,Lee,22,U,D,a@uni.example,-
Bob,Ray,23,U,D,c@uni.example,-
"""


def test_moodle_worksheet_distinguishes_same_named_people(tmp_path: Path) -> None:
    apart = {
        "Ann Lee (22)": Source("Ann Lee", "Ann Lee (22)", "moodle", "22"),
        "Ann Lee (23)": Source("Ann Lee", "Ann Lee (23)", "moodle", "23"),
        "Bob Ray": Source("Bob Ray", "Bob Ray/", "moodle", "24"),
    }
    match = match_sources(read_roster(roster_file(tmp_path, WORKSHEET)), apart)
    assert match.rows == ("Ann Lee (22)", "Ann Lee (23)", "Bob Ray")
    assert match.column == "Identifier" and not match.without_entry and not match.ambiguous
    text = "First name,Last name\nAnn,Lee\nAnn,Lee\nBob,Ray\n"
    match = match_sources(read_roster(roster_file(tmp_path, text)), apart)
    assert match.rows == (None, None, "Bob Ray")
    assert match.ambiguous == ("Ann Lee",) and match.without_entry == (
        "Ann Lee (22)",
        "Ann Lee (23)",
    )


def test_matches_learners_under_blind_marking(tmp_path: Path) -> None:
    text = WORKSHEET.replace("Full name,Email address,", "")
    text = "\n".join(
        ",".join(x for x in line.split(",") if "@" not in x and x not in ("Ann Lee", "Bob Ray"))
        for line in text.split("\n")
    )
    found = folders(
        "Participant_24_assignsubmission_file_", "Participant_22_assignsubmission_file_"
    )
    match = match_sources(read_roster(roster_file(tmp_path, text)), found)
    assert match.rows == ("Participant 22", None, "Participant 24")


@pytest.mark.parametrize("form", ["{0} {1}", "{1} {0}", "{1}, {0}"])
def test_joins_first_and_last_name_columns(tmp_path: Path, form: str) -> None:
    names = [form.format("Ann", "Lee"), form.format("Bob", "Ray")]
    text = (
        GRADE_EXPORT
        if "," not in form
        else GRADE_EXPORT.replace("Ann,Lee", '"Lee, Ann",x').replace("Bob,Ray", '"Ray, Bob",x')
    )
    match = match_roster(read_roster(roster_file(tmp_path, text)), names)
    assert match.rows == tuple(names)


def test_moodle_number_never_matches_id_number(tmp_path: Path) -> None:
    found = folders("Bob Ray_22_assignsubmission_file_", "Ann Lee_23_assignsubmission_file_")
    match = match_sources(read_roster(roster_file(tmp_path, GRADE_EXPORT)), found)
    assert match.rows == ("Ann Lee", "Bob Ray")


def test_finds_absent_person_by_any_name(tmp_path: Path) -> None:
    match = match_roster(read_roster(roster_file(tmp_path, GRADE_EXPORT)), ["Ann Lee"])
    (absent,) = match.without_submission
    assert absent == "Bob Ray"
    aliases = match.aliases()
    assert {aliases[each] for each in ("Bob Ray", "Ray Bob", "23", "c@uni.example", "Bob")} == {
        absent
    }
    with_bob = match.with_people([absent, "Somebody Else"])
    assert with_bob.rows == ("Ann Lee", "Bob Ray") and with_bob.without_entry == ("Somebody Else",)


def test_similar_name_never_takes_other_row(tmp_path: Path) -> None:
    path = tmp_path / "roster.csv"
    path.write_text("Student,ID\nbob,1\nann,2\n")
    match = match_roster(read_roster(path), ["ann", "bob", "BOB"])
    assert match.rows == ("bob", "ann") and match.without_entry == ("BOB",)


@pytest.mark.parametrize(
    ("folder", "identifier"),
    [
        ("Participant_24", "Participant 24"),
        ("Teilnehmer_in_24", "Teilnehmer/in 24"),
        ("Teilnehmerin_24", "Teilnehmer/in 24"),
        ("Team A-Teilnehmer_in_24", "Teilnehmer/in 24"),
        ("Team A-Participant_24", "Participant 24"),
        ("Участник_24", "Участник 24"),
        ("参加者_24", "参加者24"),
        ("Dalībnieks_24", "Dalībnieks 24"),  # not in any list of the course
    ],
)
def test_moodle_number_identifies_blind_marked_learners(
    tmp_path: Path, folder: str, identifier: str
) -> None:
    path = tmp_path / "roster.csv"
    rows = [identifier, identifier.replace("24", "25"), identifier.replace("24", "26")]
    path.write_text("\n".join(["ID,Name,Status", *(f"{row},," for row in rows)]), encoding="utf-8")
    names = [f"{folder}_assignsubmission_file_", f"{folder[:-2]}26_assignsubmission_file_"]
    sources = folder_sources(*names)
    learners = {name: source for source, name in name_learners(sources.values(), []).items()}
    match = match_sources(read_roster(path), learners)
    assert [learner and learners[learner].number for learner in match.rows] == ["24", None, "26"]
    assert match.without_entry == ()
