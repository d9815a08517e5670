"""The docstring of each package of `helpers` lists its modules, each on a separate line.

A line of such a map is indented by four spaces: the module's name, at least two spaces, and its purpose.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

HELPERS = Path(__file__).parents[1] / "helpers"
WITHOUT_MAP = {"exercises"}
"""Its folders are listed by the notebooks' numbers, and each has its own files."""
PACKAGES = sorted({path.parent.name for path in HELPERS.glob("*/__init__.py")} - WITHOUT_MAP)
ENTRY = re.compile(r"^ {4}(\w+) {2,}(\S.*)$", re.MULTILINE)


def map_of(package: str) -> list[tuple[str, str]]:
    """Return name and purpose of each module in a package's map."""
    text = (HELPERS / package / "__init__.py").read_text(encoding="utf-8")
    return ENTRY.findall(ast.get_docstring(ast.parse(text), clean=False) or "")


def modules_of(package: str) -> set[str]:
    """Return the modules of a package, and the packages within it."""
    inner = (HELPERS / package).glob("*/__init__.py")
    modules = {path.stem for path in (HELPERS / package).glob("*.py")} - {"__init__"}
    return modules | {path.parent.name for path in inner}


@pytest.mark.parametrize("package", PACKAGES)
def test_map_lists_each_module_once(package: str) -> None:
    names, modules = Counter(name for name, _ in map_of(package)), modules_of(package)
    problems = [f"add a line about {name}" for name in sorted(modules - names.keys())]
    problems += [f"remove {name}, which does not exist" for name in sorted(names.keys() - modules)]
    problems += [f"list {name} only once" for name, count in names.items() if count > 1]
    assert not problems, f"the map in helpers/{package}/__init__.py: " + "; ".join(problems)


@pytest.mark.parametrize("package", PACKAGES)
def test_map_purposes_are_unique(package: str) -> None:
    purposes = Counter(purpose for _, purpose in map_of(package))
    assert max(purposes.values()) == 1, purposes.most_common(1)
