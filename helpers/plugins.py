"""Find the features of this copy, which are objects declared as entry points by packages.

There are two groups. `real_ranks.commands` contains the commands of `course`, by name. `real_ranks.checked`
contains listeners, which are called with each finished CheckResult, in the order of their names, and return
it, possibly with additions.

In a course's folder, the tables of pyproject.toml are used, because an installation may be older than its
folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


class MissingFeature(Exception):
    """This copy of the course lacks the package of an entry point. package: its dotted name."""

    def __init__(self, package: str) -> None:
        super().__init__(f"this copy of the course has no {package}")
        self.package = package


def names(group: str) -> list[str]:
    """Return the names of a group's entry points, sorted."""
    return sorted({**_installed(group), **_declared_here(group)})


def load(group: str, name: str) -> Any:
    """Import the object of an entry point.

    Raises:
        KeyError: There is no such entry point.
        MissingFeature: This copy lacks its package.
    """
    # try this last, because importing importlib.metadata takes a fifth of a short command's time
    target = _declared_here(group).get(name) or _installed(group)[name]
    try:
        return resolve_name(target)
    except ModuleNotFoundError as error:
        module = target.partition(":")[0]
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the feature exists, but a module that it needs is missing
        raise MissingFeature(error.name) from error


@cache
def _installed(group: str) -> Mapping[str, str]:
    from importlib.metadata import entry_points

    return {
        each.name: each.value
        for each in entry_points(group=group)
        if not (each.value.startswith("helpers.") and _declared_here(group))
    }


@cache
def _declared_here(group: str) -> Mapping[str, str]:
    try:
        project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
        return dict(project["project"]["entry-points"][group])
    except (OSError, KeyError, tomllib.TOMLDecodeError):  # installed without its folder
        return {}
