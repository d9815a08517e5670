"""Read the memory of modules, classes and functions, and find out whether it has changed.

Using an object changes its reference count. So a rank that looked at thousands of functions would copy most
of the memory that it shares with its server, which took a third of its processor time. This module reads the
memory instead, as CPython 3.11 to 3.14 lay it out: see `PyDictObject`, `PyDictKeysObject` and
`PyFunctionObject` in its headers. If this interpreter has a different layout, `memory_of` returns None.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, MappingProxyType
from typing import Any

# Views of memory that exists as long as a namespace and its functions; views of the namespace's table, which
# exists as long as the first views show the same bytes; the bytes of the first views; the table's bytes. This
# is a plain tuple, because no code can change how a tuple is unpacked.
Memory = tuple[list[Any], list[Any], bytes, bytes]

_WORD = 8
# Offsets in a dict: the number of its items, and the address of its table, followed by that of split values.
_DICT_SIZE, _DICT_TABLE = 2 * _WORD, 4 * _WORD
# A table's header contains no items, but a number that changes when code using the dict becomes faster.
_TABLE_HEADER = 4 * _WORD
# From a function's globals to its closure, with its code and its defaults.
_FUNCTION_START, _FUNCTION_SIZE = 2 * _WORD, 8 * _WORD


def memory_of(
    namespace: object, holder: object = None, functions: Iterable[FunctionType] = ()
) -> Memory | None:
    """Return the memory of a module's or class's namespace, its own class, and some functions.

    Return None if the memory cannot be read.
    """
    if type(namespace) is MappingProxyType:  # a class shows only a view of its dict
        namespace = next(iter(gc.get_referents(namespace)), None)
    if not _IS_KNOWN_LAYOUT or type(namespace) is not dict:
        return None
    table, split_values = _read_words(id(namespace) + _DICT_TABLE, 2)
    if split_values:
        return None
    views = [
        _view(id(holder) + _WORD, _WORD),
        _view(id(namespace) + _DICT_SIZE, _WORD),
        _view(id(namespace) + _DICT_TABLE, 2 * _WORD),
        *(_view(id(function) + _FUNCTION_START, _FUNCTION_SIZE) for function in functions),
    ]
    items = [_view(table + _TABLE_HEADER, _table_size(namespace) - _TABLE_HEADER)]
    return views, items, b"".join(views), b"".join(items)


def make_comparison() -> Callable[[Memory], bool]:
    """Return a function that returns whether memory holds the same bytes as before.

    The function looks up no names, so no code can change it by replacing something.
    """
    join = b"".join

    def is_same(memory: Memory) -> bool:
        views, items, view_bytes, item_bytes = memory
        return join(views) == view_bytes and join(items) == item_bytes

    return is_same


def _view(address: int, size: int) -> Any:
    """Return an object through which other code can read memory."""
    return (ctypes.c_char * size).from_address(address)


def _table_size(namespace: dict[Any, Any]) -> int:
    return namespace.__sizeof__() - dict.__basicsize__


def _read_words(address: int, count: int) -> list[int]:
    return list(memoryview(bytes(_view(address, count * _WORD))).cast("Q"))


def _has_known_layout() -> bool:
    """Return whether this interpreter lays out a dict and a function as this module expects."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != _WORD:
        return False

    def sample(a: int = 1, *, b: int = 2) -> None: ...

    namespace: dict[str, Any] = {"first": sample, "second": _read_words}
    if dict.__basicsize__ != 6 * _WORD or _read_words(id(namespace) + _DICT_SIZE, 1) != [2]:
        return False
    table, split_values = _read_words(id(namespace) + _DICT_TABLE, 2)
    table_size = _table_size(namespace) - _TABLE_HEADER
    if split_values or not 0 < table_size < 1000:
        return False
    items = bytes(_view(table + _TABLE_HEADER, table_size))
    function = bytes(_view(id(sample) + _FUNCTION_START, _FUNCTION_SIZE))
    parts = (sample.__code__, sample.__defaults__, sample.__kwdefaults__)
    return all(_address(each) in items for each in (*namespace, *namespace.values())) and all(
        _address(part) in function for part in parts
    )


def _address(thing: object) -> bytes:
    return id(thing).to_bytes(_WORD, sys.byteorder)


_IS_KNOWN_LAYOUT = _has_known_layout()
