"""Define the error for a failure of the check itself, not of the answer."""

from __future__ import annotations


class CheckFault(Exception):
    """The exercise's functions failed. unjudged: the value on which they failed, in words, if any.

    is_odd: whether an unexpected kind of value could cause this failure. Otherwise the check is at fault.
    """

    def __init__(self, message: str, unjudged: str = "", is_odd: bool = False) -> None:
        super().__init__(message)
        self.unjudged, self.is_odd = unjudged, is_odd
