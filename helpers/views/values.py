"""Write a rank's return value in one short line that is the same in each run.

The lanes use this module. Tensors and arrays are recognized by their class names, so it does not need to
import torch and numpy.
"""

from __future__ import annotations

import re
import reprlib
from typing import Any

from helpers.views.plain import ELLIPSIS, clip, one_line

_ADDRESS_PATTERN = re.compile(r" at 0x[0-9a-fA-F]+")
_MAX_SHOWN_WHOLE = 120
_HEAD_LENGTH = 6


def short_value(value: object, limit: int = 400) -> str:
    """Return a compact repr, which cuts long containers and tensors, and leaves out memory addresses."""
    try:
        text = _ShortRepr().repr(value)
    except Exception as error:  # A repr may raise any exception, but a view must not.
        text = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    return one_line(_ADDRESS_PATTERN.sub("", text), limit)


class _ShortRepr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 6
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 20
        self.maxstring = self.maxother = 200
        self.fillvalue = ELLIPSIS

    def repr_Tensor(self, x: Any, level: int) -> str:
        return _short_array(x)

    def repr_Parameter(self, x: Any, level: int) -> str:
        return _short_array(x)

    def repr_ndarray(self, x: Any, level: int) -> str:
        return _short_array(x)


def _short_array(array: Any) -> str:
    """Show a small tensor completely. For a large tensor, show the first numbers and the shape."""
    shape = tuple(array.shape)
    count = 1
    for length in shape:
        count *= length
    whole = " ".join(repr(array).split()) if count <= _MAX_SHOWN_WHOLE else ""
    if whole and len(whole) <= _MAX_SHOWN_WHOLE:
        return whole
    while array.ndim > 1:
        array = array[0]
    # Use the repr of a slice, which writes the numbers with few digits and in the style of its class.
    numbers = " ".join(repr(array[:_HEAD_LENGTH]).split())
    start, bracket, rest = numbers.rpartition("]")
    if array.shape[0] > _HEAD_LENGTH and bracket:
        numbers = f"{start}, {ELLIPSIS}]{rest}"
    return clip(numbers, _MAX_SHOWN_WHOLE) + f" of shape {shape}"
