"""Process-wide settings that cells may change and ranks adopt, with functions for reading and setting them.

`carried_settings` sends them from the cells' process to the ranks. `clean_settings` resets them for the
duration of a check.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from helpers.ranks.operators import learner_operators


@dataclass(frozen=True)
class Setting:
    """One setting of a process.

    calls: the last words of the calls that change the setting. The setting is read only if the learner's code
    contains such a call. If `calls` is None, the setting is read at each launch, because reading it is cheap
    and a library may also change it.
    """

    name: str
    read: Callable[[], Any]
    apply: Callable[[Any], object]
    calls: frozenset[str] | None = None


def loaded_torch() -> Any:
    return sys.modules["torch"]


def _deterministic_settings() -> tuple[bool, bool]:
    torch = loaded_torch()
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


# Filters set by Python, IPython and the modules imported so far. A new process sets the same filters.
_INITIAL_FILTERS = list(warnings.filters)


def _added_filters() -> list[Any]:
    return [entry for entry in warnings.filters if entry not in _INITIAL_FILTERS]


def reset_filters() -> None:
    """Remove the warning filters that were added since this module was imported."""
    _set_filters(
        [entry for entry in _INITIAL_FILTERS if entry in warnings.filters] or _INITIAL_FILTERS
    )


def _add_filters(filters: Sequence[Any]) -> None:
    _set_filters([*filters, *warnings.filters])


def _set_filters(filters: list[Any]) -> None:
    vars(warnings)["filters"][:] = filters
    vars(warnings)["_filters_mutated"]()


def learner_loggers() -> Iterator[tuple[str, logging.Logger]]:
    """Yield the root logger and all loggers except those of libraries, which ranks import themselves."""
    for name, logger in {"": logging.root, **logging.root.manager.loggerDict}.items():
        library = sys.modules.get(name.partition(".")[0]) if name else None
        is_installed = "site-packages" in str(getattr(library, "__file__", None))
        if isinstance(logger, logging.Logger) and not is_installed:
            yield name, logger


# Handlers set up by the notebook's machinery.
_INITIAL_HANDLERS = tuple(logging.root.handlers)


def _logging_settings() -> tuple[dict[str, int], list[tuple[str | None, str | None]]]:
    """Return the levels of loggers, and the formats that `basicConfig` has set for the root logger."""
    formats = []
    for handler in logging.root.handlers:
        if type(handler) is logging.StreamHandler and handler not in _INITIAL_HANDLERS:
            formatter = handler.formatter or logging.Formatter()
            formats.append((formatter._fmt, formatter.datefmt))
    return {name: logger.level for name, logger in learner_loggers() if logger.level}, formats


def _set_logging(settings: tuple[Mapping[str, int], Sequence[tuple[str, str]]]) -> None:
    for name, level in settings[0].items():
        logging.getLogger(name).setLevel(level)
    for formats in settings[1]:
        if formats not in _logging_settings()[1]:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(*formats))
            logging.root.addHandler(handler)


def _torch_setting(name: str, read: str, apply: str, *calls: str) -> Setting:
    return Setting(
        name,
        lambda: getattr(loaded_torch(), read)(),
        lambda value: getattr(loaded_torch(), apply)(value),
        frozenset(calls) or None,
    )


SETTINGS = (
    _torch_setting("the default dtype", "get_default_dtype", "set_default_dtype"),
    _torch_setting("the default device", "get_default_device", "set_default_device"),
    _torch_setting("grad mode", "is_grad_enabled", "set_grad_enabled"),
    _torch_setting(
        "the number of threads", "get_num_threads", "set_num_threads", "set_num_threads"
    ),
    Setting(
        "deterministic algorithms",
        _deterministic_settings,
        lambda value: loaded_torch().use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    Setting(
        "print options of torch",
        lambda: dict(vars(loaded_torch()._tensor_str.PRINT_OPTS)),
        lambda value: vars(loaded_torch()._tensor_str.PRINT_OPTS).update(value),
    ),
    # Unpickling an operator defines it on the rank.
    Setting("operators", learner_operators, lambda _: None, frozenset({"custom_op"})),
    Setting(
        "warnings", _added_filters, _add_filters, frozenset({"filterwarnings", "simplefilter"})
    ),
    Setting("logging", _logging_settings, _set_logging, frozenset({"basicConfig", "setLevel"})),
)

UNSENT_CALLS = frozenset({
    "add_safe_globals", "addHandler", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook", "register_module_module_registration_hook",
    "register_module_parameter_registration_hook", "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook", "register_pytree_node", "resetwarnings", "set_detect_anomaly",
    "set_float32_matmul_precision", "set_multithreading_enabled", "set_sharing_strategy",
    "set_start_method", "seterr", "setlocale", "setrecursionlimit", "umask",
})  # fmt: skip
"""Calls that take effect only in the kernel. The next Run shows a note about them."""
