"""The process-wide settings that cells may change and ranks take over, with functions to read and set each.

`settings` carries them from the cells to the ranks. `clean_settings` resets them for the time of a check.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.operators import own_operators


@dataclass(frozen=True)
class Setting:
    """One setting of a process.

    calls: the last words of the calls that change it. It is read only if the learner's code contains such a
    call. If None, it is read at each launch, because that is cheap and a library may change it too.
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


# The filters set by Python, IPython and the modules imported so far. A new process sets them itself.
_FILTERS = list(warnings.filters)


def _filters() -> list[Any]:
    return [each for each in warnings.filters if each not in _FILTERS]


def forget_filters() -> None:
    """Remove the warning filters that were added since this module was imported."""
    _set_filters([each for each in _FILTERS if each in warnings.filters] or _FILTERS)


def _add_filters(filters: Sequence[Any]) -> None:
    _set_filters([*filters, *warnings.filters])


def _set_filters(filters: list[Any]) -> None:
    vars(warnings)["filters"][:] = filters
    vars(warnings)["_filters_mutated"]()


def own_loggers() -> Iterator[tuple[str, logging.Logger]]:
    """Yield the root logger and all loggers that belong to no library. Ranks import libraries themselves."""
    for name, logger in {"": logging.root, **logging.root.manager.loggerDict}.items():
        library = sys.modules.get(name.partition(".")[0]) if name else None
        is_installed = "site-packages" in str(getattr(library, "__file__", None))
        if isinstance(logger, logging.Logger) and not is_installed:
            yield name, logger


# Handlers set up by the notebook's own machinery.
_HANDLERS = tuple(logging.root.handlers)


def _logging() -> tuple[dict[str, int], list[tuple[str | None, str | None]]]:
    """Return the levels of loggers, and the formats that `basicConfig` has set for the root logger."""
    formats = []
    for handler in logging.root.handlers:
        if type(handler) is logging.StreamHandler and handler not in _HANDLERS:
            made = handler.formatter or logging.Formatter()
            formats.append((made._fmt, made.datefmt))
    return {name: logger.level for name, logger in own_loggers() if logger.level}, formats


def _set_logging(found: tuple[Mapping[str, int], Sequence[tuple[str, str]]]) -> None:
    for name, level in found[0].items():
        logging.getLogger(name).setLevel(level)
    for known in found[1]:
        if known not in _logging()[1]:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(*known))
            logging.root.addHandler(handler)


def _of_torch(name: str, read: str, apply: str, *calls: str) -> Setting:
    return Setting(
        name,
        lambda: getattr(torch_here(), read)(),
        lambda value: getattr(torch_here(), apply)(value),
        frozenset(calls) or None,
    )


SETTINGS = (
    _of_torch("the default dtype", "get_default_dtype", "set_default_dtype"),
    _of_torch("the default device", "get_default_device", "set_default_device"),
    _of_torch("grad mode", "is_grad_enabled", "set_grad_enabled"),
    _of_torch("the number of threads", "get_num_threads", "set_num_threads", "set_num_threads"),
    Setting(
        "deterministic algorithms",
        _deterministic,
        lambda value: torch_here().use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    Setting(
        "print options of torch",
        lambda: dict(vars(torch_here()._tensor_str.PRINT_OPTS)),
        lambda value: vars(torch_here()._tensor_str.PRINT_OPTS).update(value),
    ),
    # Unpickling an operator defines it on the rank.
    Setting("operators", own_operators, lambda _: None, frozenset({"custom_op"})),
    Setting("warnings", _filters, _add_filters, frozenset({"filterwarnings", "simplefilter"})),
    Setting("logging", _logging, _set_logging, frozenset({"basicConfig", "setLevel"})),
)

NOT_CARRIED = frozenset({
    "add_safe_globals", "addHandler", "register_module_forward_hook", "register_module_full_backward_hook",
    "register_pytree_node", "resetwarnings", "set_detect_anomaly", "set_float32_matmul_precision",
    "set_sharing_strategy", "set_start_method", "seterr", "setlocale", "setrecursionlimit", "umask",
})  # fmt: skip
"""Calls whose effect stays in the kernel. The next Run shows a note about them."""
