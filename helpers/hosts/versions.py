"""Return the versions that must agree on all hosts of a world: Python, torch, and the course's engine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

_HELPERS = Path(__file__).parents[1]
_ENGINE_FOLDERS = ("hosts", "ranks", "trace")


@cache
def versions() -> dict[str, str]:
    """Return this machine's versions of Python, torch and the engine.

    A version is "" if the package is not installed. The engine's version is a digest of its files.
    """
    digest = hashlib.sha256()
    for path in sorted(
        path for folder in _ENGINE_FOLDERS for path in (_HELPERS / folder).glob("*.py")
    ):
        digest.update(str(path.relative_to(_HELPERS)).encode() + b"\0" + path.read_bytes())
    return {
        "Python": platform.python_version(),
        "torch": _version("torch"),
        "the course": digest.hexdigest()[:8],
    }


def boot_id() -> str:
    """Return an id of this machine's boot and clock, or "" if it is unknown.

    If two processes return the same id, they share a monotonic clock.
    """
    with contextlib.suppress(OSError):
        # A container may have a separate clock; see time_namespaces(7).
        clock = os.readlink("/proc/self/ns/time")
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip() + clock
    return ""


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
