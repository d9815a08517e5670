"""`course mistakes NAME`, which proves an exercise's known mistakes and other answers."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from helpers.course.cli import main


@pytest.mark.extended
def test_mistakes_command_reports_each_answer() -> None:
    done = CliRunner().invoke(main, ["mistakes", "fit_amdahl"])
    assert done.exit_code == 0, done.output
    lines = [
        line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  ok ")
    ]
    titles = [title for _, title in lines]
    assert len(titles) >= 8 and any(title.startswith("right: ") for title in titles), done.output
    assert any(not title.startswith(("right: ", "wrong: ")) for title in titles), done.output
