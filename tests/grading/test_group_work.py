"""People who handed in one file together, and people with points but without a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from helpers.grading.grade_options import Setting
from helpers.grading.group_work import Group, GroupError, copy_for_members, read_groups
from helpers.grading.names import Source
from helpers.grading.people import read_people
from helpers.grading.points.overrides import OverrideError
from tests.grading.reports.builders import exercise, record

GROUPS = (Group("team 7", ("ann", "zed")), Group("oral exam", ("kim",)))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_reads_group_table(tmp_path: Path, delimiter: str) -> None:
    text = "group,learner\r\nteam 7,ann\r\n\r\nteam 7, zed \r\noral exam,kim\r\nteam 7,ann\r\n"
    path = tmp_path / "groups.csv"
    path.write_text(text.replace(",", delimiter), encoding="utf-8-sig")
    assert read_groups(path) == GROUPS


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"learner,group\nann,1\n", "line 1: the columns must be group, learner"),
        (b"", "is not"),
        (b"group,learner\nteam 7\n", "line 2: expected a group and a learner"),
        (b"group,learner\nteam 7,\n", "line 2: expected a group and a learner"),
        (b"group,learner\nteam 7,a,b\n", "line 2"),
        (b'group,learner\n"team 7,a\n', "this is not CSV"),
        (b"group,learner\nteam,\xe4\n", "is not UTF-8"),
        (b"group,learner,notebook\nteam,a,99\n", "line 2"),
    ],
)
def test_group_table_error_fits_one_line(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "groups.csv"
    path.write_bytes(data)
    if not data:
        assert read_groups(path) == ()
        return
    with pytest.raises(GroupError) as raised:
        read_groups(path)
    assert says in str(raised.value) and "\n" not in str(raised.value)


def test_group_files_count_for_each_member() -> None:
    records = [
        record("ann", file="ann/a"),
        record("team 7", file="team 7/b"),
        record("bob", file="bob/c"),
    ]
    assert [(each.learner, each.file) for each in copy_for_members(records, GROUPS)] == [
        ("ann", "ann/a"),
        ("zed", "ann/a"),
        ("ann", "team 7/b"),
        ("zed", "team 7/b"),
        ("bob", "bob/c"),
    ]
    assert copy_for_members(records, ()) == records


def test_group_shares_only_its_notebook(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("Group,Learner,Notebook\npair,ann,02\npair,bob,02_blocking_p2p\n1,ann,\n")
    groups = read_groups(path)
    assert groups == (Group("pair", ("ann", "bob"), "02_blocking_p2p"), Group("1", ("ann",)))
    records = [
        record("ann", file="ann/a"),
        record("bob", file="bob/b", notebook="05_collective_algorithms"),
        record("pair", file="pair/c"),
    ]
    assert [(each.learner, each.file) for each in copy_for_members(records, groups)] == [
        ("ann", "ann/a"),
        ("bob", "ann/a"),
        ("bob", "bob/b"),
        ("ann", "pair/c"),
        ("bob", "pair/c"),
    ]


def test_group_members_may_change_between_notebooks(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("group,learner,notebook\n1,ann,02\n1,bob,02\n1,ann,05\n1,cy,05\n")
    records = [
        record("1", file="1/a"),
        record("1", file="1/b", notebook="05_collective_algorithms"),
    ]
    found = copy_for_members(records, read_groups(path))
    assert [(each.learner, each.file) for each in found] == [
        ("ann", "1/a"),
        ("bob", "1/a"),
        ("ann", "1/b"),
        ("cy", "1/b"),
    ]


def test_group_shares_one_notebook_of_file() -> None:
    both = record("ann", exercise("ping_pong"), exercise("all_reduce_by_parameter_server"))
    found = copy_for_members([both], (Group("pair", ("ann", "bob"), "02_blocking_p2p"),))
    assert [(each.learner, [e.name for e in each.exercises]) for each in found] == [
        ("ann", ["ping_pong"]),
        ("bob", ["ping_pong"]),
        ("ann", ["all_reduce_by_parameter_server"]),
    ]


HEAD = "learner,exercise,points,reason,by,when\n"


def setting(tmp_path: Path, **texts: str) -> Setting:
    paths = {}
    for name, text in texts.items():
        paths[name] = tmp_path / f"{name}.csv"
        paths[name].write_text(text)
    return replace(Setting(tmp_path, tmp_path / "out"), **paths)  # type: ignore[arg-type]


ANN = {"ann": Source("ann", "ann/")}


def test_override_covers_roster_person_without_file(tmp_path: Path) -> None:
    roster = "Student,ID,Login\nLee Ann,1,ann\nFox Zed,2,zed\n"
    for called in ("zed", "Fox Zed", "2"):
        given = setting(
            tmp_path, roster=roster, overrides=f"{HEAD}{called},ping_pong,3,oral exam,,\n"
        )
        people = read_people(given, ANN)
        assert [each.learner for each in people.overrides] == ["zed"]
        assert (
            people.match is not None
            and people.match.rows == ("ann", "zed")
            and not people.unknown_learners
        )


def test_override_covers_group_member_without_file(tmp_path: Path) -> None:
    given = setting(
        tmp_path, groups="group,learner\noral,zed\n", overrides=f"{HEAD}zed,2.1,3,oral exam,,\n"
    )
    people = read_people(given, ANN)
    assert (
        people.members == ("zed",) and people.overrides[0].learner == "zed" and not people.notices
    )


def test_override_rejects_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(OverrideError, match="no learner is called 'zedd'.*--roster"):
        read_people(setting(tmp_path, overrides=f"{HEAD}zedd,2.1,3,oral exam,,\n"), ANN)


def test_reports_unlisted_members_and_empty_groups(
    tmp_path: Path,
) -> None:
    given = setting(
        tmp_path, roster="Login\nann\nzed\n", groups="group,learner\n1,ann\n1,kim\n2,zed\n2,pam\n"
    )
    people = read_people(given, ANN)
    assert people.unknown_learners == ("kim", "pam")
    assert people.notices[:2] == tuple(
        f"{name}: in a group, and not on the roster" for name in people.unknown_learners
    )
    assert "2: a group without a file" in people.notices
