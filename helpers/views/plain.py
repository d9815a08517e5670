"""Clean the ranks' output for display: remove escape codes and control characters, and limit its length.

Every view cleans each string from a rank with these functions before drawing or writing it.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Sequence
from html import escape

_ESCAPES_PATTERN = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colors, cursor movements
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # window titles, hyperlinks
    r"|\x1b[ -/]*[0-~]"  # all other escape sequences
)
# Characters that would break HTML or UTF-8, or that reorder a line and so change its meaning.
_CONTROL_CHARS_PATTERN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# The prefix of messages from torch's C++ code: rank, level, date, time, file, line.
_LOG_HEAD_PATTERN = re.compile(
    r"(?:^|(?<=: ))(?:\[rank\d+\]:)?\[([EWIF])\d{4} [\d:.]+(?: \d+)? ([\w.]+):\d+\] ", re.MULTILINE
)
# Lines that GitHub, Azure, TeamCity and GitLab interpret as commands in a job's output.
_COMMAND_PATTERN = re.compile(r"^(?=\s*(?:::|##|section_(?:start|end):))", re.MULTILINE)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "…"
PLAIN_MARKS = "real-ranks-plain"
"""An error handler for codecs. Characters missing in an encoding are written in ASCII, or as "?"."""
_IN_ASCII = {
    **{"●": "*", "○": "o", "✓": "+", "✗": "x", "×": "x", "·": "-", "µ": "u", "²": "2", "±": "+-"},
    **{"→": "->", "←": "<-", "…": "...", "–": "-", "—": "-", "’": "'", "“": '"', "”": '"'},
}


def clean(text: str) -> str:
    """Strip terminal codes and the times in torch's log lines, and replace undisplayable characters.

    Newlines and tabs are kept.
    """
    text = _ESCAPES_PATTERN.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(_after_carriage_return(line) for line in text.split("\n"))
    return _CONTROL_CHARS_PATTERN.sub(_REPLACEMENT, _LOG_HEAD_PATTERN.sub(r"[\1 \2] ", text))


def for_log(text: str) -> str:
    """Clean `text` for a terminal or a job's log, so that a CI interprets no line as a command."""
    return _COMMAND_PATTERN.sub("| ", clean(text)).replace("##[", "## [")


def _after_carriage_return(line: str) -> str:
    # A progress bar returns to the start of its line, so a terminal would show only the last part.
    return next((part for part in reversed(line.split("\r")) if part), "")


def clip(text: str, limit: int) -> str:
    """Cut `text` to `limit` characters, and mark the cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + ELLIPSIS


def one_line(text: str, limit: int = 60) -> str:
    """Make `text` fit into a label: cleaned, on one line, with at most `limit` characters."""
    # Cut the text first, so that a label from megabytes of text takes no longer than a short one.
    return clip(" ".join(clean(text[: 20 * limit]).split()), limit)


def split_lines(text: str, *, max_lines: int = 200, width: int = 500) -> tuple[str, ...]:
    """Split printed text into lines. If there are more than `max_lines`, leave out the middle."""
    stripped = clean(text).rstrip("\n")
    if not stripped:
        return ()
    lines = stripped.split("\n")
    if len(lines) > max_lines:
        head = max_lines // 2
        gap = f"{ELLIPSIS} {len(lines) - 2 * head:,} lines not shown {ELLIPSIS}"
        lines = [*lines[:head], gap, *lines[-head:]]
    return tuple(clip(line.rstrip(), width) for line in lines)


def code_to_html(text: str) -> str:
    """Return `text` as HTML, with parts between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escape(text))


def plural(count: int, noun: str) -> str:
    """Write a count with its noun: `1 message`, `4 messages`."""
    hissing = noun.endswith(("s", "ch")) and not noun.endswith("epoch")
    ending = "" if count == 1 else "es" if hissing else "s"
    return f"{count:,} {noun}{ending}"


def join_words(words: Sequence[str]) -> str:
    """Write words as a list in a sentence: `send, recv and broadcast`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def short_bytes(nbytes: float) -> str:
    """Write a number of bytes in at most six characters: `0 B`, `640 B`, `1.6 MB`."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if nbytes < 999.5:
            digits = 0 if unit == "B" or nbytes >= 99.5 else 1
            return f"{nbytes:.{digits}f}".removesuffix(".0") + f" {unit}"
        nbytes /= 1000
    return f"{nbytes:.0f} PB" if nbytes < 1e6 else "huge"


def normalize_name(name: str) -> str:
    """Return a name in a normal form for comparing names: composed letters (NFC), single spaces."""
    return unicodedata.normalize("NFC", " ".join(name.split()))


def _plain_mark(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return _IN_ASCII.get(error.object[error.start], "?"), error.start + 1


codecs.register_error(PLAIN_MARKS, _plain_mark)
