"""A record stores the check's cases, without runs, hidden inputs or endless texts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from helpers.answers.build import Answer
from helpers.check_result import CaseRecord, CaseVerdict, CheckResult, Outcome, Row
from helpers.checks.registry import get
from helpers.grading.record import ExerciseRecord, from_json
from helpers.grading.results import record_of_results
from helpers.ranks.run import Run
from helpers.trace.events import Trace
from tests.grading.reports.builders import exercise, record

LONG = "x" * 1_000_000
FAILED = CaseVerdict(
    label="2 ranks",
    outcome=Outcome.WRONG,
    rows=(Row(0, "x = 1", "6", "2", "it differs"),),
    broken=("3 messages, but 2 suffice",),
    message="a message",
    advice="Look there.",
    run=Run(1, [0], [""], Trace(1)),
)


def graded(*cases: CaseVerdict) -> ExerciseRecord:
    result = CheckResult("ping_pong", "Ping-pong", Outcome.WRONG, cases)
    return record_of_results(get("ping_pong"), Answer("ping_pong", "", ()), result, result)


def test_stores_visible_cases_unchanged() -> None:
    visible, _ = graded(FAILED).cases
    assert visible == FAILED.as_record() and type(visible) is CaseRecord


def test_hidden_cases_store_no_texts() -> None:
    _, hidden = graded(FAILED).cases
    assert hidden == CaseRecord(label="hidden case 1", hidden=True, outcome="wrong", credit=0.0)


def test_cuts_long_texts() -> None:
    hostile = msgspec.structs.replace(
        FAILED.rows[0], given=LONG, expected=LONG, got=LONG, problem=LONG
    )
    case = CaseVerdict(
        label="2 ranks",
        outcome=Outcome.WRONG,
        rows=(hostile,),
        broken=(LONG,),
        message=LONG,
        advice=LONG,
    )
    assert len(msgspec.json.encode(graded(case))) < 40_000


# as written by a release before `Row`
FORMER_CASE = {
    **{"label": "2 ranks", "hidden": False, "outcome": "wrong", "credit": 0.0},
    **{"rows": [[0, "x = 1", "6", "2", "it differs"]], "broken": [], "message": "", "advice": ""},
}


def stored(case: dict[str, Any]) -> dict[str, Any]:
    data = json.loads(json.dumps(record("Ada", exercise()).as_json()))
    data["exercises"][0]["cases"] = [case]
    return data


def test_reads_records_of_former_releases() -> None:
    (case,) = from_json(stored(FORMER_CASE)).exercises[0].cases
    assert case.rows == (Row(0, "x = 1", "6", "2", "it differs"),)
    assert json.loads(msgspec.json.encode(case)) == FORMER_CASE


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [[0, "a", "b", "c", "d", "e"]]},
        {"rows": [["0", "a", "b", "c", "d"]]},
        {"rows": [{"rank": 0}]},
        {"credit": "all"},
    ],
    ids=["six fields", "text as rank", "object", "text as credit"],
)
def test_refuses_damaged_cases(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="the record is damaged"):
        from_json(stored(FORMER_CASE | change))
