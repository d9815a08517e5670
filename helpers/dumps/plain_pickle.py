"""Read pickles that contain only dicts, lists, tuples, numbers, strings, bytes, bools and None.

A pickle is a program that can call any function of Python. Dumps do not need this ability, so each
instruction is compared with a list before loading. Then an unpickler that refuses all names loads the data.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any, NoReturn

MAX_OPCODES = 8_000_000
"""Maximum number of instructions. A dump of torch's default 2,000 calls has fewer than 300,000."""
MAX_DEPTH = 50
_MAX_LONG_BYTES = 9
# The allowed instructions. For arguments of a fixed size: instruction -> bytes of the argument. For arguments
# that begin with their length: instruction -> bytes of the length.
_FIXED_SIZES = {
    **dict.fromkeys(b"(.N})]taesu", 0),
    **dict.fromkeys((0x85, 0x86, 0x87, 0x88, 0x89, 0x94), 0),
    **{ord("J"): 4, ord("K"): 1, ord("M"): 2, ord("G"): 8, 0x80: 1, 0x95: 8},
    **{ord("q"): 1, ord("r"): 4, ord("h"): 1, ord("j"): 4},
}
_COUNT_SIZES = {
    **{ord("X"): 4, ord("B"): 4, ord("T"): 4, ord("C"): 1, ord("U"): 1},
    **{0x8A: 1, 0x8C: 1, 0x8D: 8, 0x8E: 8},
}
_MARK, _STOP, _LONG_PUT, _LONG = ord("("), ord("."), ord("r"), 0x8A
_CLOSING = frozenset(b"teu")
# Other arguments end at a line end, or the instruction calls a function.
_NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}


class BadPickle(ValueError):
    """A pickle is damaged, too large, or contains data other than plain data."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise BadPickle(f"it names {module}.{name}, but a dump contains plain data only")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise BadPickle("it refers to an object outside the file")


def load_plain(data: bytes) -> Any:
    """Return the plain data of a pickle. Raise BadPickle for any other data."""
    try:
        _check_opcodes(data)
        return _PlainUnpickler(io.BytesIO(data)).load()
    except BadPickle:
        raise
    except Exception as error:  # a damaged pickle raises almost any type of error
        raise BadPickle(f"it is damaged ({type(error).__name__})") from error


def _check_opcodes(data: bytes) -> None:
    """Refuse instructions that build objects, and sizes or depths that do not occur in dumps.

    `pickletools.genops` would take four times as long.
    """
    position = depth = 0
    for _ in range(MAX_OPCODES):
        code = data[position]  # an IndexError means that the end of the pickle is missing
        position += 1
        size = _FIXED_SIZES.get(code)
        if size is None:
            position = _skip_counted(data, position, code)
            continue
        if code == _MARK:
            depth += 1
            if depth > MAX_DEPTH:
                raise BadPickle(f"it is nested more than {MAX_DEPTH} levels deep")
        elif code in _CLOSING:
            depth -= 1
        elif code == _STOP:
            return
        # The unpickler would reserve memory up to this position.
        elif code == _LONG_PUT and int.from_bytes(data[position : position + 4], "little") > len(
            data
        ):
            raise BadPickle("it is damaged (memo)")
        position += size
    raise BadPickle(f"it has more than {MAX_OPCODES:,} instructions")


def _skip_counted(data: bytes, position: int, code: int) -> int:
    """Return the position after an instruction whose argument begins with its length."""
    size = _COUNT_SIZES.get(code)
    if size is None:
        name = _NAMES.get(code, f"{code:#x}")
        raise BadPickle(f"it contains the instruction {name}, but a dump contains plain data only")
    length = int.from_bytes(data[position : position + size], "little")
    if code == _LONG and length > _MAX_LONG_BYTES:
        raise BadPickle("it contains a number of more than 64 bits")
    if length > len(data):
        raise BadPickle("it is damaged (length)")
    return position + size + length
