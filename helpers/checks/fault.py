"""The error that says: this check is at fault, not the answer."""

from __future__ import annotations


class CheckFault(Exception):
    """The exercise's own functions failed. unjudged: over what, in words, where it came from the answer.

    is_odd: such a failure as a value of an unexpected kind provokes; else it is taken for the check's fault.
    """

    def __init__(self, said: str, unjudged: str = "", is_odd: bool = False) -> None:
        super().__init__(said)
        self.unjudged, self.is_odd = unjudged, is_odd
