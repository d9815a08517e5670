"""Read pickles that contain only dicts, lists, tuples, numbers, strings, bytes, bools and None.

A pickle is a program that can call any function of Python. A dump needs none of that, so before anything is
loaded, each instruction is compared with a list. An unpickler that refuses all names then loads the rest.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, NoReturn

MAX_OPCODES = 8_000_000
"""A dump of torch's default 2,000 calls with stacks has fewer than 300,000 instructions."""
MAX_DEPTH = 50
_CONSTANTS = {"NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_TEXTS = {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"}
_BYTES = {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
_CONTAINERS = {"EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_FILLERS = {"TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"}
_MEMO = {"BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET"}
_FRAME = {"PROTO", "FRAME", "STOP", "MARK"}
_ALLOWED = _CONSTANTS | _TEXTS | _BYTES | _CONTAINERS | _FILLERS | _MEMO | _FRAME
_MAX_LONG = 1 << 64


class BadPickle(ValueError):
    """A pickle is damaged, too large, or contains something else than plain data."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise BadPickle(f"it names {module}.{name}, but a dump contains plain data only")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise BadPickle("it refers to an object outside of the file")


def load_plain(data: bytes) -> Any:
    """Return the plain data of a pickle. Raise BadPickle for anything else."""
    try:
        _check_opcodes(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except BadPickle:
        raise
    except Exception as error:  # a damaged pickle raises almost any type of error
        raise BadPickle(f"it is damaged ({type(error).__name__})") from error


def _check_opcodes(data: bytes) -> None:
    """Refuse instructions that build objects, and a size or depth that no dump has."""
    depth = 0
    for count, (opcode, argument, _) in enumerate(pickletools.genops(data), 1):
        if opcode.name not in _ALLOWED:
            raise BadPickle(
                f"it contains the instruction {opcode.name}, but a dump contains plain data only"
            )
        if count > MAX_OPCODES:
            raise BadPickle(f"it has more than {MAX_OPCODES:,} instructions")
        if opcode.name == "MARK":
            depth += 1
        elif opcode.name in {"APPENDS", "SETITEMS", "TUPLE"}:
            depth -= 1
        if depth > MAX_DEPTH:
            raise BadPickle(f"it is nested more than {MAX_DEPTH} levels deep")
        # The unpickler would reserve memory up to this position.
        if opcode.name in {"BINPUT", "LONG_BINPUT"} and (argument or 0) > len(data):
            raise BadPickle("it is damaged (memo)")
        if opcode.name == "LONG1" and abs(argument or 0) > _MAX_LONG:
            raise BadPickle("it contains a number of more than 64 bits")
