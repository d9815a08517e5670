"""Large pages of memory for a process that forks others.

This module imports nothing of the course, because tests also use it in a process that must not contain any of
the course's modules.
"""

import contextlib
import ctypes
from pathlib import Path

_HUGE_PAGE_BYTES = 2 << 20
_MADV_COLLAPSE = 25
# PF_FORKNOEXEC: the process is a fork that has not started another program since.
_IS_FORK = 0x40


def collapse_pages() -> None:
    """Ask the kernel to collect this process's memory into pages of 2 MB (Linux 6.1 and later).

    Then a fork copies only a few hundred entries of the page table instead of forty thousand, and a rank's
    exit frees equally few. When a rank writes to a large page, its view of the page is split and 4 kB are
    copied, as before.

    A process that is itself a fork does nothing, because the memory that it shares with its parent process
    would be copied.
    """
    if _is_fork():
        return
    madvise = ctypes.CDLL(None).madvise
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        span, rights, *_, inode = line.split()[:5]
        if rights == "rw-p" and inode == "0":
            first, end = (int(address, 16) for address in span.split("-"))
            first, end = (
                -(-first // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES,
                end // _HUGE_PAGE_BYTES * _HUGE_PAGE_BYTES,
            )
            if first < end:
                madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_COLLAPSE)


def _is_fork() -> bool:
    """Return whether this process is a fork. If that is unknown, as on macOS, return True."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return bool(int(fields[6]) & _IS_FORK)
    return True
