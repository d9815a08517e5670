"""One set of dependencies, in pyproject.toml, constraints.txt, environment.yml and installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from helpers.torch_versions import TESTED

ROOT = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = "3.11.0"
DEADLINE_S = 60

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
DIRECT = [Requirement(line) for line in PROJECT["dependencies"] + sum(EXTRAS.values(), [])]


def constraint_lines() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


PINS = {canonicalize_name(pin.name): pin for pin in constraint_lines()}


def pinned_version(pin: Requirement) -> Version:
    (specifier,) = pin.specifier
    assert specifier.operator == "==" and "*" not in specifier.version, pin
    return Version(specifier.version)


def installed_here() -> dict[str, Version]:
    found = {}
    for name in PINS:
        try:
            found[name] = Version(distribution(name).version)
        except PackageNotFoundError:
            continue  # for a different system, or in an extra that is not installed
    return found


def test_constraints_pin_exact_public_versions() -> None:
    names = [canonicalize_name(pin.name) for pin in constraint_lines()]
    assert len(names) == len(set(names))
    assert names == sorted(names)
    for pin in PINS.values():
        assert pinned_version(pin).local is None and not pin.extras and not pin.url


def test_pins_direct_dependencies_within_bounds() -> None:
    names = [canonicalize_name(needed.name) for needed in DIRECT]
    assert len(names) == len(set(names))
    for needed in DIRECT:
        pin = PINS[canonicalize_name(needed.name)]
        assert pin.marker is None and pinned_version(pin) in needed.specifier, needed


def test_pins_torch_to_tested_version() -> None:
    (allowed,) = (needed.specifier for needed in DIRECT if needed.name == "torch")
    assert str(pinned_version(PINS["torch"])) in TESTED and all(each in allowed for each in TESTED)


def test_pins_all_transitive_dependencies() -> None:
    todo = [(needed.name, extra) for needed in DIRECT for extra in ("", *needed.extras)]
    seen = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            assert canonicalize_name(name) in PINS  # an extra that is not installed here
            continue
        for needed in map(Requirement, lines):
            if needed.marker and not needed.marker.evaluate({"extra": extra}):
                continue
            assert canonicalize_name(needed.name) in PINS, f"{name} needs {needed}"
            todo += [(needed.name, each) for each in ("", *needed.extras)]


def test_pinned_packages_support_oldest_python() -> None:
    assert PROJECT["requires-python"] == ">=3.11"
    for name in installed_here():
        python = distribution(name).metadata.get("Requires-Python")
        needed = Requirement(f"python{python or ''}").specifier
        assert needed.contains(OLDEST_PYTHON), f"{name}: {python}"


def test_environment_yml_installs_same_pinned_packages() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment.keys() == {"name", "channels", "dependencies"}
    python, pip, section = environment["dependencies"]
    assert pip == "pip" and section == {"pip": ["-c constraints.txt", "-e ."]}
    assert re.fullmatch(r"python=3\.\d+", python)
    assert Version(python.removeprefix("python=")) >= Version("3.11")


def test_make_installs_pinned_versions_through_pip() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = re.findall(r"^\t.*\b(?:PIP_INSTALL|pip install)\b.*$", makefile, re.MULTILINE)
    assert [line.strip() for line in commands] == [
        "$(PIP_INSTALL) -e .",
        "$(PIP_INSTALL) -e '.[$*]'",
    ]
    (definition,) = re.findall(r"^PIP_INSTALL := (.*)$", makefile, re.MULTILINE)
    assert definition.endswith(" -c constraints.txt")


@pytest.mark.extended
def test_installed_versions_match_pins() -> None:
    other = {
        name: str(version)
        for name, version in installed_here().items()
        if Version(version.public) != pinned_version(PINS[name])
    }
    assert not other
    for needed in map(Requirement, PROJECT["dependencies"] + EXTRAS["test"]):
        assert canonicalize_name(needed.name) in installed_here(), f"{needed} is not installed"


def make(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    # As from a terminal: `make test`, which may have started this process, passes its options on.
    own = {"LAB_ARGS", "MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "NN", "PYTHON"}
    env = {name: value for name, value in os.environ.items() if name not in own | {"TEST_ARGS"}}
    return subprocess.run(
        ["make", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=DEADLINE_S
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("words", "last"),
    [
        (["lab", "LAB_ARGS=--no-browser --port 8899"], "course lab --no-browser --port 8899"),
        (["test"], "python -m pytest -n 5 --dist worksteal "),
        (["soak"], "python -m pytest -m soak -s "),
        (["lint"], "mypy"),
        (["notebooks"], "course build"),
        (["outputs", "NN=01 02"], "course outputs 01 02"),
        (["bench"], "python -m tests.benchmarks"),
    ],
)
def test_make_targets_run_their_commands(words: list[str], last: str) -> None:
    done = make("-n", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f".venv/bin/{last}"


def test_make_without_target_lists_targets() -> None:
    listed = re.findall(r"^  make ([\w-]+) ", make().stdout, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*) FORCE$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony and sorted(listed) == sorted(phony[1].split())


@pytest.mark.parametrize(
    ("python", "words"),
    [
        ("/nowhere/python3", "is older than 3.11, or does not run"),
        ("", "Found no Python >= 3.11"),
        ("old", "is older than 3.11, or does not run"),
        ("bare", "sudo apt-get install python3"),
    ],
)
def test_make_explains_python_requirements(tmp_path: Path, python: str, words: str) -> None:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    stands_for_old = 'case "$*" in *version_info*) exit 1;; esac\n'
    lacks_ensurepip = f'case "$*" in *ensurepip*) exit 1;; esac\nexec "{sys.executable}" "$@"\n'
    for name, script in (("old", stands_for_old), ("bare", lacks_ensurepip)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / name).chmod(0o755)
    chosen = str(tmp_path / python) if python in ("old", "bare") else python
    done = make("venv", f"PYTHON={chosen}", folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stdout
    assert not (tmp_path / ".venv").exists()


def test_continuous_integration_runs_each_target() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    text = script.read_text()
    targets = re.findall(r"^twice ([\w-]+)", text, re.MULTILINE)
    assert "set -euo pipefail" in text and targets == ["test", "test-all", "prove"]
    checked = subprocess.run(["bash", "-n", str(script)], timeout=DEADLINE_S)
    assert checked.returncode == 0


def test_each_test_folder_has_one_job() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    named = [each["folders"].split() for each in jobs["tests"]["strategy"]["matrix"]["include"]]
    nested = (ROOT / "tests").glob("*/**/test_*.py")
    folders = {f"tests/{path.relative_to(ROOT / 'tests').parts[0]}" for path in nested}
    assert sorted(sum(named, [])) == sorted(folders)
