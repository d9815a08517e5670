"""The memory of a module or class shows each change of its contents, and none if it is only used."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from helpers.checks.namespace_memory import Memory, make_comparison, memory_of

is_same = make_comparison()


class Thing:
    size = 3

    def method(self, a: int = 1, *, b: int = 2) -> int:
        return a + b + self.size


def module() -> types.ModuleType:
    module = types.ModuleType("module")
    module.first, module.second = print, len  # type: ignore[attr-defined]
    return module


def memory(holder: Any, *functions: Any) -> Memory:
    found = memory_of(vars(holder), holder, functions)
    assert found is not None, "this interpreter's layout is unknown"
    return found


def add_many(holder: Any) -> None:
    for number in range(50):
        setattr(holder, f"name{number}", number)


CHANGES: dict[str, Callable[[Any], object]] = {
    "a replaced value": lambda holder: setattr(holder, "first", len),
    "a new name": lambda holder: setattr(holder, "third", len),
    "a removed name": lambda holder: delattr(holder, "first"),
    "many new names": add_many,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize("make", [module, lambda: type("Class", (), {"first": print, "second": 2})])
def test_shows_changes(make: Callable[[], Any], change: Callable[[Any], object]) -> None:
    holder = make()
    before = memory(holder)
    assert is_same(before)
    change(holder)
    assert not is_same(before)


def test_shows_change_through_dict() -> None:
    holder = module()
    before = memory(holder)
    vars(holder)["first"] = len
    assert not is_same(before)
    vars(holder)["first"] = print
    assert is_same(before), "the old value is back"


def test_shows_other_class_of_module() -> None:
    holder = module()
    before = memory(holder)
    holder.__class__ = type("Module", (types.ModuleType,), {})
    assert not is_same(before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("__code__", (lambda self: 0).__code__),
        ("__defaults__", (5,)),
        ("__kwdefaults__", {"b": 5}),
    ],
)
def test_shows_change_of_function(name: str, value: object) -> None:
    def function(self: object = None, *, b: int = 2) -> int:
        return b

    before = memory(Thing, function)
    setattr(function, name, value)
    assert not is_same(before)


def test_use_changes_nothing() -> None:
    before = memory(Thing, Thing.method), memory(torch), memory(torch.nn.Module)
    kept = [Thing().method(a) for a in range(1000)]  # the interpreter adapts code that runs often
    layer = torch.nn.Linear(2, 2)
    kept += [torch.equal(layer(torch.ones(2)), torch.ones(2)) for _ in range(100)]
    assert all(map(is_same, before)), kept


def test_unreadable_namespace_has_no_memory() -> None:
    assert memory_of(vars(Thing())) is None  # its values are in the instance
    assert memory_of([]) is None
