"""A short text for the learner that displays itself: Markdown in a notebook, plain elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Told:
    """What `hint` and an answered quiz give back. The same text each time, so it can be stored."""

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        return self.text
