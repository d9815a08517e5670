"""Recognize a file by its contents if it was submitted as a notebook but is not one.

`notebook` calls `describe_kind` for a file that is not valid JSON. `grading` calls `looks_like_notebook`
for a file whose name does not end in .ipynb. Only bytes are compared, so the time for a hostile file is
proportional to its size.
"""

from __future__ import annotations

import re

EARLIER_VERSION_ADVICE = "Hand in an earlier copy, for example from .ipynb_checkpoints."

# They are compared in this order. Each text describes the file's kind, followed by advice.
_UNPACK_ADVICE = "Unpack it, and hand in the .ipynb file inside it."
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", f"is a zip archive, not a notebook. {_UNPACK_ADVICE}"),
    (b"PK\x05\x06", "is an empty zip archive, not a notebook. Hand in the .ipynb file."),
    (b"\x1f\x8b", f"is compressed with gzip. {_UNPACK_ADVICE}"),
    (b"BZh", f"is compressed with bzip2. {_UNPACK_ADVICE}"),
    (b"\xfd7zXZ\0", f"is compressed with xz. {_UNPACK_ADVICE}"),
    (b"7z\xbc\xaf\x27\x1c", f"is a 7z archive, not a notebook. {_UNPACK_ADVICE}"),
    (b"Rar!", f"is a rar archive, not a notebook. {_UNPACK_ADVICE}"),
    (b"%PDF", "is a PDF: a printed notebook has no cells. Hand in the .ipynb file."),
    (b"{\\rtf", "is a text document (RTF), not a notebook. Hand in the .ipynb file."),
    (b"\xd0\xcf\x11\xe0", "is an Office document, not a notebook. Hand in the .ipynb file."),
    (b"\x89PNG", "is a picture (PNG): a screenshot has no cells. Hand in the .ipynb file."),
    (b"\xff\xd8\xff", "is a picture (JPEG): a photo has no cells. Hand in the .ipynb file."),
)
_LFS = b"version https://git-lfs.github.com/spec/"
_UTF16 = (
    "is UTF-16 text, as written by redirection in a Windows shell, but notebooks are UTF-8. "
    "Convert it: "
    "iconv -f UTF-16 -t UTF-8 OLD.ipynb > NEW.ipynb"
)
# A platform saves text from its text box as HTML without a head: `<p>...`.
_HTML_PAGE_PATTERN = re.compile(
    rb"\A(?:<!--.*?-->|\s)*<(?:!doctype\s+html|\?xml|(?:html|head|body|title|meta|link|script|style|div|section"
    rb"|article|main|p|br|hr|h[1-6]|ul|ol|li|table|blockquote|pre|code|span|strong|em|b|i|u|a|img|iframe|font)"
    rb"[\s/>])",
    re.I | re.S,
)
_LINK_FILE_PATTERN = re.compile(
    rb"\A\s*(?:https?://\S+\s*\Z|\[InternetShortcut\]|\{\s*\"(?:url|doc_id)\"\s*:)", re.I
)
_CONFLICT_PATTERN = re.compile(rb"^(?:<{7} .*|={7}|>{7} .*)\r?$", re.M)
_SCRIPT_PATTERN = re.compile(
    rb"^(?:#!.*python|# ?%%|%%?\w+|import [\w.]+|from [\w.]+ import |(?:async )?def \w+\(|class \w+|@\w+)",
    re.M,
)
_CELLS_PATTERN = re.compile(rb"\"(?:cells|worksheets)\"\s*:")
_MAX_LINK_BYTES = 4_000
_HEAD_BYTES = 1 << 20


def describe_kind(content: bytes) -> str:
    """Return the end of a sentence that begins with the file's name, or "" for an unknown kind.

    The sentence describes the file's kind, and explains how to hand in the notebook.
    """
    if not content.strip(b"\0 \t\r\n"):
        if b"\0" not in content:
            return "is empty: save the notebook again."
        return f"contains only zeros: it was damaged when it was saved or copied. {EARLIER_VERSION_ADVICE}"
    text = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    for beginning, says in _SIGNATURES:
        if text.startswith(beginning):
            return says
    if content[:2] in (b"\xff\xfe", b"\xfe\xff") or _is_utf16(content[:4000]):
        return _UTF16
    if text.startswith(_LFS):
        return (
            "is a git-lfs pointer instead of the notebook. Fetch the notebook with `git lfs pull`, "
            "and hand it in."
        )
    if _HTML_PAGE_PATTERN.match(text[:_HEAD_BYTES]):
        return (
            "is a web page, not a notebook (an export to HTML, or a sign-in page that was saved in its "
            "place). Download the .ipynb file itself, and hand it in."
        )
    if len(text) <= _MAX_LINK_BYTES and (found := _LINK_FILE_PATTERN.match(text)):
        colab = b"colab" in text.lower() or b"doc_id" in found[0]
        where = (
            ", choose File > Download > Download .ipynb" if colab else ", download the .ipynb file"
        )
        return (
            f"contains a link to a notebook, not the notebook itself. Open the link{where}, and "
            f"hand it in."
        )
    marks = [found.start() for found in _CONFLICT_PATTERN.finditer(content)]
    if len(marks) > 1:
        line = content.count(b"\n", 0, marks[0]) + 1
        return (
            f"contains a git merge conflict (line {line}). Choose one version, for example with "
            "`git checkout --ours` or `git checkout --theirs` and the file's name, and hand it in."
        )
    if (at := content.find(b"\0")) >= 0:
        return (
            f"contains zero bytes (the first is byte {at:,}): it was damaged when it was saved or "
            f"copied. "
            f"{EARLIER_VERSION_ADVICE}"
        )
    if text[:1] not in (b"{", b"[") and _SCRIPT_PATTERN.search(text[:_HEAD_BYTES]):
        return (
            "is a Python script, not a notebook. Copy its functions into cells of the notebook, and hand "
            "in the .ipynb file."
        )
    return ""


def looks_like_notebook(head: bytes) -> bool:
    """Return whether a file that begins with `head` is JSON with cells, whatever its name."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text.startswith(b"{") and _CELLS_PATTERN.search(text) is not None


def _is_utf16(head: bytes) -> bool:
    """Return whether every second byte is zero, as in English UTF-16 text without a byte order mark."""
    return len(head) > 20 and any(
        head[at::2].count(0) > 0.8 * len(head[at::2]) and 0 not in head[1 - at :: 2]
        for at in (0, 1)
    )
