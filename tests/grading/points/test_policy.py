"""Counting points with weights, core and further exercises, deadlines and drops; errors in a policy file."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from helpers.checks.headings import headings
from helpers.grading.points.policy import (
    DEFAULT_POLICY,
    Policy,
    PolicyError,
    effort_points,
    read_policy,
)
from helpers.grading.record import Record
from helpers.grading.reports.standing import Standing, course_of
from tests.grading.reports.builders import exercise, record

DUE = datetime(2026, 10, 12, 23, 59).timestamp()
DAY_S = 86_400.0


def write(folder: Path, text: str) -> Path:
    (folder / "policy.toml").write_text(text, encoding="utf-8")
    return folder / "policy.toml"


def standing_of(
    records: list[Record], policy: Policy, days_late: dict[str, float] | None = None
) -> Standing:
    """Return Ada's standing. days_late: days after DUE, by file."""
    times = {("Ada", file): DUE + days * DAY_S for file, days in (days_late or {}).items()}
    return course_of(records, "", (), policy, (), times).standings[0]


def ada(notebook: str, outcome: str = "passed") -> Record:
    """Return a notebook of Ada's in which all exercises have the same outcome."""
    names = [each.name for each in headings().values() if each.notebook == notebook]
    tries = [exercise(name, outcome) for name in names]
    return record("Ada", *tries, notebook=notebook, file=f"Ada/{notebook}.ipynb")


def test_three_solved_notebooks_earn_all_points() -> None:
    notebooks = ("02_blocking_p2p", "05_collective_algorithms", "06_deadlocks")
    records = []
    for notebook in notebooks:
        names = [each for each in headings().values() if each.notebook == notebook]
        tries = [exercise(x.name, "not attempted" if x.further else "passed") for x in names]
        assert any(each.further for each in names)
        records.append(record("Ada", *tries, notebook=notebook, file=f"{notebook}.ipynb"))
    standing = standing_of(records, DEFAULT_POLICY)
    assert standing.points == standing.out_of > 0 and standing.share == 1.0


def test_exercise_weight_follows_minutes_and_difficulty() -> None:
    by_effort = sorted(
        (each for each in headings().values() if not each.further), key=effort_points
    )
    small, large = by_effort[0], by_effort[-1]
    assert small.minutes * small.difficulty < large.minutes * large.difficulty
    assert (
        effort_points(small) >= 1
        and DEFAULT_POLICY.weight_of(large.name, 10.0) == effort_points(large) > 10
    )
    assert Policy(weights="points").weight_of(large.name, 10.0) == 10.0
    further = next(each for each in headings().values() if each.further)
    assert DEFAULT_POLICY.weight_of(further.name, 10.0) == effort_points(further) / 4
    assert Policy(further="counts").weight_of(further.name, 10.0) == effort_points(further)


@pytest.mark.parametrize(
    ("further", "more"), [("bonus", True), ("counts", False), ("ignored", False)]
)
def test_policy_decides_weight_of_further_exercises(further: str, more: bool) -> None:
    policy = Policy(further=further)  # type: ignore[arg-type]
    standing = standing_of([ada("06_deadlocks")], policy)
    assert (standing.points > standing.out_of) is more and standing.share == 1.0
    core = sum(
        effort_points(x)
        for x in headings().values()
        if x.notebook == "06_deadlocks" and not x.further
    )
    assert (standing.out_of > core) is (further == "counts")


def test_class_policy_sets_weights_and_core(tmp_path: Path) -> None:
    path = write(tmp_path, 'as_further = ["2.1"]\n[weight]\n"2.2" = 33\nping_pong = 4\n')
    policy = read_policy(path)
    assert policy.weight == {"token_ring": 33.0, "ping_pong": 4.0}
    assert policy.is_bonus("ping_pong") and not policy.is_bonus("token_ring")
    tries = exercise("ping_pong"), exercise("token_ring", "wrong")
    standing = standing_of([record("Ada", *tries)], policy)
    assert (standing.points, standing.out_of) == (pytest.approx(4 + 0.4 * 33), 33.0)


def test_late_days_cost_points_beyond_free(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'weights = "points"\n[deadlines]\n"02" = 2026-10-12T23:59:00\n"5" = 2026-10-12T23:59:00\n'
        '[late]\nfree_days = 2\nper_day = 0.25\nextensions = {"Ada" = 1}\n',
    )
    policy = read_policy(path, {"Ada": "Ada"})
    second, fifth = ada("02_blocking_p2p"), ada("05_collective_algorithms")
    on_time = standing_of([second, fifth], policy)
    assert standing_of([second, fifth], policy, {second.file: 1.0}).points == on_time.points
    late = standing_of([second, fifth], policy, {second.file: 1.5, fifth.file: 3.0})
    assert (late.late["02_blocking_p2p"].days, late.late["02_blocking_p2p"].free) == (1, 1)
    assert late.late["05_collective_algorithms"].factor == 0.75
    assert late.points < on_time.points and late.out_of == on_time.out_of


def test_date_deadline_lasts_until_midnight(tmp_path: Path) -> None:
    policy = read_policy(write(tmp_path, "[deadlines]\n02 = 2026-10-12\n"))
    due = datetime(2026, 10, 12, 23, 59, 59).timestamp()
    assert policy.days_late("Ada", "02_blocking_p2p", due) == 0
    assert policy.days_late("Ada", "02_blocking_p2p", due + 1) == 1
    assert policy.days_late("Ada", "04_collectives", due + 1) == 0


@pytest.mark.parametrize(
    ("handed_in", "days"),
    [
        ("2026-10-26T23:30:00+01:00", 0),  # two more days, one of which has 25 hours
        ("2026-10-27T00:00:00+01:00", 1),
        ("2026-10-27T23:59:59+01:00", 1),
        ("2026-10-28T00:00:01+01:00", 2),
    ],
)
def test_late_days_follow_calendar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_in: str, days: int
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        text = "[deadlines]\n02 = 2026-10-24\n[late.extensions]\nAda = 2\n"
        policy = read_policy(write(tmp_path, text), {"Ada": "Ada"})
        at = datetime.fromisoformat(handed_in).timestamp()
        assert policy.days_late("Ada", "02_blocking_p2p", at) == days
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("handed_in", ["2026-03-28T23:59:59.4", "2026-03-30T00:30:00"])
def test_counts_late_days_across_clock_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handed_in: str
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        policy = read_policy(write(tmp_path, "[deadlines]\n02 = 2026-03-28\n"))
        late = policy.days_late(
            "A", "02_blocking_p2p", datetime.fromisoformat(handed_in).timestamp()
        )
        assert late == (0 if "28T" in handed_in else 2)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_finds_extensions_by_any_learner_identifier(tmp_path: Path) -> None:
    path = write(tmp_path, "[late.extensions]\nada42 = 3\n")
    assert read_policy(path, {"ada42": "Ada"}).late.extensions == {"Ada": 3}


def test_drops_lowest_notebooks_except_last() -> None:
    records = [
        ada("02_blocking_p2p"),
        ada("05_collective_algorithms", "wrong"),
        ada("04_collectives"),
    ]
    standing = standing_of(records, Policy(drop_lowest=1))
    assert standing.dropped == ("05_collective_algorithms",) and standing.share == 1.0
    assert standing_of(records, Policy(drop_lowest=9)).out_of > 0


def test_counts_copy_with_most_final_points() -> None:
    good, better = ada("02_blocking_p2p", "wrong"), ada("02_blocking_p2p")
    copies = [good, record("Ada", *better.exercises, file="late.ipynb")]
    policy = Policy(deadlines={"02_blocking_p2p": datetime.fromtimestamp(DUE)})
    assert standing_of(copies, policy, {"late.ipynb": 2.0}).records[0].file == "late.ipynb"
    assert standing_of(copies, policy, {"late.ipynb": 9.0}).records[0].file == good.file


WRONG = {
    "weights = \n": 1,
    '# ours\nweights = "minutes"\n': 2,
    '[late]\nfree_days = 2\nper_day = "much"\n': 3,
    "[weight]\nping_pong = 1\nping_pang = 2\n": 3,
    "[weight]\nping_pong = -1\n": 2,
    '[weight]\nping_pong = 1\n"2.1" = 2\n': 3,
    "[weight]\ntoken_ring = 1\nping_pong = nan\n": 3,
    "as_core = [1]\n": 1,
    'as_core = "2.1"\n': 1,
    "deadlines = 1\n": 1,
    "drop_lowest = 1.5\n": 1,
    "drop_lowest = 1\ndrop_lowest = 2\n": 2,
    "drop_last = 1\n": 1,
    "[deadlines]\n99 = 2026-10-12\n": 2,
    "[deadlines]\n02 = 0001-01-01\n": 2,
    '[deadlines]\n02 = "tomorrow"\n': 2,
    '[late]\nextensions = {"Bob" = 1}\n': 2,
    'as_core = ["2.1"]\nas_further = ["ping_pong"]\n': 2,
}


@pytest.mark.parametrize("text", WRONG)
def test_error_locates_wrong_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(PolicyError) as told:
        read_policy(path, {"Ada": "Ada"})
    assert str(told.value).startswith(f"{path}, line {WRONG[text]}: ")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        *(
            (f'[deadlines]\n"02" = {date}\n', "Write a date as 2026-10-25 or")
            for date in (
                '"2026-10-25"', "25.10.2026", "2026/10/25", "10/25/2026", "25 October 2026", "2026-10-5",
                "October 25, 2026", "2026-10-25T18:00", "2026-02-30", "20261025", "18:00:00", '"tomorrow"',
                "25. Okt. 2026",
            )
        ),
        *(
            (f"[late]\nper_day = {number}\n", "and a number with a point")
            for number in ("0,1", '"0.1"', ".1", "10%", "10 %", "1.", "-0,5")
        ),
        ('drop_lowest = 1\n[late]\nfree_days = "3"\n', "and a number with a point"),
    ],
)  # fmt: skip
def test_policy_error_explains_expected_value(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says) as told:
        read_policy(write(tmp_path, line))
    assert f", line {line.count(chr(10))}: " in str(told.value)
    assert "RFC3339" not in str(told.value) and str(told.value).count("\n") == 0


def test_unreadable_policy_error_fits_one_line(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_bytes(b"\xff")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    (tmp_path / "long.toml").write_text("drop_lowest = " + "9" * 5_000)
    names = ("none.toml", "policy.toml", "deep.toml", "long.toml")
    for path in (tmp_path, *(tmp_path / name for name in names)):
        with pytest.raises(PolicyError) as told:
            read_policy(path)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_reads_policy_in_every_editor_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "policy.toml").write_text("drop_lowest = 2\n", encoding=encoding)
    assert read_policy(tmp_path / "policy.toml").drop_lowest == 2
