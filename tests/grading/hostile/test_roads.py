"""What the course says of each road past its rules on traffic is true: each is gone here."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.record import ExerciseRecord
from helpers.grading.roads import ROADS, Fate, Road
from tests.grading.hostile import traffic
from tests.grading.hostile.attack import graded, text_of

NOTEBOOK = "05_collective_algorithms"


def test_every_road_that_is_told_of_is_gone_here() -> None:
    assert {road.name for road in ROADS} == set(traffic.ROADS)


def gone(grader: Grader, folder: Path, road: str) -> ExerciseRecord:
    source = traffic.ROADS[road] + traffic.SHOW
    record = graded(grader, folder, source, notebook=NOTEBOOK)
    return next(each for each in record.exercises if each.name == "ring_all_reduce")


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)
def test_what_becomes_of_a_road(lenient: Grader, tmp_path: Path, road: Road) -> None:
    record = gone(lenient, tmp_path, road.name)
    if road.fate is Fate.CONTAINED:
        assert (record.outcome, record.points) == ("forbidden call", 0.0), text_of(record)
    else:
        assert record.outcome == "passed", text_of(record)
        assert bool(record.flags) is (road.fate is Fate.FLAGGED)
