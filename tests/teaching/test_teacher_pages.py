"""`course teach`: a page for each exercise, with each known mistake, its sentence, hints and a solution."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.course.cli import main

pytest.importorskip("latex2mathml", reason="the extra `slides` is not installed")


@pytest.mark.extended
def test_exercise_pages_list_known_mistakes(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["teach", str(tmp_path)])
    assert done.exit_code == 0, done.output
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert len(list(tmp_path.iterdir())) == len(headings()) + 1
    for heading in headings().values():
        name = f"{heading.number.replace('.', '-')}_{heading.name}.html"
        assert f'href="{name}"' in index
        text = unescape((tmp_path / name).read_text(encoding="utf-8"))
        known = known_mistakes(heading)
        for mistake in known:
            assert mistake.title in text and mistake.outcome.value in text
        assert "BEGIN SOLUTION" not in text and heading.title in text
        assert "A solution" in text and text.count("<pre") > len(known)


def test_reports_learner_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from helpers.course.workspace import Workspace

    monkeypatch.setattr("helpers.course.workspace.find_workspace", lambda: Workspace(tmp_path))
    done = CliRunner().invoke(main, ["teach", str(tmp_path / "out")])
    assert done.exit_code == 1 and "no solutions" in done.output
