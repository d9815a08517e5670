"""Find the learner's modules, without examining a module twice."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from helpers.ranks.own_modules import learner_module_names


def test_finds_modules_of_learner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = learner_module_names()
    for name in ("first_model", "second_model"):
        (tmp_path / f"{name}.py").write_text("SCALE = 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "first_model", importlib.import_module("first_model"))
    importlib.import_module("colorsys")  # one of Python's
    assert learner_module_names() == [*before, "first_model"]
    monkeypatch.setitem(sys.modules, "second_model", importlib.import_module("second_model"))
    assert learner_module_names() == [*before, "first_model", "second_model"]
    del sys.modules["first_model"]
    assert learner_module_names() == [*before, "second_model"]
    importlib.import_module("first_model")  # examined again, because it has been removed
    assert learner_module_names() == [*before, "second_model", "first_model"]
