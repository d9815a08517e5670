"""Each learning platform is one file, with its names, rosters, import, and row in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.grading import owners, platforms
from helpers.grading.names import Source
from helpers.grading.platforms import PLATFORMS, platform_of
from helpers.grading.platforms.protocol import Entries, Platform, Roster, as_number
from helpers.grading.record import Record
from helpers.grading.reports.gradebooks import platform_import
from helpers.grading.roster import RosterError, RosterMatch, match_roster, read_roster
from helpers.grading.submissions import find_submissions
from tests.grading.notebooks import write_notebook
from tests.grading.reports.builders import course_of, exercise, record

ROOT = Path(__file__).parents[2]
# `course gradescope` is also the name of a command
COMMANDS = "helpers/grading/commands.py"


@pytest.mark.parametrize("name", [*(each.title for each in PLATFORMS), "Gradescope"])
def test_each_platform_has_one_module(name: str) -> None:
    word = re.compile(rf"\b{re.escape(name.split()[-1])}\b", re.IGNORECASE)
    paths = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / "helpers").rglob("*.py")
    }
    naming = [path for path, text in paths.items() if word.search(text) and path != COMMANDS]
    assert len(naming) == 1, naming


def test_docs_list_every_platform() -> None:
    text = (ROOT / "docs" / "grading.md").read_text(encoding="utf-8")
    for each in PLATFORMS:
        imported = f"`{each.import_file}`" if each.import_file else "none"
        row = f"| {each.title} | {each.file_names} | {each.rosters} | {imported} |"
        assert row in text, row


def learners_in(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for job in find_submissions(folder).jobs:
        found.setdefault(job.learner, []).append(job.file)
    return found


def put(folder: Path, *names: str) -> Path:
    for name in names:
        if name.endswith((".html", ".txt", ".py")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("<p>x")
        else:
            write_notebook(folder / name, f"def my_slice(rank):\n    return {name!r}")
    return folder


NOTEBOOK = "00_start_here.ipynb"
BRIGHTSPACE = (
    f"12345-67890 - Ann Lee - Oct 12, 2026 1159 PM/{NOTEBOOK}",
    f"12345-67890 - Ann Lee - Oct 12, 2026 905 AM/{NOTEBOOK}",
    f"12346-67890 - Jean-Luc Roy - Oct 9, 2026 1141 PM/{NOTEBOOK}",
    f"12347-67890- Bob Ray - Nov 1, 2026 1201 AM/{NOTEBOOK}",
    "index.html",
)
BLACKBOARD = (
    f"HW 1_alee_attempt_2026-10-12-08-00-00_{NOTEBOOK}",
    f"HW 1_alee_attempt_2026-10-13-08-00-00_{NOTEBOOK}",
    "HW 1_alee_attempt_2026-10-12-08-00-00.txt",
    "HW 1_alee_attempt_2026-10-13-08-00-00.txt",
    f"HW 1_b_ray_attempt_2026-10-11-23-59-00_{NOTEBOOK}",
    "HW 1_b_ray_attempt_2026-10-11-23-59-00.txt",
)


@pytest.mark.parametrize("inside", ["", "Homework Download Oct 13/"], ids=["unpacked", "folder"])
def test_reads_brightspace_attempts(tmp_path: Path, inside: str) -> None:
    put(tmp_path, *(inside + name for name in BRIGHTSPACE))
    assert learners_in(tmp_path) == {
        "Ann Lee": [inside + BRIGHTSPACE[0]],
        "Bob Ray": [inside + BRIGHTSPACE[3]],
        "Jean-Luc Roy": [inside + BRIGHTSPACE[2]],
    }
    (notice,) = find_submissions(tmp_path).notices
    assert "905 AM" in notice and "a later attempt" in notice


def test_reads_brightspace_flat_files(tmp_path: Path) -> None:
    put(tmp_path, *(name.replace("PM/", "PM - ").replace("AM/", "AM - ") for name in BRIGHTSPACE))
    assert {who: len(files) for who, files in learners_in(tmp_path).items()} == {
        "Ann Lee": 1,
        "Bob Ray": 1,
        "Jean-Luc Roy": 1,
    }


MOODLE_ANN, MOODLE_BOB = "Ann Lee_22_assignsubmission_file", "Bob Ray_23_assignsubmission_file"
BRIGHTSPACE_BOB = "12346-67890 - Bob Ray - Oct 11, 2026 1159 PM"


@pytest.mark.parametrize("above", ["", "Download/", "courses/first/"])
@pytest.mark.parametrize(
    ("ann", "name", "bob"),
    [
        (
            "12345-67890 - Ann Lee - Oct 12, 2026 1159 PM",
            f"12346-67890 - Bob Ray - Oct 12, 2027 1159 PM - {NOTEBOOK}",
            BRIGHTSPACE_BOB,
        ),
        (MOODLE_ANN, f"{MOODLE_BOB}_{NOTEBOOK}", MOODLE_BOB),
        (MOODLE_ANN, f"{MOODLE_BOB}/{NOTEBOOK}", MOODLE_BOB),
        (
            "HW 1_alee_attempt_2026-10-12-08-00-00_unpacked",
            f"HW 1_bray_attempt_2027-10-12-08-00-00_{NOTEBOOK}",
            "HW 1_bray_attempt_2026-10-12-08-00-00_unpacked",
        ),
        (f"{MOODLE_ANN}_{NOTEBOOK}", f"old/{MOODLE_BOB}/{NOTEBOOK}", MOODLE_BOB),
    ],
    ids=["brightspace file", "moodle file", "moodle folder", "blackboard", "notebook's folder"],
)
def test_folder_keeps_other_names(
    tmp_path: Path, above: str, ann: str, name: str, bob: str
) -> None:
    files = [f"{above}{ann}/{name}", f"{above}{bob}/{NOTEBOOK}"]
    put(tmp_path, *files)
    people = ("alee", "bray") if "attempt" in ann else ("Ann Lee", "Bob Ray")
    assert learners_in(tmp_path) == dict(zip(people, (files[:1], files[1:]), strict=True))


def test_lone_folder_keeps_other_names(tmp_path: Path) -> None:
    file = f"{MOODLE_ANN}/{MOODLE_BOB}/{NOTEBOOK}"
    assert learners_in(put(tmp_path, file)) == {"Ann Lee": [file]}


@pytest.mark.parametrize(
    ("ann", "bob", "learners"),
    [
        (
            "HW 1_alee_attempt_2026-10-12-08-00-00",
            "HW 1_bray_attempt_2026-10-11-08-00-00",
            "alee,bray",
        ),
        (MOODLE_ANN, MOODLE_BOB, "Ann Lee,Bob Ray"),
        ("leeann_101_9001", "raybob_102_9002", "leeann (101),raybob (102)"),
    ],
    ids=["blackboard", "moodle", "canvas"],
)
def test_file_keeps_other_names(tmp_path: Path, ann: str, bob: str, learners: str) -> None:
    files = [f"{ann}_HW 1_bray_attempt_2027-10-12-08-00-00_{NOTEBOOK}", f"{bob}_{NOTEBOOK}"]
    expected = zip(learners.split(","), files, strict=True)
    assert learners_in(put(tmp_path, *files)) == {who: [file] for who, file in expected}


def test_keeps_attempts_of_other_notebooks(tmp_path: Path) -> None:
    early = "12345-2 - Ann Lee - Oct 1, 2026 900 AM/02_blocking_p2p.ipynb"
    write_notebook(tmp_path / early, "def ping_pong(rank): return rank")
    put(tmp_path, BRIGHTSPACE[0])
    assert learners_in(tmp_path) == {"Ann Lee": [early, BRIGHTSPACE[0]]}


@pytest.mark.parametrize(
    ("folder", "learner"),
    [
        ("ann/feedback", "ann"),
        ("ann/hw/Feedback Attachment(s)", "ann"),
        (f"{MOODLE_ANN}/Ann Lee_22_assignfeedback_file", "Ann Lee"),
        ("Ann Lee_22_assignfeedback_file", "Ann Lee"),
        ("Ann Lee_22_assignfeedback_file_x.ipynb", "Ann Lee"),
    ],
)
@pytest.mark.parametrize("depth", ["", "class/"], ids=["top", "folder"])
def test_ignores_feedback(tmp_path: Path, folder: str, learner: str, depth: str) -> None:
    top = "ann" if learner == "ann" else MOODLE_ANN
    own, folder = f"{depth}{top}/{NOTEBOOK}", depth + folder
    feedback = folder if folder.endswith(".ipynb") else f"{folder}/{NOTEBOOK}"
    put(tmp_path, own, feedback, f"{depth}zoe/{NOTEBOOK}")
    found = learners_in(tmp_path)
    assert found == {learner: [own], "zoe": [f"{depth}zoe/{NOTEBOOK}"]}
    assert find_submissions(tmp_path).notices == (
        f"{folder}: feedback for {learner}, not counted as handed in",
    )


def test_feedback_is_no_submission(tmp_path: Path) -> None:
    put(tmp_path, f"ann/feedback/{NOTEBOOK}", f"zoe/{NOTEBOOK}")
    put(tmp_path, f"{MOODLE_BOB}/{NOTEBOOK}".replace("submission", "feedback"))
    put(tmp_path, f"{MOODLE_ANN}_{NOTEBOOK}".replace("submission", "feedback"))
    found = find_submissions(tmp_path)
    assert learners_in(tmp_path) == {"zoe": [f"zoe/{NOTEBOOK}"]}
    assert set(found.sources) == {"zoe"}
    assert len([notice for notice in found.notices if "feedback for" in notice]) == 3


def test_feedback_folder_makes_no_class(tmp_path: Path) -> None:
    put(tmp_path, f"ann/hw/{NOTEBOOK}", f"ann/feedback from bob/{NOTEBOOK}")
    assert learners_in(tmp_path) == {"ann": [f"ann/hw/{NOTEBOOK}"]}


def test_reads_blackboard_attempts(tmp_path: Path) -> None:
    put(tmp_path, *BLACKBOARD)
    assert learners_in(tmp_path) == {"alee": [BLACKBOARD[1]], "b_ray": [BLACKBOARD[4]]}


def test_newest_attempt_has_source_string(tmp_path: Path) -> None:
    files = [f"HW 1_alee_attempt_2026-10-{at}-08-00-00_{at}.ipynb" for at in (12, 13)]
    for name in files:
        write_notebook(tmp_path / name, "# mine\ndef ping_pong(rank):\n    return 1")
    assert learners_in(tmp_path) == {"alee": files[1:]}


def test_reports_text_without_file(tmp_path: Path) -> None:
    put(tmp_path, *BLACKBOARD[:1], "HW 1_cy_attempt_2026-10-12-08-00-00.txt")
    assert set(learners_in(tmp_path)) == {"alee", "cy"}


def test_files_renamed_by_nbgitpuller_are_copies(tmp_path: Path) -> None:
    put(tmp_path, "ann_00_start_here.ipynb", "ann_00_start_here__20261104104101.ipynb")
    put(tmp_path, "bob/x.ipynb", "bob/x__20261104104101.ipynb")
    assert {who: len(files) for who, files in learners_in(tmp_path).items()} == {"ann": 2, "bob": 2}


# --- rosters ----------------------------------------------------------------------------------------


def matched(tmp_path: Path, roster: str, *names: str) -> RosterMatch:
    folder, path = (
        put(tmp_path / "in", *(f"{name}/{NOTEBOOK}" for name in names)),
        tmp_path / "r.csv",
    )
    path.write_text(roster, encoding="utf-8")
    return match_roster(read_roster(path), find_submissions(folder).sources)


WORKSHEET_HEAD = "Identifier,Full name,Status,Grade,Maximum Grade"
CLEANED = [
    ("Sinead O'Brien", "Sinead OBrien"),
    ("Priya D/O Ravi", "Priya DO Ravi"),
    ("Gina D\u2019Angelo", "Gina DAngelo"),
    ("Ann & Bob Lee", "Ann Bob Lee"),
    ("Jean-Luc Roy", "Jean\u2011Luc Roy"),
    ('Al ""Bud"" Fox', "Al Bud Fox"),
    ("Kim: Ray", "Kim Ray"),
    ("Zoë_Ann Lee", "Zoë Ann Lee"),
]


@pytest.mark.parametrize(("name", "cleaned"), CLEANED, ids=[name for name, _ in CLEANED])
def test_matches_name_without_removed_characters(tmp_path: Path, name: str, cleaned: str) -> None:
    roster = (
        f'{WORKSHEET_HEAD}\nParticipant 23,"{name}",Submitted,,100\nParticipant 24,Bo Ox,,,100\n'
    )
    match = matched(tmp_path, roster, f"{cleaned}_23_assignsubmission_file")
    assert match.rows == (cleaned, None) and not match.without_entry


def test_matches_all_names_without_removed_characters(tmp_path: Path) -> None:
    rows = (f'"{name.rpartition(" ")[0]}","{name.split()[-1]}"' for name, _ in CLEANED)
    roster = "\n".join(["First name,Last name", *rows])
    names = [cleaned for _, cleaned in CLEANED]
    assert matched(tmp_path, roster, *names).rows == tuple(names)


@pytest.mark.parametrize(
    ("cells", "folder"),
    [
        (('"Lee, Ann"', '"Ray, Bob"'), "Ann Lee"),
        (('"O\'Brien, Sinead"', '"Ray, Bob"'), "Sinead OBrien"),
        (("0012", "0013"), "12"),
        (("12", "13"), "0012"),
    ],
)
def test_matches_other_spelling_of_name(
    tmp_path: Path, cells: tuple[str, str], folder: str
) -> None:
    roster = "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
    roster += "".join(f"{cell},{at},s{at},l{at},A\n" for at, cell in enumerate(cells, 500))
    assert matched(tmp_path, roster, folder).rows == (folder, None)


@pytest.mark.parametrize(
    "cells",
    [("Ann Lee", '"Lee, Ann"'), ("Ann-Lee", "Lee Ann"), ("0012", "12")],
    ids=["order", "hyphen", "zeros"],
)
def test_similar_rows_stay_separate(tmp_path: Path, cells: tuple[str, str]) -> None:
    exact = cells[0].strip('"')
    roster = "Name\n" + "".join(f"{cell}\n" for cell in cells)
    assert matched(tmp_path, roster, exact).rows == (exact, None)


BLACKBOARD_HEAD = "Last Name,First Name,Username,Student ID,Last Access,Availability"
USERNAME_FORMS = (
    f"HW 1_{{}}_attempt_2026-10-12-08-00-00_{NOTEBOOK}",
    f"lab-submissions/lab-{{}}/{NOTEBOOK}",
)


def matched_usernames(tmp_path: Path, form: str, row: str, *usernames: str) -> RosterMatch:
    """Match a roster of one row and Zoe's row with the submissions of some usernames."""
    path, folder = tmp_path / "r.csv", tmp_path / "in"
    put(folder, *map(form.format, usernames))
    path.write_text(f"{BLACKBOARD_HEAD}\n{row},,Yes\nRay,Zoe,zoe,7,,Yes\n", encoding="utf-8")
    return match_roster(read_roster(path), find_submissions(folder).sources)


@pytest.mark.parametrize("form", USERNAME_FORMS, ids=["blackboard", "github"])
@pytest.mark.parametrize(
    ("username", "row"),
    [
        ("alee-2", "Lee,Anton,alee,1"),
        ("alee_2", "Lee,Anton,alee,1"),
        ("wei.chen", "Chen,Wei,chen.wei,1"),
        ("wei.chen", "Chen,Wei,wchen,1"),
        ("j.smith", "Smith,Jo,jsmith,1"),
        ("12", "Smith,Jo,0012,1"),
    ],
)
def test_rejects_similar_username(tmp_path: Path, form: str, username: str, row: str) -> None:
    match = matched_usernames(tmp_path, form, row, username, "zoe")
    assert match.rows == (None, "zoe") and match.without_entry == (username,)


@pytest.mark.parametrize("row", ["Lee,Anton,alee,1", "Lee,,alee,1", ",LEE,alee,1"])
def test_username_matches_no_surname(tmp_path: Path, row: str) -> None:
    with pytest.raises(RosterError, match="contains no learner"):
        matched_usernames(tmp_path, USERNAME_FORMS[0], row, "lee")


@pytest.mark.parametrize("form", USERNAME_FORMS, ids=["blackboard", "github"])
def test_username_ignores_case(tmp_path: Path, form: str) -> None:
    match = matched_usernames(tmp_path, form, "Lee,Ann,ALee,1", "alee", "Zoe")
    assert match.rows == ("alee", "Zoe") and match.column == "Username"


# --- imports ----------------------------------------------------------------------------------------

ANN = record("Ann Lee", exercise("ping_pong"), exercise("token_ring", "wrong"))
BOB = record("Bob Ray", exercise("ping_pong", "not attempted"), exercise("token_ring"))
NAMED = ("02_blocking_p2p",)


def imported(tmp_path: Path, roster: str) -> dict[str, list[str]]:
    records: list[Record] = [ANN, BOB]
    match = matched(tmp_path, roster, "Ann Lee", "Bob Ray")
    course = course_of(records, "Autumn", NAMED)
    files = {each.import_file: platform_import(each, course, match) for each in PLATFORMS}
    return {name: data.decode().splitlines() for name, data in files.items() if data is not None}


@pytest.mark.parametrize(
    ("column", "points"),
    [
        (",02_blocking_p2p Points Grade <Numeric MaxPoints:20>", ("14", "10")),
        (",02_blocking_p2p Points Grade <Numeric MaxPoints:10 Weight:5>", ("7", "5")),
        ("", ("14", "10")),
    ],
    ids=["same scale", "other scale", "new"],
)
def test_writes_brightspace_columns(tmp_path: Path, column: str, points: tuple[str, str]) -> None:
    empty = "," * column.count(",")
    roster = (
        f"OrgDefinedId,Username,Last Name,First Name,Email{column},End-of-Line Indicator\n"
        f"#1001,#alee,Lee,Ann,a@x.example{empty},#\n#1002,#bray,Ray,Bob,b@x.example{empty},#\n"
    )
    head = column.removeprefix(",") or "02_blocking_p2p Points Grade"
    assert imported(tmp_path, roster) == {
        "brightspace.csv": [
            f"OrgDefinedId,Username,{head},End-of-Line Indicator",
            f"#1001,#alee,{points[0]},#",
            f"#1002,#bray,{points[1]},#",
        ]
    }


@pytest.mark.parametrize("learner", ["1001", "alee"])
def test_matches_brightspace_identifiers(tmp_path: Path, learner: str) -> None:
    roster = "OrgDefinedId,Username,End-of-Line Indicator\n#1001,#alee,#\n#1002,#bray,#\n"
    assert matched(tmp_path, roster, learner).rows == (learner, None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("10", 10),
        ("10.5", 10.5),
        ("10,5", 10.5),
        ("100,00", 100),
        ("0,500", 0.5),
        ("1.000", 1),
        ("1,000", 1_000),
        ("12,500", 12_500),
        ("1,234,567", 1_234_567),
        ("1,234.50", 1_234.5),
        ("1.000,5", 1_000.5),
        ("1.234.567,00", 1_234_567),
        (" 1,000 ", 1_000),
        ("1234,567", 1_234.567),
        ("", 7),
        ("-", 7),
        ("1,2,3", 7),
        ("1.5,5", 7),
    ],
)
def test_reads_maximum_of_gradebook(text: str, number: float) -> None:
    assert as_number(text, 7) == number


def test_scales_points_to_thousands(tmp_path: Path) -> None:
    own = '"02_blocking_p2p [Total Pts: 1,000 Score] |4711"'
    roster = (
        f"Last Name,First Name,Username,Student ID,Last Access,Availability,{own}\n"
        "Lee,Ann,alee,1,,Yes,\nRay,Bob,bray,2,,Yes,\n"
    )
    assert imported(tmp_path, roster)["blackboard.csv"][1:] == [
        "Lee,Ann,alee,1,700",
        "Ray,Bob,bray,2,500",
    ]


def test_writes_blackboard_columns(tmp_path: Path) -> None:
    own = "02_blocking_p2p [Total Pts: 20 Score] |4711"
    roster = (
        f"Last Name,First Name,Username,Student ID,Last Access,Availability,{own}\n"
        "Lee,Ann,alee,1,,Yes,\nRay,Bob,bray,2,,Yes,\nX_PreviewUser,X,x_previewuser,,,Yes,\n"
    )
    assert imported(tmp_path, roster) == {
        "blackboard.csv": [
            f"Last Name,First Name,Username,Student ID,{own}",
            "Lee,Ann,alee,1,14",
            "Ray,Bob,bray,2,10",
        ]
    }


class _Timed(Platform):
    """A platform that adds a time to each learner's folder."""

    title = "Timed"
    _FORM = re.compile(r"Time of (.+)")

    def sources(self, entries: Entries) -> dict[str, Source]:
        matches = {name: self._FORM.fullmatch(name) for name in entries.folders}
        return {name: Source(x[1], f"{x[1]}/") for name, x in matches.items() if x}

    def added_files(self, entries: Entries) -> set[str]:
        is_learners = self._FORM.fullmatch(entries.parent)
        return {"timestamp.txt"} & {*entries.files} if is_learners else set()


@pytest.mark.parametrize(
    ("files", "handed_in"),
    [
        (["timestamp.txt"], []),
        (["timestamp.txt", "feedback/x.ipynb"], []),
        (["timestamp.txt", "answers.txt"], ["answers.txt"]),
        (["timestamp.txt", "answers.py"], ["answers.py"]),
        (["timestamp.txt", NOTEBOOK], [NOTEBOOK]),
        (["texts/timestamp.txt"], ["texts/timestamp.txt"]),
    ],
    ids=lambda names: " ".join(names) or "nothing",
)
def test_ignores_texts_of_platform(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], handed_in: list[str]
) -> None:
    monkeypatch.setattr(owners, "PLATFORMS", (*PLATFORMS, _Timed()))
    put(tmp_path, *(f"Time of Ann/{name}" for name in files), f"Time of Zoe/{NOTEBOOK}")
    found = learners_in(tmp_path)
    assert found.pop("Zoe") == [f"Time of Zoe/{NOTEBOOK}"]
    assert found == ({"Ann": [f"Time of Ann/{name}" for name in handed_in]} if handed_in else {})
    notices = find_submissions(tmp_path).notices
    assert any("Ann: no notebook was found" in notice for notice in notices) == (
        NOTEBOOK not in files
    )


class _Zeta(Platform):
    """A platform with the column "Username" and one more, and the last in alphabetical order."""

    title = "Zeta"

    def has_exported(self, roster: Roster) -> bool:
        return roster.has_columns("Username", "Zeta group")


def test_common_columns_belong_to_specific_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    zeta = _Zeta()
    monkeypatch.setattr(platforms, "PLATFORMS", (*PLATFORMS, zeta))
    assert platform_of(Roster("x.csv", ("Username", "Zeta group"), ())) is zeta
    moodle = platform_of(Roster("x.csv", ("Username", "First name"), ()))
    assert moodle is not None and moodle.title == "Moodle"
