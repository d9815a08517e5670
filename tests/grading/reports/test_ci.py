"""Reports for CI systems: JUnit XML, GitHub's annotations and summary."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import mistune
import pytest

from helpers.grading.reports.github import class_summary, github_annotations
from helpers.grading.reports.junit import junit
from helpers.grading.reports.text import escape_markdown
from helpers.views.failed_case import START
from tests.grading.reports.builders import course_of, exercise, fault, record, unreadable
from tests.grading.reports.hostile import TEXTS, UNSHOWABLE, hostile_record, unreadable_record
from tests.grading.reports.page_tags import Page

CLASS = [
    record("Ada", exercise("ping_pong"), exercise("token_ring", "wrong")),
    record("Bob", exercise("ping_pong", "not attempted"), fault("token_ring")),
    unreadable("Cleo"),
]


def suites(text: str = "") -> ElementTree.Element:
    records = [hostile_record(text), unreadable_record(text + "!")] if text else CLASS
    return ElementTree.fromstring(junit(course_of(records, text or "Autumn")))


def test_junit_contains_suite_for_each_learner() -> None:
    root = suites()
    assert root.tag == "testsuites" and root.attrib == {
        "name": "Autumn",
        "tests": "5",
        "failures": "2",
        "errors": "2",
    }
    ada, bob, cleo = root
    assert [case.get("name") for case in ada] == ["2.1 Ping-pong", "2.2 Token ring"]
    assert {case.get("classname") for case in ada} == {"Ada: 02_blocking_p2p"}
    names = [(case.get("classname"), case.get("name")) for suite in root for case in suite]
    assert len(set(names)) == len(names)  # CI systems distinguish cases only by these names
    (failure,) = ada[1]
    assert failure.tag == "failure" and failure.get("message") == "wrong, 4 of 10 points"
    assert f"{START} Rank 1 kept" in (failure.text or "") and "271828" not in (failure.text or "")
    assert [child.tag for case in bob for child in case] == ["failure", "error"]
    assert [child.tag for case in cleo for child in case] == ["error"]


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_records_keep_xml_structure(name: str) -> None:
    assert [each.tag for each in suites(TEXTS[name]).iter()] == [
        each.tag for each in suites("word").iter()
    ]
    data = junit(course_of([hostile_record(TEXTS[name])], TEXTS[name]))
    assert not UNSHOWABLE.search(data.decode("utf-8")) and len(data) < 200_000
    assert b"<!" not in data and b"]]>" not in data and data.count(b"<?") == 1


COMMAND = re.compile(r"::(error|warning) file=([^,:]*),line=1,title=([^,:]*)::([^\r\n]*)")


def test_annotates_each_failed_exercise() -> None:
    lines = list(github_annotations(CLASS, "submissions/"))
    found = [COMMAND.fullmatch(line) for line in lines]
    assert all(found) and len(lines) == 4
    level, file, title, message = found[0].groups() if found[0] else ("",) * 4
    assert (level, file) == ("error", "submissions/Ada/02_blocking_p2p.ipynb")
    assert title == "2.2 Token ring%3A wrong" and message.startswith("Rank 1 kept")
    assert [match[1] for match in found if match] == ["error", "error", "warning", "error"]


@pytest.mark.parametrize("name", TEXTS)
def test_record_never_starts_workflow_command(name: str) -> None:
    text = TEXTS[name]
    records = [hostile_record(text), unreadable_record(text)]
    lines = list(github_annotations(records))
    assert len(lines) == 6
    for line in lines:
        assert COMMAND.fullmatch(line), line
        assert not UNSHOWABLE.search(line) and len(line) < 20_000


def test_escapes_percent_signs_and_line_ends() -> None:
    tried = exercise(outcome="crashed", message="100%\r\nsecond%0Aline", heading="a: b, c%")
    (line,) = github_annotations([record("Ada", tried)])
    assert line.endswith("::100%25%0Asecond%250Aline")
    assert "title=2.1 a%3A b%2C c%25%3A crashed::" in line


def test_summary_lists_all_learners() -> None:
    text = class_summary(course_of(CLASS, "Autumn")).decode()
    page = Page(mistune.html(text).encode())
    assert "Ada" in page.text and "14 of 20" in page.text and "Needs your attention" in page.text
    assert [tag.name for tag in page.tags].count("tr") == 4


@pytest.mark.parametrize("name", TEXTS)
def test_hostile_text_adds_no_summary_tags(name: str) -> None:
    def tags(text: str) -> list[object]:
        records = [hostile_record(text), unreadable_record(text + "!")]
        data = class_summary(course_of(records, text))
        assert not UNSHOWABLE.search(data.decode("utf-8")) and len(data) < 200_000
        return list(Page(mistune.html(data.decode()).encode()).tags)

    assert tags(TEXTS[name]) == tags("word")


def test_markdown_shows_text_verbatim() -> None:
    for name in ("markdown", "script", "entity", "mathtext"):
        shown = Page(mistune.html(escape_markdown(TEXTS[name], 500)).encode()).text.strip()
        assert shown == " ".join(TEXTS[name].split())
    assert "http:" not in escape_markdown(TEXTS["markdown"]) and "www." not in escape_markdown(
        TEXTS["markdown"]
    )
    assert "@team" not in escape_markdown(TEXTS["markdown"])
