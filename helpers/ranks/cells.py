"""Translate Python's file names to names known to the reader: "cell [5]", "demo.py"."""

from __future__ import annotations

import functools
import linecache
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.trace.events import Place

_COURSE_FOLDER = str(Path(__file__).parents[1])
_PYTHON_FOLDER = str(Path(linecache.__file__).parent)


@dataclass(frozen=True)
class Source:
    """The text of a cell, and the cell's name for readers."""

    name: str
    text: str


def ipython() -> Any:
    """Return the running IPython shell, or None, without starting or importing IPython."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def in_kernel() -> bool:
    """Return whether this process is a Jupyter kernel (and not a plain interpreter or terminal)."""
    shell = ipython()
    return shell is not None and hasattr(shell, "kernel")


def learner_cells() -> tuple[list[str], dict[str, Any]]:
    """Return the texts of the cells that have run, and their variables.

    Outside a notebook, return the text of the script and its variables.
    """
    shell = ipython()
    if shell is not None:
        return [str(text) for text in shell.user_ns.get("In", ())], shell.user_ns
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    lines = linecache.getlines(file) if isinstance(file, str) else []
    return ["".join(lines)], vars(main)


def place_of(file: str, line: int, function: str) -> Place:
    """Return a line's place: its file, the file's readable name, and the line's source text if known."""
    # A rank can claim any file name, and the line's text is shown to the reader. So read only files that this
    # process has loaded as code.
    is_loaded = file in linecache.cache or (
        file.endswith(".py") and file in _loaded_files(len(sys.modules))
    )
    source = linecache.getline(file, line).rstrip("\n") if is_loaded else ""
    return Place(file, line, function, cell_name(file), source)


@functools.lru_cache(maxsize=1)
def _loaded_files(module_count: int) -> frozenset[str]:
    """Return the files of this process's modules. module_count: the number of modules, as the cache's key."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return frozenset(file for file in files if isinstance(file, str) and file.endswith(".py"))


def cell_name(file: str) -> str:
    """Return "cell [N]", with the number in the cell's margin, or the last part of another file's path."""
    shell = ipython()
    number = _cell_numbers(shell).get(file)
    if number is not None:
        return f"cell [{min(number, shell.displayhook.prompt_count)}]"
    return Path(file).name


def correct_cell_numbers(shell: Any) -> None:
    """Correct the cell number of code run by a magic of the last cell (%%capture, %%ranks).

    Must be called before the next numbered cell runs. IPython (9.18) increments its count before it
    runs a cell, so it records such code under the next cell's number.
    """
    numbers, next_number = _cell_numbers(shell), shell.displayhook.prompt_count
    for file, number in numbers.items():
        if number >= next_number:
            numbers[file] = next_number - 1


def _cell_numbers(shell: Any) -> dict[str, int]:
    """Return IPython's mapping from file to cell number."""
    numbers: dict[str, int] = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return numbers


# Packages of decorators. Their wrappers only call the decorated function, which may be one of torch's.
_DECORATORS = ("typing_extensions.py", "decorator.py", "wrapt/")


def package_file(file: str) -> str:
    """Return an installed package's file relative to site-packages; "" for other files.

    torch's files are left out, because torch's errors are meant for its callers; torch.testing is kept.
    """
    _, separator, path = file.replace("dist-packages", "site-packages").rpartition("site-packages/")
    is_torch = path.startswith("torch/") and not path.startswith("torch/testing/")
    return path if separator and not is_torch and not path.startswith(_DECORATORS) else ""


def is_learner_file(file: str) -> bool:
    """Return whether a file is the learner's and does not belong to Python, a package or the course."""
    if file.startswith(("<frozen", _COURSE_FOLDER, _PYTHON_FOLDER)):
        return False
    return "site-packages" not in file and "dist-packages" not in file
