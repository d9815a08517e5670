"""Clean the texts of a record for display: harmless characters, limited length, readable numbers.

Every report passes each text through these functions. The pages do so for all texts in templates.
"""

from __future__ import annotations

import math
import re
import string

from helpers.grading.record import ExerciseRecord
from helpers.views.plain import clean, clip

MAX_CHARS = 4000
MAX_NAME_CHARS = 120
# Characters not removed by `clean`: invisible marks that reorder or hide text, and more than three accents on
# a letter.
_INVISIBLE_PATTERN = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb]"
)
_ACCENTS_PATTERN = re.compile(
    r"([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u20d0-\u20f0]{3})[\u0300-\u20f0]*"
)
_SAFE = set(" ,;()+-")
_ESCAPED = {ord(mark): f"&#{ord(mark)};" for mark in string.punctuation if mark not in _SAFE}
_HEADING_PATTERN = re.compile(r"Exercise [\w.]{1,12}: (?P<title>.+?)(?: \(\d+ min, [^()]*\))?")


def clip_text(text: str, limit: int = MAX_CHARS) -> str:
    """Return cleaned text of several lines, cut to `limit` characters with a mark at the cut."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text  # this applies to most strings, so the fast path pays off
    # Cut first, so that megabytes take no longer than a page, but leave room for removed codes.
    cleaned = _INVISIBLE_PATTERN.sub("", clean(text[: 4 * limit]))
    cleaned = _ACCENTS_PATTERN.sub(r"\1", cleaned).strip("\n")
    return clip(cleaned if len(text) <= 4 * limit else cleaned[:limit] + " ", limit)


def line(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return a cleaned name or label on one line of at most `limit` characters, or `(no name)`."""
    return clip(" ".join(clip_text(text, 4 * limit).split()), limit) or "(no name)"


def escape_markdown(text: str, limit: int = 200) -> str:
    """Escape `text` so that Markdown shows it unchanged, even in a table."""
    return line(text, limit).translate(_ESCAPED)


def number(value: float) -> str:
    """Return points with at most two decimals and no trailing zeros. NaN and infinity become 0."""
    return f"{finite_or_zero(value):.2f}".rstrip("0").rstrip(".")


def points_text(points: float, out_of: float | None = None) -> str:
    """Return `1 point`, `2.5 points`, or `1 of 5 points`."""
    last = number(points if out_of is None else out_of)
    said = last if out_of is None else f"{number(points)} of {last}"
    return f"{said} point" if last == "1" else f"{said} points"


def finite_or_zero(value: float) -> float:
    """Return the number, or 0 if a gradebook could not add it to others."""
    return value if math.isfinite(value) and abs(value) < 1e9 else 0.0


def percent(share: float) -> str:
    """Return a share from 0 to 1 as a whole percentage; 100 % and 0 % only for exactly 1 and 0."""
    whole = math.floor(100 * share + 0.5)  # round() would round some halves down
    if whole == 0 and share > 0:
        return "<1 %"
    return ">99 %" if whole == 100 and share < 1 else f"{whole} %"


def title_of(exercise: ExerciseRecord) -> str:
    """Return an exercise's title from its heading `Exercise 5.3: Title (15 min, ...)`."""
    heading = line(exercise.heading) if exercise.heading else line(exercise.name)
    found = _HEADING_PATTERN.fullmatch(heading)
    return found["title"] if found else heading


def numbered_title(exercise: ExerciseRecord) -> str:
    """Return an exercise's number and title: `5.3 Ring all-reduce`."""
    return (
        f"{line(exercise.number, 12)} {title_of(exercise)}"
        if exercise.number
        else title_of(exercise)
    )
