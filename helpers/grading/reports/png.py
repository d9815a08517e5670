"""Let a record's picture into a page only if it is a PNG of sane size, written as base64.

Called by `learner_page`. The bytes are written again as base64, so that nothing else can come along.
"""

from __future__ import annotations

import base64
import binascii
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST_BYTES = 2_000_000
_MOST_PIXELS = 4_000
"""On each side: what a browser must unpack is bounded by it, not by the file's length."""


def checked_png(picture: str) -> tuple[str, int, int] | None:
    """Return a picture's base64, width and height, or None if it is not a sound PNG."""
    if not picture or len(picture) > _MOST_BYTES * 4 // 3:
        return None
    try:
        data = base64.b64decode(picture, validate=True)
    except (binascii.Error, ValueError):
        return None
    size = _size(data)
    if size is None or not all(0 < side <= _MOST_PIXELS for side in size) or not _is_whole(data):
        return None
    return base64.b64encode(data).decode("ascii"), *size


def _size(data: bytes) -> tuple[int, int] | None:
    if len(data) < 33 or not data.startswith(_SIGNATURE) or data[8:16] != b"\0\0\0\rIHDR":
        return None
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _is_whole(data: bytes) -> bool:
    """Walk the chunks (PNG specification, 5.3): each sum is right, and the file ends with IEND."""
    at = len(_SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4])
        end = at + 12 + length
        if end > len(data):
            return False
        if zlib.crc32(data[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end]):
            return False
        if data[at + 4 : at + 8] == b"IEND":
            return len(data) == end
        at = end
    return False
