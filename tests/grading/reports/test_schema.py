"""The published schema accepts only written records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import helpers.grading.record as records
from helpers.check_result import Outcome
from helpers.grading.record import Record, from_json
from tests.grading.reports.builders import a_class, exercise, fault, picture, record, unreadable
from tests.grading.reports.hostile import TEXTS, unreadable_record

SCHEMA = json.loads((Path(records.__file__).parent / "record.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)

RECORDS = [
    *a_class(6),
    record(
        "Ada",
        exercise(picture=picture(), answer="def f(): ...", key="ab", cached=True, further=True),
    ),
    record("Bob", fault()),
    unreadable(),
    Record("", "", "", records.Status.GRADED),
    *(unreadable_record(text) for text in TEXTS.values()),
    *(record("Ada", exercise(outcome=outcome.value)) for outcome in Outcome),
]


def written(one: Record) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(one.as_json(), allow_nan=False))
    return data


def test_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format"]["const"] == records.FORMAT


@pytest.mark.parametrize(
    "one", RECORDS, ids=lambda one: one.learner[:12].encode("ascii", "replace")
)
def test_valid_records_read_back_equal(one: Record) -> None:
    VALIDATOR.validate(written(one))
    assert from_json(written(one)) == one
    assert from_json(one.as_json()) == one


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 2),
        (("learner",), 5),
        (("status",), "perfect"),
        (("extra",), 1),
        (("points",), -1),
        (("notes",), [1]),
        (("versions",), {"torch": 2}),
        (("protection", "level"), None),
        (("exercises", 1, "outcome"), "excellent"),
        (("exercises", 1, "points"), "10"),
        (("exercises", 1, "cases", 1, "credit"), 1.5),
        (("exercises", 1, "cases", 1, "rows", 0), [0, "a", "b", "c"]),
        (("exercises", 1, "cases", 1, "rows", 0), [0, "a", "b", "c", "d", "e"]),
        (("exercises", 1, "cases", 1, "rows", 0, 0), "0"),
    ],
)
def test_refuses_non_record_data(path: tuple[str | int, ...], value: object) -> None:
    data: Any = written(record("Ada", exercise(), exercise("token_ring", "wrong")))
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert not VALIDATOR.is_valid(data)


@pytest.mark.parametrize("name", [*SCHEMA["required"]])
def test_every_field_is_required(name: str) -> None:
    data = written(record())
    del data[name]
    assert not VALIDATOR.is_valid(data)
