"""Send process-wide settings made in cells to the ranks, for example `torch.set_default_dtype(...)`.

Under mp.spawn and torchrun, every rank runs the module level of the script and so applies its settings. Here,
however, ranks have not run the cells. So the launching process reads the settings that cells may have changed
(`read_settings`), and each rank applies those that differ (`apply_settings`):

    SETTINGS          one entry for each kind, in `process_settings`
    names of modules  for `module.NAME = value` in a cell: the name's current value
    random numbers    if a cell has seeded them: ranks continue from the kernel's state

Only `launch` and `%%ranks` send settings, because the result of a check must not depend on other cells.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks import own_modules
from helpers.ranks.process_settings import SETTINGS, UNSENT_CALLS, loaded_torch
from helpers.ranks.seeds import seeded_states, set_states

_MISSING = object()


@dataclass(frozen=True)
class SentSettings:
    """The settings sent to the ranks: a tuple whose only element is the arguments of `apply_settings`.

    Without settings, the tuple is empty.

    unsent: the readable names of settings that cannot be sent.
    """

    values: tuple[
        tuple[Mapping[str, Any], Mapping[tuple[str, str], Any], Mapping[str, Any]], ...
    ] = ()
    unsent: tuple[str, ...] = ()


NO_SETTINGS = SentSettings()
# Names reported as missing on the ranks by the latest note.
_reported: set[str] = set()


@dataclass(frozen=True)
class _Effects:
    """Possible effects of a piece of code on settings: assigned names in modules (dotted), and calls."""

    names: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()

    def __or__(self, other: _Effects) -> _Effects:
        return _Effects(self.names | other.names, self.calls | other.calls)


def _open_contexts() -> Iterator[str]:
    """Yield the names of `with` blocks around a launch that have no effect outside this process.

    `no_grad` is excluded because it is in SETTINGS, and so is a device's context, which is the default
    device.
    """
    torch = loaded_torch()
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    if torch.is_inference_mode_enabled():
        yield "inference mode"
    if torch.is_autocast_enabled("cpu"):
        yield "autocast"
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        yield "hooks of saved tensors"
    modes = torch.overrides._get_current_function_mode_stack()
    for mode in (*modes, *dispatch._get_current_dispatch_mode_stack()):
        if type(mode).__name__ != "DeviceContext":
            yield type(mode).__name__


@functools.lru_cache(maxsize=4096)
def _read_effects(text: str) -> tuple[_Effects, Mapping[str, _Effects]]:
    """Read the possible effects of a cell's top-level code, and of each function it defines, by name.

    Functions are separate because they may never be called. Never raises, whatever text the cell contains.
    """
    try:
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        return _effects_of(tree.body), {
            function.name: _effects_of(function.body) for function in functions
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Effects(), {}


def _effects_of(body: Iterable[ast.stmt]) -> _Effects:
    """Read the effects of these statements, but not the effects of the functions that they define."""
    names: set[str] = set()
    calls: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += getattr(node, "decorator_list", [])
            continue
        if isinstance(node, ast.Assign):
            names |= {
                _dotted_name(target) for target in node.targets if isinstance(target, ast.Attribute)
            }
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            names.add(_dotted_name(node.target))
        elif isinstance(node, ast.Call):
            calls.add(_dotted_name(node.func))
        todo += ast.iter_child_nodes(node)
    return _Effects(frozenset(names - {""}), frozenset(calls - {""}))


def _dotted_name(node: ast.AST) -> str:
    """Return "a.b.c" for an expression of this form, and "" for any other expression."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    # In logging.getLogger("x").setLevel, only the last word matters.
    if isinstance(node, ast.Call):
        return ".".join(["()", *reversed(parts)])
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _resolve_path(owner: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            owner = getattr(owner, part)
        except Exception:  # The setting does not exist, or torch refuses to read it.
            return _MISSING
    return owner


def _module_names(names: Iterable[str], namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the module and path of each name that cells have set in a module or in an object inside it."""
    for name in sorted(names):
        variable, *path = name.split(".")
        owner = namespace.get(variable)
        if isinstance(owner, type) and owner.__module__ != "__main__":
            path = [*owner.__qualname__.split("."), *path]
            owner = sys.modules.get(owner.__module__)
        while len(path) > 1 and isinstance(
            inner := getattr(owner, path[0], None), types.ModuleType
        ):
            owner, path = inner, path[1:]
        if (
            isinstance(owner, types.ModuleType)
            and owner.__name__ not in {"__main__", "sys"}
            and sys.modules.get(owner.__name__) is owner
        ):
            yield owner.__name__, ".".join(path)


def read_settings(texts: Sequence[str], namespace: Mapping[str, Any]) -> SentSettings:
    """Read this process's settings, guided by the texts of the cells that ran and by their variables."""
    if "torch" not in sys.modules:
        return SentSettings()
    cells = [_read_effects(text) for text in texts]
    functions = {
        name: effects_of_code
        for _, by_function in cells
        for name, effects_of_code in by_function.items()
    }
    effects = functools.reduce(_Effects.__or__, (own for own, _ in cells), _Effects())
    for name in effects.calls & functions.keys():
        effects |= functions[name]
    call_names = {name.rpartition(".")[2] for name in effects.calls}
    unsent = [*(f"{word}()" for word in sorted(UNSENT_CALLS & call_names)), *_open_contexts()]
    # A function of a learner's module may run any of the module's calls, so read all settings that these
    # calls can change.
    for own, by_function in map(_read_effects, own_modules.module_sources()):
        for effects_of_code in (own, *by_function.values()):
            call_names |= {name.rpartition(".")[2] for name in effects_of_code.calls}
    settings = {
        item.name: item.read() for item in SETTINGS if item.calls is None or item.calls & call_names
    }
    assigned = {
        (module, path): value
        for module, path in _module_names(effects.names, namespace)
        if (value := _resolve_path(sys.modules[module], path)) is not _MISSING
    }
    seeds = (_called_function(name, namespace) for name in effects.calls if name.endswith("seed"))
    states = seeded_states([item for item in seeds if callable(item)], call_names)
    assigned |= {(module, name): value for module, name, value in own_modules.changed_values()}
    for key in [key for key, value in assigned.items() if not _can_be_sent(value)]:
        del assigned[key]
        unsent.append(".".join(key))
    return SentSettings(((settings, assigned, states),), tuple(unsent))


def _called_function(name: str, namespace: Mapping[str, Any]) -> Any:
    variable, _, path = name.partition(".")
    owner = namespace.get(variable, _MISSING)
    return _resolve_path(owner, path) if path else owner


def unsent_note(settings: SentSettings) -> tuple[str, ...]:
    """Return a note about settings that could not be sent and have not been reported yet."""
    new = [name for name in settings.unsent if name not in _reported]
    _reported.intersection_update(
        settings.unsent
    )  # If a setting is changed again later, report it again.
    _reported.update(new)
    return (f"Set in the kernel, not on the ranks: {', '.join(new)}.",) if new else ()


def _can_be_sent(value: object) -> bool:
    from helpers.ranks.sending import dumps

    try:
        dumps(value)
    except Exception:  # Pickling runs the learner's code, which may raise any exception.
        return False
    return True


def apply_settings(
    settings: Mapping[str, Any], assigned: Mapping[tuple[str, str], Any], states: Mapping[str, Any]
) -> None:
    """Apply the settings that differ in this rank. Modules are imported as needed."""
    for setting in SETTINGS:
        value = settings.get(setting.name, _MISSING)
        if value is not _MISSING and setting.read() != value:
            setting.apply(value)
    for (module, path), value in assigned.items():
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, name, value)
    set_states(states)
