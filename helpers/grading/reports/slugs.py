"""File names for learners' pages, safe on every system whatever a learner is called.

Called where the class is put together; the pages and the links to them use the same names.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

_READABLE = 40
_DIGITS = 10


def page_names(learners: Iterable[str]) -> dict[str, str]:
    """Return each learner a file name of its own, the same one each time.

    What can be read of the name comes first, then a part of its SHA-256: so names that differ in case
    only, or have nothing readable, stay apart, and none is a path or a device (`con`).
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for learner in dict.fromkeys(learners):
        digits = _DIGITS
        while (name := _name(learner, digits)) in taken:
            digits += 1
        taken.add(name)
        names[learner] = name
    return names


def is_page_name(name: str) -> bool:
    """Return whether a file is called as these functions call pages, and so may be one of an earlier run."""
    return re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{10,64}\.html", name) is not None


def _name(learner: str, digits: int) -> str:
    # A name may hold half a surrogate pair, as a file's name does that is not UTF-8.
    digest = hashlib.sha256(learner.encode("utf-8", "surrogatepass")).hexdigest()
    plain = (
        unicodedata.normalize("NFKD", learner[: 4 * _READABLE]).encode("ascii", "ignore").decode()
    )
    readable = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_READABLE].strip("-")
    return f"{readable or 'learner'}-{digest[:digits]}.html"
