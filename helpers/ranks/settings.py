"""What cells set for their whole process, carried to the ranks: `torch.set_default_dtype(torch.float64)`.

Under mp.spawn and torchrun the module level of a script runs on every rank, and what it sets holds there. A
rank has not run the cells. So the launching process reads what may have been set (`read_settings`), and each
rank sets what differs there (`apply_settings`):

    SETTINGS          one line for each kind: its name, the calls that set it, how to read it, how to set it
    names of modules  `module.NAME = value` in a cell: the value that the name has now
    random numbers    if a cell has seeded them: ranks go on from where the cells have come

Only `launch` and `%%ranks` carry settings. Checks do not: what they find must not depend on other cells.
"""

from __future__ import annotations

import ast
import copyreg
import decimal
import functools
import gc
import importlib
import locale
import logging
import os
import signal
import socket
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from helpers.ranks import own_modules
from helpers.ranks.operators import own_operators
from helpers.ranks.own_modules import is_own
from helpers.ranks.seeds import seeded_states, set_states

_NOTHING = object()


@dataclass(frozen=True)
class Setting:
    """One thing that a process has and that code may set.

    calls: the last words of the calls that set it; it is read only if some cell has such a call. None: it is
    cheap to read, and read at each launch, as a module that a cell imports may set it as well.
    """

    name: str
    read: Callable[[], Any]
    apply: Callable[[Any], object]
    calls: frozenset[str] | None = None


@dataclass(frozen=True)
class Carried:
    """What goes to the ranks: the arguments of `apply_settings`, in a tuple of one, or empty.

    unsent: the names of what cannot go, for the reader.
    """

    values: tuple[
        tuple[Mapping[str, Any], Mapping[tuple[str, str], Any], Mapping[str, Any]], ...
    ] = ()
    unsent: tuple[str, ...] = ()


NONE = Carried()
_TOLD: set[str] = set()
"""What is not on the ranks, by the last note or one before it."""


@dataclass(frozen=True)
class _Scope:
    """What a piece of code may set, all dotted: names of modules, items of dicts there; calls it makes."""

    names: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()

    def __or__(self, other: _Scope) -> _Scope:
        return _Scope(self.names | other.names, self.calls | other.calls, self.items | other.items)


@dataclass(frozen=True)
class _Cell:
    """A cell's own code, and that of each function that it defines, which may never be called here."""

    top: _Scope = _Scope()
    functions: Mapping[str, _Scope] = field(default_factory=dict)

    @property
    def all_calls(self) -> frozenset[str]:
        return self.top.calls.union(*(scope.calls for scope in self.functions.values()))


# --- the table ------------------------------------------------------------------------------------


def _torch() -> Any:
    return sys.modules["torch"]


def _print_options() -> dict[str, Any]:
    return dict(vars(_torch()._tensor_str.PRINT_OPTS))


def _set_print_options(options: Mapping[str, Any]) -> None:
    vars(_torch()._tensor_str.PRINT_OPTS).update(options)


def _deterministic() -> tuple[bool, bool]:
    torch = _torch()
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _set_deterministic(value: tuple[bool, bool]) -> None:
    _torch().use_deterministic_algorithms(value[0], warn_only=value[1])


def _anomalies() -> tuple[bool, bool]:
    torch = _torch()
    return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()


_SDP = ("flash", "mem_efficient", "math", "cudnn")


def _attention() -> list[bool]:
    return [getattr(_torch().backends.cuda, f"{kind}_sdp_enabled")() for kind in _SDP]


def _set_attention(enabled: Sequence[bool]) -> None:
    for kind, value in zip(_SDP, enabled, strict=True):
        getattr(_torch().backends.cuda, f"enable_{kind}_sdp")(value)


def _sharing() -> str:
    return str(_torch().multiprocessing.get_sharing_strategy())


def _safe_globals() -> list[Any]:
    return list(_torch().serialization.get_safe_globals())


def _pytree_nodes() -> list[tuple[Any, ...]]:
    nodes = _torch().utils._pytree.SUPPORTED_NODES
    own = [kind for kind in nodes if getattr(kind, "__module__", "") == "__main__"]
    return [(kind, nodes[kind].flatten_fn, nodes[kind].unflatten_fn) for kind in own]


def _register_nodes(nodes: Sequence[tuple[Any, ...]]) -> None:
    pytree = _torch().utils._pytree
    for kind, flatten, unflatten in nodes:
        if kind not in pytree.SUPPORTED_NODES:
            pytree.register_pytree_node(kind, flatten, unflatten)


_TINY = 5e-324


def _flushes_denormals() -> bool:
    # torch cannot tell. The flag is the processor's own, so it shows in Python's floats as well.
    return _TINY * 1.0 == 0.0


def _interop_threads() -> int:
    return int(_torch().get_num_interop_threads())


def _set_interop_threads(count: int) -> None:
    if _interop_threads() != count:  # it can be set once in a process, even to what it is
        _torch().set_num_interop_threads(count)


def _autocast() -> list[tuple[bool, Any]]:
    torch = _torch()
    return [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")]


def _set_autocast(found: Sequence[tuple[bool, Any]]) -> None:
    torch = _torch()
    for device, (enabled, dtype) in zip(("cpu", "cuda"), found, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


_HOOKS = (
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs",
    "_global_forward_pre_hooks",
)


_HOOK_KINDS = ("forward", "forward_pre", "full_backward", "full_backward_pre", "backward")


def _module_hooks() -> dict[str, dict[int, Any]]:
    module = vars(_torch().nn.modules.module)
    return {name: dict(module[name]) for name in _HOOKS if module[name]}


def _set_module_hooks(hooks: Mapping[str, Mapping[int, Any]]) -> None:
    module = vars(_torch().nn.modules.module)
    for name in _HOOKS:
        module[name].clear()
        module[name].update(hooks.get(name, {}))


def _handled_signals() -> dict[int, Any]:
    return {int(number): signal.getsignal(number) for number in signal.valid_signals()}


_SIGNALS = _handled_signals()
"""Handlers that Python and the notebook's own machinery have set up."""


def _own_handlers() -> dict[int, Any]:
    # A script may have set one before it imported the course. While ranks run, SIGINT is the engine's.
    return {
        number: handler
        for number, handler in _handled_signals().items()
        if (module := str(getattr(handler, "__module__", ""))) == "__main__"
        or (handler is not _SIGNALS[number] and not module.startswith("helpers."))
    }


def _handle_signals(found: Mapping[int, Any]) -> None:
    for number, handler in found.items():
        signal.signal(number, handler)


def _limits() -> tuple[Any, ...]:
    return (
        sys.getswitchinterval(),
        sys.get_int_max_str_digits(),
        socket.getdefaulttimeout(),
        gc.isenabled(),
        gc.get_threshold(),
    )


def _set_limits(found: tuple[Any, ...]) -> None:
    interval, digits, timeout, collects, threshold = found
    sys.setswitchinterval(interval)
    sys.set_int_max_str_digits(digits)
    socket.setdefaulttimeout(timeout)
    (gc.enable if collects else gc.disable)()
    gc.set_threshold(*threshold)


def _numpy() -> Any:
    import numpy

    return numpy


def _start_method() -> str | None:
    import multiprocessing

    return multiprocessing.get_start_method(allow_none=True)


def _set_start_method(method: str | None) -> None:
    import multiprocessing

    multiprocessing.set_start_method(method, force=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_FILTERS = list(warnings.filters)
"""Those of Python, IPython and what was imported until now: a new process has its own."""


def _filters() -> list[Any]:
    """Return what was added, and None before it if resetwarnings() has taken away what was there."""
    added = [each for each in warnings.filters if each not in _FILTERS]
    was_reset = not any(each in warnings.filters for each in _FILTERS)
    return [None, *added] if was_reset else added


def forget_filters() -> None:
    """Take away what was added to the filters of warnings since this module was imported."""
    vars(warnings)["filters"][:] = [
        each for each in _FILTERS if each in warnings.filters
    ] or _FILTERS
    vars(warnings)["_filters_mutated"]()


def _add_filters(filters: Sequence[Any]) -> None:
    if filters[:1] == [None]:
        filters = filters[1:]
        vars(warnings)["filters"].clear()
    vars(warnings)["filters"][:0] = filters
    vars(warnings)["_filters_mutated"]()


def _reducers() -> dict[type, Any]:
    return {
        kind: reduce
        for kind, reduce in copyreg.dispatch_table.items()
        if "__main__" in (kind.__module__, getattr(reduce, "__module__", ""))
    }


_HANDLERS = tuple(
    handler
    for logger in (logging.root, *logging.root.manager.loggerDict.values())
    for handler in getattr(logger, "handlers", ())
)
"""Handlers that the notebook's own machinery has set up."""


def own_loggers() -> Iterator[tuple[str, logging.Logger]]:
    """Yield root and the loggers that are not a library's: a rank imports those libraries itself."""
    for name, logger in {"": logging.root, **logging.root.manager.loggerDict}.items():
        library = sys.modules.get(name.partition(".")[0]) if name else None
        is_installed = "site-packages" in str(getattr(library, "__file__", None))
        if isinstance(logger, logging.Logger) and not is_installed:
            yield name, logger


def _levels() -> tuple[int, dict[str, int]]:
    return logging.root.manager.disable, {n: log.level for n, log in own_loggers() if log.level}


def _set_levels(found: tuple[int, Mapping[str, int]]) -> None:
    logging.disable(found[0])
    for name, level in found[1].items():
        logging.getLogger(name).setLevel(level)


def _handlers() -> list[tuple[str, Any]]:
    """Describe what cells have added. Raise ValueError for a handler that a rank cannot make for itself."""
    return [
        (name, _described(handler))
        for name, logger in own_loggers()
        for handler in logger.handlers
        if handler not in _HANDLERS and not isinstance(handler, logging.NullHandler)
    ]


def _described(handler: logging.Handler) -> tuple[Any, ...]:
    if type(handler) is logging.StreamHandler:
        where = "stdout" if handler.stream is sys.stdout else "stderr"
        return where, handler.level, handler.formatter, None
    if type(handler) is logging.FileHandler:
        # Appending, whatever its mode: the file is there already, and the notebook goes on writing to it.
        how = (handler.baseFilename, "a", handler.encoding)
        return "file", handler.level, handler.formatter, how
    raise ValueError(f"a {type(handler).__name__}")


def _add_handlers(found: Sequence[tuple[str, Any]]) -> None:
    for name, (where, level, formatter, file) in found:
        made = logging.FileHandler(*file) if file else logging.StreamHandler(getattr(sys, where))
        made.setLevel(level)
        made.setFormatter(formatter)
        logging.getLogger(name).addHandler(made)


_LOGS = frozenset({"basicConfig", "dictConfig", "fileConfig"})


def _of_torch(name: str, read: str, apply: str) -> Setting:
    return Setting(name, lambda: getattr(_torch(), read)(), lambda v: getattr(_torch(), apply)(v))


def _calls(*names: str) -> frozenset[str]:
    return frozenset(names)


SETTINGS = (
    _of_torch("the default dtype", "get_default_dtype", "set_default_dtype"),
    _of_torch("the default device", "get_default_device", "set_default_device"),
    _of_torch("grad mode", "is_grad_enabled", "set_grad_enabled"),
    _of_torch(
        "float32 matmul precision", "get_float32_matmul_precision", "set_float32_matmul_precision"
    ),
    _of_torch("warn_always", "is_warn_always_enabled", "set_warn_always"),
    Setting("deterministic algorithms", _deterministic, _set_deterministic),
    Setting("anomaly detection", _anomalies, lambda v: _torch().autograd.set_detect_anomaly(*v)),
    Setting("print options of torch", _print_options, _set_print_options),
    Setting("attention backends", _attention, _set_attention),
    Setting(
        "the sharing strategy",
        _sharing,
        lambda v: _torch().multiprocessing.set_sharing_strategy(v),
    ),
    Setting(
        "the number of threads",
        lambda: _torch().get_num_threads(),
        lambda v: _torch().set_num_threads(v),
        _calls("set_num_threads"),
    ),
    Setting(
        "the number of inter-op threads",
        _interop_threads,
        _set_interop_threads,
        _calls("set_num_interop_threads"),
    ),
    Setting(
        "flushing of denormals",
        _flushes_denormals,
        lambda v: _torch().set_flush_denormal(v),
        _calls("set_flush_denormal"),
    ),
    Setting("autocast", _autocast, _set_autocast),
    Setting(
        "hooks of all modules",
        _module_hooks,
        _set_module_hooks,
        _calls(*(f"register_module_{kind}_hook" for kind in _HOOK_KINDS)),
    ),
    Setting("signal handlers", _own_handlers, _handle_signals, _calls("signal")),
    Setting("limits of the interpreter", _limits, _set_limits),
    Setting(
        "safe globals",
        _safe_globals,
        lambda v: _torch().serialization.add_safe_globals(v),
        _calls("add_safe_globals"),
    ),
    Setting(
        "pytree nodes",
        _pytree_nodes,
        _register_nodes,
        _calls("register_pytree_node", "_register_pytree_node", "register_dataclass"),
    ),
    Setting(
        "operators",
        own_operators,
        lambda _: None,  # they were made when they were unpickled
        _calls("custom_op"),
    ),
    Setting(
        "the start method",
        _start_method,
        _set_start_method,
        _calls("set_start_method"),
    ),
    Setting(
        "numpy's error handling",
        lambda: _numpy().geterr(),
        lambda v: _numpy().seterr(**v),
        _calls("seterr", "errstate"),
    ),
    Setting(
        "numpy's print options",
        lambda: _numpy().get_printoptions(),
        lambda v: _numpy().set_printoptions(**v),
        _calls("set_printoptions", "printoptions"),
    ),
    Setting(
        "the decimal context",
        lambda: decimal.getcontext().copy(),
        decimal.setcontext,
        _calls("getcontext", "setcontext", "localcontext"),
    ),
    Setting(
        "warning filters",
        _filters,
        _add_filters,
        _calls("filterwarnings", "simplefilter", "resetwarnings"),
    ),
    Setting("levels of logging", _levels, _set_levels, _LOGS | _calls("setLevel", "disable")),
    Setting("handlers of logging", _handlers, _add_handlers, _LOGS | _calls("addHandler")),
    Setting(
        "the recursion limit",
        sys.getrecursionlimit,
        sys.setrecursionlimit,
        _calls("setrecursionlimit"),
    ),
    Setting("the umask", _umask, os.umask, _calls("umask")),
    Setting(
        "the locale",
        lambda: locale.setlocale(locale.LC_ALL),
        lambda v: locale.setlocale(locale.LC_ALL, v),
        _calls("setlocale"),
    ),
    Setting(
        "reducers of copyreg",
        _reducers,
        copyreg.dispatch_table.update,
        _calls("pickle"),
    ),
)


def _open_contexts() -> Iterator[str]:
    """Name the `with` blocks around a launch that hold in this process only: objects that no other has.

    `no_grad`, `autocast` and the like are in SETTINGS, and the context of a device is the default device.
    """
    torch = _torch()
    dispatch = importlib.import_module("torch.utils._python_dispatch")
    if torch.is_inference_mode_enabled():
        yield "inference mode"
    if torch._C._autograd._top_saved_tensors_default_hooks(True) is not None:
        yield "hooks of saved tensors"
    modes = torch.overrides._get_current_function_mode_stack()
    for mode in (*modes, *dispatch._get_current_dispatch_mode_stack()):
        if type(mode).__name__ != "DeviceContext":
            yield type(mode).__name__


_NOT_CARRIED = {
    "seterrcall": "numpy's error callback",
    "showwarning": "warnings.showwarning",
}
"""Calls that set what no process can read."""


# --- what the cells say ---------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def _scan(text: str) -> _Cell:
    """Read from a cell's text what it may set. Never raises: a cell may hold anything."""
    try:
        tree = ast.parse(text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        return _Cell(_scope(tree.body), {each.name: _scope(each.body) for each in functions})
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Cell()


def _scope(body: Iterable[ast.stmt]) -> _Scope:
    """Read what these statements set themselves, without the functions that they define."""
    names: set[str] = set()
    calls: set[str] = set()
    items: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting += getattr(node, "decorator_list", [])
            continue
        if isinstance(node, ast.Assign):
            names |= {_dotted(t) for t in node.targets if isinstance(t, ast.Attribute)}
            items |= {_dotted(t.value) for t in node.targets if isinstance(t, ast.Subscript)}
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and isinstance(
            node.target, ast.Attribute
        ):
            names.add(_dotted(node.target))
        elif isinstance(node, ast.Call):
            calls.add(_dotted(node.func))
            names.add(_by_setattr(node))
        waiting += ast.iter_child_nodes(node)
    return _Scope(
        frozenset(names - {""}), frozenset(calls - {""}), frozenset(i for i in items if "." in i)
    )


def _by_setattr(call: ast.Call) -> str:
    if isinstance(call.func, ast.Name) and call.func.id == "setattr" and len(call.args) == 3:
        owner, name = call.args[:2]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and _dotted(owner):
            return f"{_dotted(owner)}.{name.value}"
    return ""


def _dotted(node: ast.AST) -> str:
    """Return "a.b.c" for such an expression, and "" for any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Call):  # logging.getLogger("x").setLevel: its last word counts
        return ".".join(["()", *reversed(parts)])
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def _resolved(name: str, namespace: Mapping[str, Any]) -> Any:
    first, _, rest = name.partition(".")
    return _within(namespace.get(first, _NOTHING), rest) if rest else namespace.get(first, _NOTHING)


def _within(owner: Any, path: str) -> Any:
    for part in path.split("."):
        try:
            owner = getattr(owner, part)
        except Exception:  # it is not there, or torch refuses to tell
            return _NOTHING
    return owner


def _module_names(names: Iterable[str], namespace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield module and path of each name that cells have set in a module, or in what a module holds."""
    for name in sorted(names):
        first, *path = name.split(".")
        owner = namespace.get(first)
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


# --- both sides -----------------------------------------------------------------------------------


def read_settings(texts: Sequence[str], namespace: Mapping[str, Any]) -> Carried:
    """Read what has been set in this process. texts: of the cells that ran; namespace: their variables."""
    if "torch" not in sys.modules:
        return Carried()
    cells = [_scan(text) for text in texts]
    functions = {name: scope for cell in cells for name, scope in cell.functions.items()}
    run = functools.reduce(_Scope.__or__, (cell.top for cell in cells), _Scope())
    for name in run.calls & functions.keys():
        run |= functions[name]
    # A function of the learner's own module may make any of its calls: what they set is read then.
    calls = run.calls.union(*(_scan(text).all_calls for text in own_modules.sources()))
    words = {name.rpartition(".")[2] for name in calls}
    unread = [said for word, said in _NOT_CARRIED.items() if word in words]
    unread += _open_contexts()
    found = {}
    for setting in SETTINGS:
        if setting.calls is None or setting.calls & words:
            try:
                found[setting.name] = setting.read()
            except Exception:  # torch refuses to tell what was set in two ways
                if setting.calls is not None:
                    unread.append(setting.name)
    assigned = {}
    for module, path in _module_names(run.names, namespace):
        if (value := _within(sys.modules[module], path)) is not _NOTHING:
            assigned[module, path] = value
    for module, path in _module_names(run.items, namespace):
        held = _within(sys.modules[module], path)
        # Of a library's dict only what the learner put there: its own is on the rank as well.
        if type(held) is dict and (
            own := {k: v for k, v in held.items() if is_own(k) or is_own(v)}
        ):
            assigned[module, path] = own
    seeds = (_resolved(name, namespace) for name in run.calls if name.endswith("seed"))
    states = seeded_states([each for each in seeds if callable(each)], words)
    assigned |= {(module, name): value for module, name, value in own_modules.changed()}
    unsent = _sendable(found, assigned)
    return Carried(((found, assigned, states),), (*unsent, *unread))


def news(settings: Carried) -> tuple[str, ...]:
    """Return what the reader of the next Run must know of these settings, and has not been told before."""
    new = [name for name in settings.unsent if name not in _TOLD]
    _TOLD.intersection_update(settings.unsent)  # what is set again later is told again
    _TOLD.update(new)
    return (f"Set in the kernel, not on the ranks: {', '.join(new)}.",) if new else ()


def _sendable(found: dict[str, Any], assigned: dict[tuple[str, str], Any]) -> list[str]:
    """Take out what cannot be sent, and return its names."""
    if _goes((found, assigned)):
        return []
    unsent = [name for name, value in found.items() if not _goes(value)]
    odd = [key for key, value in assigned.items() if not _goes(value)]
    for name in unsent:
        del found[name]
    for key in odd:
        del assigned[key]
    return [*unsent, *(".".join(key) for key in odd)]


def _goes(value: object) -> bool:
    from helpers.ranks.sending import dumps

    try:
        dumps(value)
    except Exception:  # pickling runs the learner's own code, which may raise anything
        return False
    return True


def apply_settings(
    found: Mapping[str, Any], assigned: Mapping[tuple[str, str], Any], states: Mapping[str, Any]
) -> None:
    """Set in this rank what differs from what was read. Modules are imported if need be."""
    for setting in SETTINGS:
        value = found.get(setting.name, _NOTHING)
        if value is not _NOTHING and not _same(setting.read(), value):
            setting.apply(value)
    for (module, path), value in assigned.items():
        *owners, name = path.split(".")
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        held = getattr(owner, name, None)
        if type(held) is dict and type(value) is dict:
            held.update(value)  # other modules may have imported this very dict
        else:
            setattr(owner, name, value)
    set_states(states)


def _same(mine: Any, other: Any) -> bool:
    return repr(mine) == repr(other) if isinstance(mine, decimal.Context) else bool(mine == other)
