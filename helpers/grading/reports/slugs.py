"""Choose file names for learners' pages that are safe on every system, for any names of learners.

`page_names` is called once for the class, so that the pages and the links to them use the same names.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable

_MAX_READABLE_CHARS = 40
_DIGEST_CHARS = 10


def page_names(learners: Iterable[str]) -> dict[str, str]:
    """Return a distinct file name for each learner, the same each time.

    The readable part of the name is followed by a part of its SHA-256. So names that differ only in case, or
    have no readable character, get different files, and no file name is a path or a device (`con`).
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for learner in dict.fromkeys(learners):
        digits = _DIGEST_CHARS
        while (name := _name(learner, digits)) in taken:
            digits += 1
        taken.add(name)
        names[learner] = name
    return names


def is_page_name(name: str) -> bool:
    """Return whether a file is named like a page, and so may come from an earlier run."""
    return re.fullmatch(r"[a-z0-9-]+-[0-9a-f]{10,64}\.html", name) is not None


def _name(learner: str, digits: int) -> str:
    # A name may contain half a surrogate pair, for example if it comes from a file name that is not UTF-8.
    digest = hashlib.sha256(learner.encode("utf-8", "surrogatepass")).hexdigest()
    plain = (
        unicodedata.normalize("NFKD", learner[: 4 * _MAX_READABLE_CHARS])
        .encode("ascii", "ignore")
        .decode()
    )
    readable = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:_MAX_READABLE_CHARS].strip("-")
    return f"{readable or 'learner'}-{digest[:digits]}.html"
