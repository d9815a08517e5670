"""Entry points of other packages are found, and those of this folder count more than an installation's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from helpers import plugins
from helpers.check_result import CheckResult, Outcome
from helpers.checks.listeners import CHECKED, tell_listeners

RESULT = CheckResult("my_slice", "Exercise 0.2", Outcome.PASSED)

Install = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def fresh_caches() -> Iterator[None]:
    caches = plugins._installed, plugins._declared_here
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return a function that installs a distribution with one module and one entry point."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "extra_feature", ModuleType("extra_feature"))
    del sys.modules["extra_feature"]  # removed after the test, if it imports the module

    def install_distribution(entry: str, module: str) -> None:
        folder = tmp_path / "extra_feature-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Name: extra-feature\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[{CHECKED}]\n{entry}\n")
        (tmp_path / "extra_feature.py").write_text(module)

    return install_distribution


@pytest.fixture
def no_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a course's folder whose only listener is in a package that it lacks."""
    (tmp_path / "pyproject.toml").write_text(
        f'[project.entry-points."{CHECKED}"]\nroom = "helpers.no_such_room.outbox:send"\n'
    )
    monkeypatch.setattr(plugins, "PYPROJECT", tmp_path / "pyproject.toml")


@pytest.mark.usefixtures("no_features")
def test_other_packages_receive_results(install: Install) -> None:
    module = (
        "from dataclasses import replace\ndef add(result):\n    return replace(result, link='x')"
    )
    install("extra = extra_feature:add", module)
    assert plugins.names(CHECKED) == ["extra", "room"]
    assert tell_listeners(RESULT).link == "x"


@pytest.mark.usefixtures("no_features")
def test_failing_listeners_add_notes(install: Install) -> None:
    install("extra = extra_feature:add", "def add(result):\n    raise ValueError('no')")
    (note,) = tell_listeners(RESULT).notes
    assert note == "extra could not use this result (ValueError: no)"


@pytest.mark.usefixtures("no_features")
def test_absent_packages_add_no_listeners() -> None:
    assert tell_listeners(RESULT) == RESULT
    with pytest.raises(plugins.MissingFeature, match=r"has no helpers\.no_such_room"):
        plugins.load(CHECKED, "room")


@pytest.mark.usefixtures("no_features")
def test_broken_feature_is_not_reported_absent(install: Install) -> None:
    install("extra = extra_feature:add", "import no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        plugins.load(CHECKED, "extra")


@pytest.mark.usefixtures("no_features")
def test_folder_replaces_older_installation(install: Install) -> None:
    install("former = helpers.no_such_module:listen", "")
    assert plugins.names(CHECKED) == ["room"]


def test_installation_counts_without_folder(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "PYPROJECT", tmp_path / "pyproject.toml")
    install("extra = helpers.course.progress:store_check", "")
    assert "extra" in plugins.names(CHECKED)


def test_unknown_name_raises_key_error() -> None:
    with pytest.raises(KeyError):
        plugins.load(CHECKED, "no_such_name")
