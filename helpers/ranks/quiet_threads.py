"""Decide whether a rank's background threads can communicate with other ranks.

If the main threads of all ranks wait inside calls of torch.distributed, only another call can end a wait. A
background thread could only help by communicating: by calling a collective, setting a key of a store, or
ending the process. A logger polling its queue does none of these, no matter how it uses its data. So
everything that a thread's code can reach is searched for torch.distributed. The search is cautious: if it
takes too long, or meets code that may reach anything, it reports that the thread may communicate.
"""

from __future__ import annotations

import dis
import gc
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from helpers.trace.frames import (
    LEARNER,
    TORCH,
    code_kind,
    file_in_torch,
    frames_of_other_threads,
)

# Number of values to search. A logger's thread reaches a few hundred values.
_MAX_VALUES = 4_000
# Modules that communicate between ranks. The module names of their functions and classes begin with these.
_COMMUNICATING = (
    "torch.distributed",
    "torch._C._distributed",
    "torch.nn.parallel",
    "helpers.",
)
# Parts of torch that cannot call a learner's hooks: its plain values and its event writers.
_PLAIN_TORCH = ("torch.utils.tensorboard", "torch.utils._tensorboard")
_PLAIN_TORCH_TYPES = frozenset({"Tensor", "Parameter", "dtype", "device", "Size", "Generator"})
# With these names, code can reach anything, end the process, or interrupt the main thread. `backward` is
# included because it may reduce gradients.
_POWERFUL_NAMES = frozenset(
    """
    eval exec compile __import__ import_module globals vars backward interrupt_main raise_signal
    _exit abort kill killpg pthread_kill _current_frames
    """.split()  # noqa: SIM905
)
_PLAIN_TYPES = frozenset({int, float, complex, str, bytes, bytearray, bool, type(None), range})


def quiet_threads(main: int, listener: int) -> frozenset[int] | None:
    """Return the native ids of this rank's background threads if none of them can communicate.

    If one of them can, the result is None, because any other thread may wake that thread.

    Args:
        main: The identifier of the main thread.
        listener: The identifier of the course's listening thread.
    """
    native_ids = {
        thread.ident: thread.native_id
        for thread in threading.enumerate()
        if thread.ident is not None and thread.native_id is not None
    }
    quiet = []
    for ident, frame in frames_of_other_threads().items():
        if ident in {main, listener}:
            continue
        if can_communicate(frame):
            return None
        if ident in native_ids:
            quiet.append(native_ids[ident])
    return frozenset(quiet)


def can_communicate(frame: FrameType | None) -> bool:
    """Return whether a thread with this innermost frame can reach torch.distributed."""
    search = _Search()
    try:
        while frame is not None:
            if _is_torch_code(frame.f_code):
                return True
            search.add_code(frame.f_code, frame.f_globals)
            search.values += list(frame.f_locals.values())
            frame = frame.f_back
        return search.finds_communication()
    except Exception:  # A learner's class may raise any exception.
        return True


def _is_torch_code(code: CodeType) -> bool:
    module = file_in_torch(code).removesuffix(".py").replace("/", ".")
    return code_kind(code) is TORCH and not f"torch.{module}".startswith(_PLAIN_TORCH)


@dataclass
class _Search:
    """The values that a thread's code can reach. communicates: whether one of these values communicates."""

    values: list[Any] = field(default_factory=list)
    communicates: bool = False
    _visited_ids: set[int] = field(default_factory=set)

    def finds_communication(self) -> bool:
        for count, value in enumerate(self.values):  # The list grows during the loop.
            if self.communicates or count > _MAX_VALUES:
                return True
            if type(value) not in _PLAIN_TYPES and id(value) not in self._visited_ids:
                self._visited_ids.add(id(value))
                self._visit(value)
        return self.communicates

    def add_code(self, code: CodeType, names: Mapping[str, Any]) -> None:
        """Add the values of all global names, and attributes of modules, that a function's code uses."""
        if code_kind(code) is not LEARNER and "site-packages" not in code.co_filename:
            return  # The standard library calls only functions that were passed to it.
        if id(code) in self._visited_ids:
            return
        self._visited_ids.add(id(code))
        used = set(code.co_names)
        imported = any(name.startswith(_COMMUNICATING) for name in used)
        if imported or not used.isdisjoint(_POWERFUL_NAMES):
            self.communicates = True
        # An attribute may have the same name as a variable, so check the instruction.
        for instruction in dis.get_instructions(code):
            name = str(instruction.argval)
            if instruction.opname == "IMPORT_NAME":
                self._add_global(sys.modules.get(name), used)
            elif instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
                self._add_global(names.get(name), used)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.add_code(constant, names)

    def _add_global(self, value: Any, used: set[str]) -> None:
        """Add a value. If it is a module, add those of its attributes whose names the code uses."""
        self.values.append(value)
        if isinstance(value, types.ModuleType):
            attributes = vars(value)
            self.values += [attributes[name] for name in used & attributes.keys()]

    def _visit(self, value: Any) -> None:
        if isinstance(value, types.ModuleType):
            self.communicates |= value.__name__.startswith(_COMMUNICATING)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value)
        elif isinstance(value, type):
            self._visit_class(value)
        elif isinstance(value, (types.FrameType, types.TracebackType, types.CodeType)):
            pass
        elif type(value) is types.GeneratorType:
            self.add_code(value.gi_code, {})
            self.communicates = True  # A frame may hold anything.
        elif not _is_plain_torch(type(value)):
            self._visit_class(type(value))
            self.values += _referents(value)

    def _visit_function(self, function: types.FunctionType) -> None:
        module = function.__module__ or ""
        if module == "threading":
            return  # For example, the hook for exceptions in threads, which torch has replaced.
        self.communicates |= module.startswith(_COMMUNICATING)
        self.values += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self.values += list(function.__closure__ or ())
        names = function.__globals__
        self.add_code(function.__code__, names)

    def _visit_class(self, kind: type) -> None:
        for base in kind.__mro__:
            module = str(vars(base).get("__module__", ""))
            is_torch = module == "torch" or module.startswith("torch.")
            if module.startswith(_COMMUNICATING) or (
                is_torch and not module.startswith(_PLAIN_TORCH) and not _is_plain_torch(base)
            ):
                self.communicates = True
            if base.__flags__ & _HEAP_TYPE and id(base) not in self._visited_ids:
                self._visited_ids.add(id(base))
                self.values += [
                    part for attribute in vars(base).values() for part in _functions_of(attribute)
                ]


# Py_TPFLAGS_HEAPTYPE: a class defined by Python code.
_HEAP_TYPE = 1 << 9


def _functions_of(attribute: Any) -> Iterator[Any]:
    """Yield the functions of a class's attribute."""
    if isinstance(attribute, (staticmethod, classmethod)):
        yield attribute.__func__
    elif isinstance(attribute, property):
        yield from (attribute.fget, attribute.fset)
    elif not isinstance(attribute, (types.GetSetDescriptorType, types.MemberDescriptorType)):
        yield attribute


def _is_plain_torch(kind: type) -> bool:
    module = str(vars(kind).get("__module__", ""))
    return kind.__name__ in _PLAIN_TORCH_TYPES and module in {
        "torch",
        "torch._C",
        "torch.nn.parameter",
    }


def _referents(value: Any) -> list[Any]:
    """Return an object's referents: its attributes, elements, bound function, and so on."""
    return [
        other
        for other in gc.get_referents(value)
        if type(other) not in _PLAIN_TYPES and other is not type(value)
    ]
