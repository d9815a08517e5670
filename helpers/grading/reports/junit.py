"""Write JUnit XML for CI systems: a suite for each learner, a case for each exercise.

`write_reports` calls `junit`. A wrong answer is a failure. An unreadable file or a fault of the grading,
which a person has to check, is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, tostring

from helpers.grading.record import ExerciseRecord, Record, Status
from helpers.grading.reports.outcomes import Kind, exercise_text, kind_of, shown_outcome
from helpers.grading.reports.standing import Course, Standing
from helpers.grading.reports.text import (
    clip_text,
    finite_or_zero,
    line,
    numbered_title,
    points_text,
)


def junit(course: Course) -> bytes:
    """Return the whole class as one JUnit XML document in UTF-8."""
    root = Element("testsuites", name=line(course.title))
    for standing in course.standings:
        _suite(root, standing)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _suite(root: Element, standing: Standing) -> None:
    suite = SubElement(root, "testsuite", name=line(standing.learner))
    # CI systems identify a case only by its two names, so these must differ between learners and files.
    files = Counter(record.notebook for record in standing.records)
    for record in standing.records:
        notebook = line(record.notebook or record.file)
        copy = f" ({line(record.file)})" if record.notebook and files[record.notebook] > 1 else ""
        _record(suite, record, f"{line(standing.learner)}: {notebook}{copy}")
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(_count_with(cases, "failure")))
    suite.set("errors", str(_count_with(cases, "error")))
    suite.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _record(suite: Element, record: Record, name: str) -> None:
    if record.status is Status.UNREADABLE:
        case = SubElement(suite, "testcase", classname=name, name=line(record.file), time="0")
        _add_element(case, "error", "cannot be read", record.message)
    for exercise in record.exercises:
        seconds = f"{max(0.0, finite_or_zero(exercise.seconds)):.3f}"
        case = SubElement(
            suite, "testcase", classname=name, name=numbered_title(exercise), time=seconds
        )
        _outcome(case, exercise)


def _outcome(case: Element, exercise: ExerciseRecord) -> None:
    kind = kind_of(exercise.outcome)
    if kind is not Kind.PASSED:
        points = points_text(exercise.points, exercise.out_of)
        said = line(shown_outcome(exercise), 40) + (f", {points}" if kind is not Kind.FAULT else "")
        _add_element(
            case, "error" if kind is Kind.FAULT else "failure", said, exercise_text(exercise)
        )


def _add_element(case: Element, element: str, message: str, text: str) -> None:
    said = SubElement(case, element, message=message, type=message.partition(",")[0])
    said.text = clip_text(text, 8000)


def _count_with(cases: Iterable[Element], element: str) -> int:
    return sum(case.find(element) is not None for case in cases)
