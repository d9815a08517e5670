"""Remember the values in the learner's modules after their imports, and find later changes.

    import my_model
    my_model.SCALE = 10
    my_model.configure(width=64)  # sets a name in `my_model`

Under mp.spawn and torchrun every rank runs these lines. Here, a rank imports the module only from its file.
So a kernel remembers each module's values after its import, and sends the changed values.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from typing import Any

from helpers.ranks.cells import is_learner_file

# If a value has more parts than this, or is nested deeper, the rest is compared only by identity, because
# objects may refer to one another in a cycle.
_MAX_PARTS, _MAX_LEVELS = 2_000, 40
_MISSING = object()
# module -> the values of its names after its import
_IMPORTED_VALUES: dict[str, dict[str, Any]] = {}
# module -> times, in nanoseconds, of its file's last change before its import and of the reported change
_CHANGED_AT: dict[str, int] = {}
_REPORTED_CHANGE: dict[str, int] = {}


class _RecordingLoader(SourceFileLoader):
    """Imports a learner's file as Python does, and remembers the module's values."""

    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        if is_learner_module(module):
            _record_module(module.__name__, module)


def _find_module(folder: str) -> Any:
    if not is_learner_file(f"{folder}/"):
        raise ImportError(folder)  # Python then tries the next hook.
    loaders: list[tuple[Any, list[str]]] = [
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (_RecordingLoader, SOURCE_SUFFIXES),
    ]
    return FileFinder.path_hook(*loaders)(folder)


def remember_imports() -> None:
    """Remember the values of the learner's modules: both those already imported and those imported later."""
    for name, module in list(sys.modules.items()):
        if name != "__main__" and name not in _IMPORTED_VALUES and is_learner_module(module):
            _record_module(name, module)
    if _find_module not in sys.path_hooks:
        sys.path_hooks.insert(0, _find_module)
        for folder in list(sys.path_importer_cache):
            if is_learner_file(f"{folder}/"):
                del sys.path_importer_cache[folder]


def _record_module(name: str, module: types.ModuleType) -> None:
    _IMPORTED_VALUES[name], _CHANGED_AT[name] = _module_values(module), _modification_time(module)


def _modification_time(module: types.ModuleType) -> int:
    try:
        return os.stat(module.__file__ or "").st_mtime_ns
    except OSError:
        return 0


def notes_for_new_ranks() -> tuple[str, ...]:
    """Return a note, once per change, for each file that ranks would import differently from the notebook."""
    notes = []
    for file, name, changed_at in _module_files():
        if _CHANGED_AT[name] != changed_at != _REPORTED_CHANGE.get(name):
            _REPORTED_CHANGE[name] = changed_at
            notes.append(
                f"{file} has changed since the notebook imported it. Ranks import the new version; so "
                f"does the notebook after importlib.reload({name})."
            )
    return tuple(notes)


def notes_for_live_ranks(known_times: dict[str, int]) -> tuple[str, ...]:
    """Return a note, once per change, for each changed file that live ranks may already have imported.

    Args:
        known_times: The time of each file's last change, as seen by these ranks' cells. This mapping is
            updated.
    """
    notes = []
    for file, name, changed_at in _module_files():
        if known_times.setdefault(name, changed_at) != changed_at:
            known_times[name] = changed_at
            notes.append(
                f"{file} has changed. These ranks keep the version that they imported; --fresh starts "
                "new ranks."
            )
    return tuple(notes)


def _module_files() -> Iterator[tuple[str, str, int]]:
    """Yield the file, the name and the time of the last change of each of the learner's modules."""
    for name in list(_CHANGED_AT):
        if (module := sys.modules.get(name)) is not None:
            yield os.path.basename(module.__file__ or name), name, _modification_time(module)


def _module_values(module: types.ModuleType) -> dict[str, Any]:
    return {
        name: (value, _fingerprint(value))
        for name, value in vars(module).items()
        if not name.startswith("__")
    }


def _fingerprint(value: object) -> Any:
    """Return a fingerprint that stays equal until something inside `value` is changed in place."""
    return _fingerprint_part(value, [_MAX_PARTS], _MAX_LEVELS)


def _fingerprint_part(value: object, remaining: list[int], levels: int) -> Any:
    remaining[0] -= 1
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return value
    if remaining[0] > 0 and levels > 0:
        fingerprint = functools.partial(_fingerprint_part, remaining=remaining, levels=levels - 1)
        if isinstance(value, Mapping):
            return [(fingerprint(k), fingerprint(v)) for k, v in list(value.items())]
        if isinstance(value, (list, tuple, set, frozenset, bytearray)):
            return [type(value), *(fingerprint(part) for part in list(value))]
        if is_learner_object(type(value)) or isinstance(value, types.SimpleNamespace):
            return [id(value), fingerprint(getattr(value, "__dict__", None))]
    # A tensor's _version counts its changes in place.
    return id(value), getattr(value, "_version", 0)


def changed_values() -> Iterator[tuple[str, str, Any]]:
    """Yield the module, name and value of each change since the module's import."""
    for name, imported in list(_IMPORTED_VALUES.items()):
        module = sys.modules.get(name)
        if module is None:
            continue
        for key, value in list(vars(module).items()):
            if key.startswith("__") or isinstance(value, types.ModuleType):
                continue  # A submodule may have been imported later.
            previous = imported.get(key, (_MISSING, None))
            if previous[0] is not value or previous[1] != _fingerprint(value):
                yield name, key, value


def module_sources() -> list[str]:
    """Return the source texts of the learner's modules imported in this process."""
    files = (sys.modules[name].__file__ for name in list(_IMPORTED_VALUES) if name in sys.modules)
    return ["".join(linecache.getlines(file)) for file in files if file]


def is_learner_object(obj: object) -> bool:
    """Return whether a class or function is the learner's, from a cell or a file."""
    module = sys.modules.get(str(getattr(obj, "__module__", "")))
    return module is not None and (module.__name__ == "__main__" or is_learner_module(module))


@dataclass
class _LearnerModules:
    """The result of the last search in `sys.modules`, and the module that had been imported last."""

    names: list[str] = field(default_factory=list)
    last_module: str = ""


_learner_modules = _LearnerModules()


def learner_module_names() -> list[str]:
    """Return the names of the learner's modules imported by this process, except `__main__`.

    Only modules imported since the last call are examined. So rank servers call this function before they
    fork ranks: a rank that touched all of its two thousand modules would copy the memory of most of them.
    """
    found = _learner_modules
    # Without a function in Python, this is one step for other threads, which may be importing modules.
    new = list(itertools.takewhile(found.last_module.__ne__, reversed(sys.modules)))
    if new:
        found.last_module = new[0]
    found.names += [
        name
        for name in reversed(new)
        if name not in {"__main__", *found.names}
        and (module := sys.modules.get(name)) is not None
        and is_learner_module(module)
    ]
    found.names = [name for name in found.names if name in sys.modules]
    return list(found.names)


def is_learner_module(module: types.ModuleType) -> bool:
    """Return whether a module is one of the learner's files."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and _is_learner_source(file)


@functools.cache
def _is_learner_source(file: str) -> bool:
    return file.endswith(".py") and is_learner_file(file)
