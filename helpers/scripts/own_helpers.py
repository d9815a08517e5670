"""Make a script import its own module called `helpers` instead of the course's package of that name.

If the script's folder has such a module, the course's modules are removed from `sys.modules`. They are
restored while a function of the course imports a module of the course.
"""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

_NAME = __name__.partition(".")[0]
_COURSE_FOLDER = str(Path(__file__).parents[1])


def install(folder: Path) -> None:
    """Make `import helpers` in the script's files import the script's module, if its folder has one."""
    if not ((folder / f"{_NAME}.py").exists() or (folder / _NAME).is_dir()):
        return
    if folder == Path(_COURSE_FOLDER).parent:
        return  # the script imports the course
    course, lock = dict(_modules()), threading.RLock()
    for name in course:
        del sys.modules[name]
    original = builtins.__import__

    @contextmanager
    def course_modules() -> Iterator[None]:
        with lock:
            own = dict(_modules())
            _replace(course)
            try:
                yield
            finally:
                course.update(_modules())
                _replace(own)

    def import_module(
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> ModuleType:
        if name.partition(".")[0] != _NAME or level:
            return original(name, globals, locals, fromlist, level)
        if not str((globals or {}).get("__file__", "")).startswith(_COURSE_FOLDER):
            return original(name, globals, locals, fromlist, level)
        with course_modules():
            return original(name, globals, locals, fromlist, level)

    builtins.__import__ = import_module


def _modules() -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name == _NAME or name.startswith(f"{_NAME}.")
    }


def _replace(modules: Mapping[str, ModuleType]) -> None:
    for name in _modules():
        del sys.modules[name]
    sys.modules.update(modules)
