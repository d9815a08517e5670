"""Read a script, and refuse files that cannot run as a script, with one clear line."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import warnings
from dataclasses import dataclass, field, replace
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from helpers.ranks.cells import is_learner_file
from helpers.ranks.failures import LaunchError
from helpers.trace.events import Place

_MAX_SOURCE = 10 << 20
_MAX_RELATED_FILES = 50


@dataclass(frozen=True)
class Script:
    """A script in the form needed by the ranks.

    Attributes:
        name: The path as written by the caller, for `sys.argv` and for readers.
        path: The absolute path.
        related: The texts of the modules in its folder that it imports directly or indirectly.
        module: Its module name, if it runs as with `python -m`; "" for a script.
    """

    name: str
    path: Path
    source: bytes
    related: bytes = field(default=b"", repr=False)
    module: str = ""

    def place_of(self, file: str, line: int, function: str) -> Place:
        """Return a line's place for readers, with a path relative to the current folder."""
        # Lines reported by a rank are shown to the reader, so read only Python files.
        is_own = is_learner_file(file) and file.endswith(".py") and file.startswith("/")
        source = linecache.getline(file, line).rstrip("\n") if is_own else ""
        return Place(file, line, function, short_path(file), source)


def read_script(name: str | Path) -> Script:
    """Read a script. Raise LaunchError if the file does not exist or is not Python."""
    shown = str(name)
    path = Path(os.path.abspath(shown))
    if path.is_dir():
        inside = sorted(each.name for each in path.glob("*.py"))[:3]
        example = f" Pass a file in it, such as {shown.rstrip('/')}/{inside[0]}." if inside else ""
        raise LaunchError(f"{shown} is a folder, not a script.{example}")
    try:
        source = path.read_bytes()
    except FileNotFoundError:
        raise LaunchError(f"there is no file {shown}.") from None
    except OSError as error:
        raise LaunchError(f"{shown} cannot be read: {error.strerror}.") from None
    if path.suffix == ".ipynb":
        raise LaunchError(
            f"{shown} is a notebook. Export it first: jupyter nbconvert --to script {shown}"
        )
    tree = _parse(shown, source)
    return Script(shown, path, source, b"\n".join(_related(path.parent, tree)))


def read_module(name: str) -> Script:
    """Read a module, searching the current folder first. Raise LaunchError if it does not exist."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise LaunchError(f"{name} is not the name of a module, such as package.train.")
    found = _find_module(name)
    if found is not None and found.submodule_search_locations is not None:
        name = f"{name}.__main__"
        found = _find_module(name)
    if found is None or not str(found.origin).endswith(".py"):
        raise LaunchError(f"there is no module {name} in this folder or among the packages.")
    path = Path(str(found.origin))
    script = read_script(path)
    related = b"\n".join(_related(Path.cwd(), _parse(script.name, script.source)))
    return replace(script, related=related, module=name)


def _find_module(name: str) -> ModuleSpec | None:
    """Find a module without importing its packages, because only ranks may run their code."""
    found, folders, full_name = None, [os.getcwd(), *sys.path], ""
    for part in name.split("."):
        full_name = f"{full_name}.{part}" if full_name else part
        found = PathFinder.find_spec(full_name, folders)
        if found is None:
            return None
        folders = list(found.submodule_search_locations or ())
    return found


def _parse(name: str, source: bytes) -> ast.Module:
    if len(source) > _MAX_SOURCE:
        raise LaunchError(f"{name} is not a Python script: it has {len(source):,} bytes.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the ranks print these warnings
            return ast.parse(source)
    except SyntaxError as error:
        if error.lineno and not _looks_binary(source):
            line = (error.text or "").strip()
            raise LaunchError(
                f"{name}, line {error.lineno} is not Python: {error.msg}{': ' if line else ''}{line}"
            ) from None
    except (ValueError, RecursionError, MemoryError):
        pass
    raise LaunchError(f"{name} is not a Python script.")


def _looks_binary(source: bytes) -> bool:
    return b"\0" in source[:4096]


def _related(folder: Path, tree: ast.Module) -> list[bytes]:
    """Return the texts of the modules in the script's folder that it imports, directly or indirectly."""
    texts: dict[Path, bytes] = {}
    todo = [tree]
    while todo and len(texts) < _MAX_RELATED_FILES:
        for name in _imported_names(todo.pop()):
            parts = folder.joinpath(*name.split("."))
            for path in (parts.with_suffix(".py"), parts / "__init__.py"):
                if path in texts or not path.is_file():
                    continue
                try:
                    texts[path] = path.read_bytes()
                    todo.append(ast.parse(texts[path]))
                except (OSError, SyntaxError, ValueError):
                    continue
    return list(texts.values())


def _imported_names(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def short_path(file: str) -> str:
    """Return a file's path relative to the current folder, or its name if it is outside that folder."""
    try:
        here = os.getcwd()
    except FileNotFoundError:
        return Path(file).name
    return os.path.relpath(file, here) if file.startswith(here + os.sep) else Path(file).name
