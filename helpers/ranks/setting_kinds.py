"""Every kind of setting that a process may have, with how to read it and how to set it.

`settings` carries them from the cells to the ranks; `neutral` takes them back for the time of a check.
"""

from __future__ import annotations

import copyreg
import decimal
import gc
import importlib
import locale
import logging
import multiprocessing
import os
import signal
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.operators import own_operators


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


def torch_here() -> Any:
    return sys.modules["torch"]


def _deterministic() -> tuple[bool, bool]:
    torch = torch_here()
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


_SDP = ("flash", "mem_efficient", "math", "cudnn")


def _attention() -> list[bool]:
    return [getattr(torch_here().backends.cuda, f"{kind}_sdp_enabled")() for kind in _SDP]


def _set_attention(enabled: Sequence[bool]) -> None:
    for kind, value in zip(_SDP, enabled, strict=True):
        getattr(torch_here().backends.cuda, f"enable_{kind}_sdp")(value)


def _pytree_nodes() -> list[tuple[Any, ...]]:
    nodes = torch_here().utils._pytree.SUPPORTED_NODES
    own = [kind for kind in nodes if getattr(kind, "__module__", "") == "__main__"]
    return [(kind, nodes[kind].flatten_fn, nodes[kind].unflatten_fn) for kind in own]


def _register_nodes(nodes: Sequence[tuple[Any, ...]]) -> None:
    pytree = torch_here().utils._pytree
    for kind, flatten, unflatten in nodes:
        if kind not in pytree.SUPPORTED_NODES:
            pytree.register_pytree_node(kind, flatten, unflatten)


_TINY = 5e-324


def _flushes_denormals() -> bool:
    # torch cannot tell. The flag is the processor's own, so it shows in Python's floats as well.
    return _TINY * 1.0 == 0.0


def _interop_threads() -> int:
    return int(torch_here().get_num_interop_threads())


def _set_interop_threads(count: int) -> None:
    if _interop_threads() != count:  # it can be set once in a process, even to what it is
        torch_here().set_num_interop_threads(count)


def _autocast() -> list[tuple[bool, Any]]:
    torch = torch_here()
    return [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")]


def _set_autocast(found: Sequence[tuple[bool, Any]]) -> None:
    torch = torch_here()
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
    module = vars(torch_here().nn.modules.module)
    return {name: dict(module[name]) for name in _HOOKS if module[name]}


def _set_module_hooks(hooks: Mapping[str, Mapping[int, Any]]) -> None:
    module = vars(torch_here().nn.modules.module)
    for name in _HOOKS:
        module[name].clear()
        module[name].update(hooks.get(name, {}))


def _handled_signals() -> dict[int, Any]:
    return {int(number): signal.getsignal(number) for number in signal.valid_signals()}


# Handlers that Python and the notebook's own machinery have set up.
_SIGNALS = _handled_signals()


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
    return importlib.import_module("numpy")  # only where a cell has used it


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Those of Python, IPython and what was imported until now: a new process has its own.
_FILTERS = list(warnings.filters)


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


# Handlers that the notebook's own machinery has set up.
_HANDLERS = tuple(
    handler
    for logger in (logging.root, *logging.root.manager.loggerDict.values())
    for handler in getattr(logger, "handlers", ())
)


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
    return Setting(
        name, lambda: getattr(torch_here(), read)(), lambda v: getattr(torch_here(), apply)(v)
    )


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
    Setting(
        "deterministic algorithms",
        _deterministic,
        lambda v: torch_here().use_deterministic_algorithms(v[0], warn_only=v[1]),
    ),
    Setting(
        "anomaly detection",
        lambda: (torch_here().is_anomaly_enabled(), torch_here().is_anomaly_check_nan_enabled()),
        lambda v: torch_here().autograd.set_detect_anomaly(*v),
    ),
    Setting(
        "print options of torch",
        lambda: dict(vars(torch_here()._tensor_str.PRINT_OPTS)),
        lambda v: vars(torch_here()._tensor_str.PRINT_OPTS).update(v),
    ),
    Setting("attention backends", _attention, _set_attention),
    Setting(
        "the sharing strategy",
        lambda: str(torch_here().multiprocessing.get_sharing_strategy()),
        lambda v: torch_here().multiprocessing.set_sharing_strategy(v),
    ),
    Setting(
        "the number of threads",
        lambda: torch_here().get_num_threads(),
        lambda v: torch_here().set_num_threads(v),
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
        lambda v: torch_here().set_flush_denormal(v),
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
        lambda: list(torch_here().serialization.get_safe_globals()),
        lambda v: torch_here().serialization.add_safe_globals(v),
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
        lambda: multiprocessing.get_start_method(allow_none=True),
        lambda v: multiprocessing.set_start_method(v, force=True),
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
