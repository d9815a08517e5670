"""Inside a rank: build the answer from its source, and call it as the exercise's kind requires.

This module is sent to the ranks by name, together with the answer's source and the rank's inputs.
"""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import equal

from helpers.checks.kinds import Kind
from helpers.checks.load_answer import build
from helpers.ranks.own_modules import learner_module_names
from helpers.ranks.rank_context import ask_launcher, recorded_call_count, replacement_reporter

_DELAY_S = 0.003
_MAX_RANKS = 1_000


@dataclass(frozen=True)
class TurnPlan:
    """The work of all ranks of a world, which call programs on cases, one turn after another.

    sources[program_indices[k]] defines the answer, called `name`, of turn k. kind: how programs are called.
    The driver of a script gets the program's source. numbers[k]: determines which rank, if any, is late in
    turn k, and seeds each rank's random numbers. other_poison: see `adversarial_world`. report_replaced:
    whether to report functions that an answer has replaced.
    """

    sources: Sequence[str]
    program_indices: Sequence[int]
    numbers: Sequence[int]
    name: str
    kind: Kind
    driver: Callable[..., Any] | None
    other_poison: bool = False
    report_replaced: bool = False


def drive_cases(
    rank: int, world_size: int, plan: TurnPlan, given: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Call programs on cases, inside a rank.

    given[k]: this rank's inputs in turn k; in a measurement, they follow the measuring function. For each
    turn, return the returned value, the names of the changed inputs, and the numbers of the turn's first and
    last recorded call.
    """
    from helpers.checks.adversarial import adversarial_world

    # look up the real sleep before the answer runs and before the world is made adversarial, so that a late
    # rank is really late
    sleep, results = time.sleep, []
    watch = _import_watch() if plan.report_replaced else None
    kind, driver, is_alone = plan.kind, plan.driver, plan.kind.is_alone
    built_program: int | None = None
    initial_names = set(vars(sys.modules["__main__"]))
    # an answer must not use modules imported by earlier launches
    for name in learner_module_names():
        del sys.modules[name]
    _disable_compile()
    with adversarial_world(plan.other_poison) if kind.is_adversarial else contextlib.nullcontext():
        # start this inside the adversarial world, so that functions replaced by it are not attributed to the
        # answer
        compare = watch(replacement_reporter()) if watch is not None else None
        for turn, (inputs, number) in enumerate(zip(given, plan.numbers, strict=True)):
            if (
                plan.program_indices[turn] != built_program
            ):  # build an answer only once, because it may count its calls
                built_program = plan.program_indices[turn]
                _remove_names(
                    initial_names
                )  # a program must not find names defined by a previous program
                answer: Any = _build_answer(plan.sources[built_program], plan.name, kind)
            input_copies = [_copy(value) for value in inputs]
            first_call = recorded_call_count()
            # Each rank has a different seed, as in new processes, but the same seed each time a case is
            # tried.
            _seed(_MAX_RANKS * number + rank)
            if number % (world_size + 1) == rank:
                sleep(_DELAY_S)
            if driver is not None:
                measuring_arguments = (
                    (partial(_ask_timing, turn),) if kind is Kind.MEASUREMENT else ()
                )
                returned = driver(answer, rank, world_size, *measuring_arguments, *inputs)
            elif is_alone:
                returned = answer(*inputs)
            else:
                returned = answer(rank, world_size, *inputs)
            changed = [
                _parameter_name(answer, position + (0 if is_alone else 2)) + key
                for position, (old, new) in enumerate(zip(input_copies, inputs, strict=True))
                if driver is None
                for key in _changed_keys(old, new)
            ]
            results.append([returned, changed, first_call, recorded_call_count()])
        if compare is not None:
            compare()
    return results


def _import_watch() -> Callable[[Callable[[str], None]], Callable[[], None]]:
    """Import `watch_functions`, which only graders need."""
    from helpers.checks.replaced import watch_functions

    return watch_functions


def _seed(number: int) -> None:
    """Seed torch like `torch.manual_seed`, but only for this machine's devices.

    For each missing kind of device, torch would format a stack trace in case the device is added later, which
    takes 2 ms per call.
    """
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(number)
    random.seed(number)


def _ask_timing(case: int, *arguments: int) -> float:
    """Ask the launcher for one timing.

    The numbers from which timings are computed are not in this process.
    """
    seconds = ask_launcher([case, *arguments])
    if seconds is None:
        raise RuntimeError("too many measurements: about twenty are enough")
    return float(seconds)


def _build_answer(source: str, name: str, kind: Kind) -> Any:
    if kind is not Kind.SCRIPT:
        return build(source, name)
    # import it here, because the import takes a tenth of a second and other kinds do not need it
    from helpers.checks.scripts import Source

    return Source(source, name)


def _remove_names(kept_names: set[str]) -> None:
    """Remove all but the known names from `__main__`."""
    namespace = vars(sys.modules["__main__"])
    for name in set(namespace) - kept_names:
        del namespace[name]


def _disable_compile() -> None:
    """Replace torch.compile with a function that returns its argument: compiling takes too long for a check.

    torch's switch for disabling it would still import the compiler, which replaces functions of
    torch.nn.Module.
    """

    def compile(model: Any = None, **options: Any) -> Any:
        return model if model is not None else lambda model: model

    torch.compile = compile


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy(part) for key, part in value.items()}
    return [_copy(part) for part in value] if isinstance(value, (list, tuple)) else value


def _changed_keys(old: Any, new: Any) -> list[str]:
    """Return, for each change, what to add to the argument's name: a dict's key in brackets, or ""."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [
            f"[{key!r}]".replace("'", '"')
            for key in keys
            if key not in old or key not in new or not _is_unchanged(old[key], new[key])
        ]
    return [] if _is_unchanged(old, new) else [""]


def _is_unchanged(old: Any, new: Any) -> bool:
    if isinstance(old, torch.Tensor):
        if old.shape != new.shape or old.dtype != new.dtype:
            return False
        return equal(old, new) or bool(((old == new) | (old.isnan() & new.isnan())).all())
    if isinstance(old, list) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(_is_unchanged, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return not _changed_keys(old, new)
    if isinstance(old, (int, float, str, bytes)):
        return type(old) is type(new) and (old == new or old != old)
    return True


def _parameter_name(answer: Any, position: int) -> str:
    # an answer may be any callable, even one without a signature
    try:
        return list(inspect.signature(answer).parameters)[position]
    except (TypeError, ValueError, IndexError):
        return f"argument {position + 1}"
