"""Copy the modules needed by ranks into a folder, without cases, advice, solutions and grader.

`StagedFiles` is made once for a batch. In every sandbox, its folder appears in place of the course.
"""

from __future__ import annotations

import ast
import compileall
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path

from helpers.checks.registry import exercises
from helpers.grading.sandbox.cleanup import hold_folder, remove_unheld_folders

_ROOT = Path(__file__).parents[3]
_PREFIX = "real-ranks-course-"
_SERVER = (
    "helpers.vocabulary",  # imported by the package itself
    "helpers.ranks.server",
    "helpers.ranks.worker",
    "helpers.trace.kernels",
    "helpers.checks.driver",
    "helpers.grading.sandbox.inside",
    "helpers.grading.sandbox.template_inside",
)
# Folders with nothing to hide, because answers may import their contents from `helpers`.
_WHOLE_PACKAGES = (
    "helpers/views",
    "helpers/ranks",
    "helpers/jobs",
    "helpers/trace",
    "helpers/data",
)

# A sandbox's /etc, except for the linker's settings. None of it comes from this machine.
_ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "passwd": "root:x:0:0:::\nlearner:x:65534:65534::/tmp:/bin/sh\n",
    "group": "root:x:0:\nlearner:x:65534:\n",
}


class StagedFiles:
    """A copy of the modules that ranks may import. Use it as a context manager."""

    def __init__(self) -> None:
        remove_unheld_folders(_PREFIX)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._hold = ExitStack()
        self._hold.enter_context(hold_folder(self.folder))
        for path in sorted(needed_files()):
            target = self.folder / path.relative_to(_ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            # keep the modification time, which shows Python whether bytecode is up to date
            shutil.copy2(path, target)
            with suppress(FileNotFoundError):
                compiled = Path(cache_from_source(str(target)))
                compiled.parent.mkdir(exist_ok=True)
                shutil.copyfile(cache_from_source(str(path)), compiled)
        # Make the missing bytecode here: sandboxes cannot write any, so each of them would compile the course
        # again.
        compileall.compile_dir(self.folder, quiet=2)
        self.etc = self.folder / "etc"
        self.etc.mkdir()
        for name, text in _ETC.items():
            (self.etc / name).write_text(text, encoding="utf-8")
        for path in (self.folder, *self.folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)

    def __enter__(self) -> StagedFiles:
        return self

    def __exit__(self, *args: object) -> None:
        self._hold.close()


@cache
def needed_files() -> frozenset[Path]:
    """Return the files of all modules that ranks may import."""
    starts = {*_SERVER, *(e.driver.__module__ for e in exercises().values() if e.driver)}
    found = {path for folder in _WHOLE_PACKAGES for path in (_ROOT / folder).glob("*.py")}
    found |= {*(_ROOT / "helpers/data").glob("*.txt")}  # read by ranks of 23.4
    todo = [name for name in starts if name]
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        path = _file_of(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        found.add(path)
        if name != "helpers":  # `helpers` lists all modules, but imports only those that are used
            todo += _imports(path)
        todo.append(name.rpartition(".")[0])
    return frozenset(found)


def _file_of(name: str) -> Path | None:
    path = _ROOT.joinpath(*name.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if name and candidate.is_file():
            return candidate
    return None


def _imports(path: Path) -> Iterator[str]:
    """Yield the course's modules that a file imports, or mentions in a string (for import_module)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("helpers."):
            yield str(node.value).partition(":")[0].rstrip(".")
