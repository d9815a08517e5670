"""Each command, platform, report and sandbox level is a promise with its tests."""

from __future__ import annotations

import re

from helpers.course.command_parts import command_names, find_command
from helpers.grading.platforms import PLATFORMS
from helpers.grading.sandbox.levels import PROTECTION
from tests.promises import COMMANDS, PAGE, PROMISES, SANDBOXES, page
from tests.promises import PLATFORMS as PROMISED_PLATFORMS


def without_counts(text: str) -> str:
    return re.sub(r"\| [\d,]+, [\d,]+ \|", "| |", text)


def test_page_matches_promises() -> None:
    assert without_counts(PAGE.read_text()) == without_counts(page()), "python -m tests.promises"


def test_each_promise_has_files_and_tests() -> None:
    lacking = [each.name for each in PROMISES if not each.helper_files() or not each.test_files()]
    assert not lacking
    for promise in PROMISES:
        for pattern in promise.tests:
            assert any(path.name.startswith("test_") for path in promise.test_files()), pattern


def test_each_command_is_promised() -> None:
    visible = {
        name
        for name in command_names()
        if (command := find_command(name)) is not None and not command.hidden
    }
    assert visible == {promise.name for promise in COMMANDS}


def test_each_platform_is_promised() -> None:
    modules = {promise.code[0] for promise in PROMISED_PLATFORMS}
    found = {
        f"grading/platforms/{type(each).__module__.rpartition('.')[2]}.py" for each in PLATFORMS
    }
    assert found == modules


def test_each_sandbox_level_is_promised() -> None:
    assert {promise.name for promise in SANDBOXES} == set(PROTECTION)
